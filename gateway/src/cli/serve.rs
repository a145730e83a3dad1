//! `trunkline serve`: many clients over Streamable HTTP.

use std::path::PathBuf;

use anyhow::Context;

use crate::config::Config;
use crate::downstream::config::PublicUrl;
use crate::gateway::{Gateway, Mode, Place, Read, ShutdownSignals};
use crate::policy::config::Generated;
use crate::policy::config::client_token;
use crate::runtime::system::ServiceManager;
use crate::runtime::system::handed::{self, HandedSocket};
use crate::telemetry::logging::{self, Writer, say};

use super::args::settings::Settings;
use super::args::{Flag, Serve, Shared, settings};
use super::process::failure::in_its_room;
use super::process::{Failure, runtime};
use super::report;
use super::report::announce;

/// Serves until told to end.
pub(super) fn run(shared: Shared, mut serve: Serve) -> Result<(), Failure> {
    // While there is one thread.
    let handed = handed::sockets().map_err(anyhow::Error::from)?;
    let shared = shared.join(std::mem::take(&mut serve.shared));
    let flags = flags(serve);
    let settings = with_token(settings::read(&shared, flags.clone())?, &shared, &flags)?;
    settings.begin(Writer::Serve)?;
    if settings.loaded.config.auth.generated == Generated::Kept
        && let Some(state) = &settings.loaded.config.server.state_folder
    {
        say(&format!("clients present the token in {} (`auth.generate_token`)", client_token::file(state).display()));
    }
    let read = settings::reader(&shared, &flags);
    runtime::check_address_space()?;
    runtime::block_on(gateway(settings.loaded.config, settings.files, read, handed))
}

/// The same settings with the token that `auth.generate_token` asks for: it is made at the first start, and shown then.
fn with_token(settings: Settings, shared: &Shared, flags: &[Flag]) -> Result<Settings, Failure> {
    let config = &settings.loaded.config;
    let Some(state) = config.server.state_folder.as_ref().filter(|_| config.auth.generated == Generated::Lacking)
    else {
        return Ok(settings);
    };
    let file = client_token::file(state);
    let (token, is_new) =
        client_token::made(state).with_context(|| format!("cannot keep the token of clients in {}", file.display()))?;
    logging::start(&config.log, Writer::Serve);
    if is_new {
        // Before it is read as part of the configuration: from then on it is masked wherever it is said.
        say(&format!("no token of clients is configured, so one was made, which is shown this once: {token}"));
    }
    Ok(settings::read(shared, flags.to_vec())?)
}

/// The flags that were given, as overrides.
fn flags(serve: Serve) -> Vec<Flag> {
    let listen = serve.listen.map(|value| ("--listen", &["server", "listen"][..], value));
    let admin = serve.admin.map(|value| ("--admin", &["admin", "listen"][..], value));
    let open = serve.allow_unauthenticated.then(|| "true".to_owned());
    let open = open.map(|value| ("--allow-unauthenticated", &["auth", "allow_unauthenticated"][..], value));
    [listen, admin, open].into_iter().flatten().collect()
}

async fn gateway(
    config: Config,
    files: Vec<PathBuf>,
    read: Read,
    handed: Vec<HandedSocket>,
) -> Result<(), anyhow::Error> {
    let mut told = ShutdownSignals::new()?;
    let (path, public) = (config.server.path.clone(), config.server.public_url.clone());
    let manager = ServiceManager::of_environment().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot reach the service manager at NOTIFY_SOCKET; it is told nothing");
        ServiceManager::default()
    });
    let gateway =
        Gateway::start(config, Mode::Serve).managed_by(manager.clone()).reloaded_by(read).with_sockets(handed);
    gateway.own_processes();
    let bound = gateway.serve().await?;
    let urls: Vec<String> = bound.clients.iter().map(|place| place.url(&path)).collect();
    if logging::is_json() {
        let (clients, admin) = (urls.join(", "), bound.admin.map(report::look_at));
        let public_url = public.as_ref().map(ToString::to_string);
        tracing::info!(version = env!("CARGO_PKG_VERSION"), clients, admin, public_url, "serving");
    } else {
        say(&in_its_room(&report::endpoint(&urls[0], bound.admin)));
        if let [_, _, ..] = urls.as_slice() {
            let lines = urls.iter().zip(&bound.clients).map(|(url, place)| report::listener(url, &place.faces.names()));
            lines.for_each(|line| say(&line));
        }
        public.iter().for_each(|public| say(&report::public(public)));
        say(&paste(&bound.clients, (&path, public.as_ref()), &files));
    }
    tokio::select! {
        () = told.to_end() => {}
        () = announce::upstreams(gateway.board().clone(), &manager) => {}
    }
    end(gateway.drain(), &mut told).await
}

