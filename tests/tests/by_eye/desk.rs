//! A person's desk: a gateway with an upstream that one logs in to, at a provider of others, and terminals.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::process::Child;
use trunkline_tests::authority::Authority;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::Identity;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::terminal::{on_terminal_after, sees};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

pub(crate) const OAUTH: &str = "auth = { type = \"oauth\" }";
/// What stands at the end of every command's terminal.
pub(crate) const ENDED: &str = "as before";

pub(crate) struct Desk {
    pub(crate) provider: Identity,
    pub(crate) upstream: Upstream,
    pub(crate) guard: Arc<Authority>,
    pub(crate) gateway: Gateway,
    tools: PathBuf,
}

impl Desk {
    /// Nothing where this machine has no provider, which takes codes of other devices where it `has_devices`.
    pub(crate) async fn start(has_devices: bool) -> Option<Desk> {
        Desk::with(has_devices, Revision::MODERN, |config, upstream| config.upstream_with(upstream, OAUTH)).await
    }

    /// With another configuration.
    pub(crate) async fn with(
        has_devices: bool,
        revision: Revision,
        config: impl FnOnce(Config, &Upstream) -> Config,
    ) -> Option<Desk> {
        let provider = Identity::with_pages(has_devices).await?;
        let upstream = Upstream::http(Script::new("up", revision)).await;
        let guard = Authority::start().await;
        guard.admit_all();
        upstream.guarded_by(&guard);
        upstream.shows("/.well-known/oauth-protected-resource/mcp", 200, &resource(&upstream, &provider.url));
        let gateway = Gateway::serve(&config(Config::new(), &upstream)).await;
        let desk = Desk { tools: gateway.file.with_extension("tools"), provider, upstream, guard, gateway };
        desk.has_browser();
        Some(desk)
    }

    /// The browser of the desktop is a program that only says what it is to open.
    fn has_browser(&self) {
        std::fs::create_dir_all(&self.tools).expect("a folder");
        let program = self.tools.join("xdg-open");
        let told = self.told();
        let script = format!("#!/bin/sh\nprintf '%s' \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n", told.display());
        std::fs::write(&program, script).expect("it is written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it can be run");
    }

    fn told(&self) -> PathBuf {
        self.tools.join("told")
    }

    fn on(&self, screen: &str) -> (Child, String) {
        let path = format!("PATH={}:{}", self.tools.display(), std::env::var("PATH").unwrap_or_default());
        let screen = format!("DISPLAY={screen}");
        let before = ["env", "-u", "WAYLAND_DISPLAY", &path, &screen];
        (on_terminal_after(&self.gateway, &before, &["login", "up"], 200, ""), String::new())
    }

    /// `trunkline login up` on a machine with a screen.
    pub(crate) fn logs_in_here(&self) -> (Child, String) {
        self.on(":0")
    }

    /// The same on a machine without one, as by ssh.
    pub(crate) fn logs_in_elsewhere(&self) -> (Child, String) {
        self.on("")
    }

    /// What the command has the browser open.
    pub(crate) async fn opened(&self, terminal: &mut Child, seen: &mut String) -> String {
        sees(terminal, seen, "opening the browser to log in to `up`").await;
        let told = until("a browser opens", || async { std::fs::read_to_string(self.told()).ok() }).await;
        std::fs::remove_file(self.told()).expect("it is there");
        format!("file://{told}")
    }

    /// The link that the terminal shows.
    pub(crate) async fn link(&self, terminal: &mut Child, seen: &mut String) -> String {
        let begin = format!("\n{}", self.provider.url);
        sees(terminal, seen, &begin).await;
        let at = seen.find(&begin).expect("it is there") + 1;
        while !seen[at..].contains('\n') {
            sees(terminal, seen, "\n").await;
        }
        seen[at..].lines().next().expect("a line").trim_end().to_owned()
    }

    /// The terminal says so.
    pub(crate) fn is_logged_in(&self, seen: &str) {
        reads(seen, &format!("logged in to `up` at {}; its tokens are refreshed without you", self.provider.url));
        reads(seen, "a running gateway connects by itself");
    }

    pub(crate) async fn runs(&self, words: &[&str]) -> String {
        let output = within("it answers", self.gateway.command(words).output()).await.expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The gateway calls with the login of this person.
    pub(crate) async fn has_its_login(&self, person: &str) {
        let client = Client::connect(&self.gateway.reach(), Revision::MODERN).await;
        client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert_eq!(self.person().await, person);
    }

    /// Whose token the last request bore.
    pub(crate) async fn person(&self) -> String {
        let (_, token, _) = self.guard.judged.all().into_iter().rfind(|(_, token, _)| !token.is_empty()).expect("one");
        self.provider.person(&token).await
    }

    /// Nothing is kept, and it is said everywhere what to do.
    pub(crate) async fn has_no_login(&self) {
        for command in [&["status", "up"][..], &["doctor"]] {
            let text = self.runs(command).await;
            assert!(text.contains("needs login") && text.contains("run `trunkline login up"), "{text}");
        }
    }
}

/// What an upstream says of itself.
pub(crate) fn resource(upstream: &Upstream, issuer: &str) -> String {
    let document = serde_json::json!({
        "resource": upstream.url(), "authorization_servers": [issuer], "scopes_supported": ["read", "admin"],
    });
    document.to_string()
}

/// These words stand on a terminal, in however many lines.
pub(crate) fn reads(seen: &str, words: &str) {
    let seen = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(seen.contains(words), "{words}: {seen}");
}

/// What stands between two words.
pub(crate) fn between(text: &str, before: &str, after: &str) -> String {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before}: {text}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("no {after}: {text}")).0.to_owned()
}
