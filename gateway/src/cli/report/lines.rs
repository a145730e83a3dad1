//! The lines that `serve` shows a person: pure, so that they can be read in the tests.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::fault::printable;
use crate::downstream::config::PublicUrl;
use crate::gateway::reachable;
use crate::health::row::State;

/// What there is to say of one upstream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News<'a> {
    /// It can be used.
    Usable {
        /// How many tools it has.
        tools: usize,
        /// Since it was started.
        after: Duration,
    },
    /// Something is odd, or wrong, or to be waited for.
    Said {
        /// What, in words for a person.
        cause: &'a str,
        /// When it is tried again.
        retry: Option<Duration>,
    },
}

/// Where it can be looked at.
pub(crate) fn look_at(admin: SocketAddr) -> String {
    format!("http://{}", reachable(admin))
}

/// The first line: which program, where it serves, where it can be looked at.
pub(crate) fn endpoint(url: &str, admin: Option<SocketAddr>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let admin = admin.map(|admin| format!("  (probes and metrics {})", look_at(admin)));
    format!("trunkline {version}  {url}{}", admin.unwrap_or_default())
}

/// One line about each listener, where there are several.
pub(crate) fn listener(url: &str, faces: &[&str]) -> String {
    format!("  listener     {url}  ({})", faces.join(", "))
}

/// One line about where clients find it, behind what stands before it.
pub(crate) fn public(public: &PublicUrl) -> String {
    format!("  public       {public}")
}

/// One line about one upstream, its state in the words of `trunkline ls`. `width` is that of the longest name.
pub(crate) fn upstream(name: &str, transport: &str, width: usize, state: State, news: News<'_>) -> String {
    let what = match news {
        News::Usable { tools, after } => format!("{:8}   {:.1} s", counted(tools), after.as_secs_f64()),
        News::Said { cause, retry } => {
            let retry = retry.map(|retry| format!("; next try in {} s", retry.as_secs_f64().ceil()));
            format!("{}{}", printable(cause.trim()), retry.unwrap_or_default())
        }
    };
    format!("  {:11}  {name:width$}   {transport:5}   {what}", state.as_str())
}

fn counted(tools: usize) -> String {
    if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") }
}

/// How many servers can be used, and how many tools they have. `is_settled`: none is in its first start any more.
pub(crate) fn summary(tools: usize, ready: usize, upstreams: usize, is_settled: bool) -> String {
    let so_far = if is_settled { "" } else { "so far " };
    let noun = if upstreams == 1 { "server" } else { "servers" };
    format!("{so_far}{ready} of {upstreams} {noun} ready, {}", counted(tools))
}

/// What to put into a host's file, for a gateway that serves HTTP.
pub(crate) fn paste_http(transport: &str, url: &str, asks_token: bool) -> String {
    let mut entry = json!({ "type": transport, "url": url });
    if asks_token {
        entry["headers"] = json!({ "Authorization": "Bearer YOUR-TOKEN" });
    }
    paste(entry)
}

/// What to put into a host's file, for a gateway that the host starts itself. The paths must be
/// absolute: a host starts its children wherever it likes.
pub(crate) fn paste_stdio(program: &Path, files: &[impl AsRef<Path>]) -> String {
    let mut args = vec!["stdio".to_owned()];
    for file in files {
        args.extend(["--config".to_owned(), file.as_ref().display().to_string()]);
    }
    paste(json!({ "command": program.display().to_string(), "args": args }))
}

fn paste(entry: Value) -> String {
    let whole = json!({ "mcpServers": { "trunkline": entry } });
    // A `Value` always serialises.
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_line_names_addresses_that_can_be_reached() {
        let version = env!("CARGO_PKG_VERSION");
        let line = endpoint("http://127.0.0.1:8808/mcp", Some(address("[::]:9808")));
        assert_eq!(
            line,
            format!("trunkline {version}  http://127.0.0.1:8808/mcp  (probes and metrics http://127.0.0.1:9808)")
        );
        assert_eq!(endpoint("http://127.0.0.1:1/", None), format!("trunkline {version}  http://127.0.0.1:1/"));
    }

    #[test]
    fn a_line_per_upstream_in_columns() {
        let line = |name, transport, width, state, news| upstream(name, transport, width, state, news);
        let said = |cause, retry| News::Said { cause, retry };
        let ready = News::Usable { tools: 11, after: Duration::from_millis(410) };
        let one = News::Usable { tools: 1, after: Duration::from_secs(2) };
        let failed = said("npx: not found.\u{1b}[2J", Some(Duration::from_millis(3200)));
        let lines = [
            line("filesystem", "stdio", 10, State::Ready, ready),
            line("x", "http", 10, State::Ready, one),
            line("jira", "stdio", 4, State::BackingOff, failed),
            line("jira", "http", 4, State::Idle, said("starts on the first request", None)),
        ];
        let expected = [
            "  ready        filesystem   stdio   11 tools   0.4 s",
            "  ready        x            http    1 tool     2.0 s",
            "  backing_off  jira   stdio   npx: not found.\\u{1b}[2J; next try in 4 s",
            "  idle         jira   http    starts on the first request",
        ];
        assert_eq!(lines, expected);
        assert_eq!(summary(73, 2, 4, true), "2 of 4 servers ready, 73 tools");
        assert_eq!(summary(0, 0, 13, false), "so far 0 of 13 servers ready, 0 tools");
        assert_eq!(summary(1, 1, 1, true), "1 of 1 server ready, 1 tool");
    }

    #[test]
    fn what_is_pasted_is_json_that_a_host_takes() {
        let http: Value = serde_json::from_str(&paste_http("http", "http://127.0.0.1:8808/mcp", true)).unwrap();
        let entry = &http["mcpServers"]["trunkline"];
        assert_eq!((&entry["type"], &entry["url"]), (&json!("http"), &json!("http://127.0.0.1:8808/mcp")));
        assert_eq!(entry["headers"]["Authorization"], "Bearer YOUR-TOKEN");
        let stdio: Value =
            serde_json::from_str(&paste_stdio(Path::new("/opt/a \"b\"/trunkline"), &["/etc/t.toml"])).unwrap();
        let entry = &stdio["mcpServers"]["trunkline"];
        assert_eq!(entry["command"], "/opt/a \"b\"/trunkline");
        assert_eq!(entry["args"], json!(["stdio", "--config", "/etc/t.toml"]));
    }
}