/// What stands above and below the snippets: for which hosts each is.
const BY_URL: &str =
    "For Claude Code (.mcp.json), Cursor (.cursor/mcp.json) and others that take an address under `mcpServers`:";
const BY_COMMAND: &str = "For Claude Desktop (claude_desktop_config.json), Windsurf (mcp_config.json) and others that start what is under `mcpServers`:";
const INSTALL: &str =
    "`trunkline install HOST` writes it for you, also for hosts with other keys: VS Code, Zed, Codex, Goose, opencode.";

/// What to put into a host: the address for those that can dial one, the command for those that only start programs.
fn paste(clients: &[Place], (path, public): (&str, Option<&PublicUrl>), files: &[PathBuf]) -> String {
    // Hosts know Streamable HTTP best, and no sockets.
    let ports = || clients.iter().filter(|place| place.address.port().is_some());
    let by_url = ports().find(|place| place.faces.mcp).or_else(|| ports().next()).map(|place| {
        let transport = match place.faces.names()[0] {
            "mcp" => "http",
            other => other,
        };
        let url = public.map_or_else(|| place.url(path), |public| place.public_url(public, path));
        report::paste_http(transport, &url, place.asks_token)
    });
    let files: Vec<_> = files.iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect();
    // What is pasted stays as it is.
    let [of_url, of_command, install] = [BY_URL, BY_COMMAND, INSTALL].map(in_its_room);
    let by_url = by_url.map(|snippet| format!("{of_url}\n{snippet}\n")).unwrap_or_default();
    let by_command = std::env::current_exe().ok().map(|program| report::paste_stdio(&program, &files));
    let by_command = by_command.map(|snippet| format!("{of_command}\n{snippet}\n")).unwrap_or_default();
    format!("{by_url}{by_command}{install}")
}

/// Waits for the drain; whoever tells a second time does not want to wait.
pub(super) async fn end<T>(drain: impl Future<Output = T>, told: &mut ShutdownSignals) -> Result<T, anyhow::Error> {
    tokio::select! {
        drained = drain => Ok(drained),
        () = told.to_end() => anyhow::bail!("second shutdown signal: calls in progress were aborted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::setup::hosts::{Form, HOSTS, Host};

    /// The hosts that a text names.
    fn named(text: &str) -> Vec<&'static Host> {
        HOSTS.iter().filter(|host| text.contains(host.title)).collect()
    }

    #[test]
    fn a_snippet_is_for_hosts_that_have_such_entries_under_its_key_in_the_file_that_is_named() {
        for heading in [BY_URL, BY_COMMAND] {
            let hosts = named(heading);
            assert_eq!(hosts.len(), 2, "{heading}");
            for host in hosts {
                assert_eq!(host.root, ["mcpServers"], "{}", host.title);
                let files = host.user_files(&crate::config::source::Environment::of(&[("HOME", "/h")]));
                let named = heading.split(['(', ')']).filter(|part| part.ends_with(".json"));
                let is_of_it = |file: &str| {
                    files.iter().any(|path| path.ends_with(file))
                        || host.project_file().is_some_and(|path| path.ends_with(file))
                };
                assert_eq!(named.filter(|file| is_of_it(file)).count(), 1, "{}", host.title);
            }
        }
        // What only starts programs takes no address, and the others have keys of their own.
        assert!(named(BY_URL).iter().all(|host| host.id != "claude-desktop"));
        let others = named(INSTALL);
        assert!(others.len() == 5 && others.iter().all(|host| host.root != ["mcpServers"]), "{others:?}");
        assert!(others.iter().any(|host| host.form == Form::Codex));
    }
}
