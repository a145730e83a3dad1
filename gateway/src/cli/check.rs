//! `trunkline check`: what is wrong or doubtful in a configuration; nothing is started.

use std::io::Write;
use std::path::PathBuf;

use crate::config::Config;
use crate::config::fault::{Fault, count};
use crate::router::config::Strategy;
use crate::upstream::config::Transport;
use crate::upstream::missing;

use super::args::Shared;
use super::failure::Failure;
use super::settings;

/// Prints all faults, or that there are none.
pub(super) fn run(shared: &Shared) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match settings::read(shared, Vec::new()) {
        Ok(settings) => {
            let mut warnings = settings.loaded.warnings;
            warnings.extend(doubts(&settings.files, &settings.loaded.config));
            for warning in &warnings {
                writeln!(out, "{warning}")?;
            }
            writeln!(out, "{}", verdict(&settings.files, settings.loaded.config.upstreams.len(), &warnings))?;
            Ok(())
        }
        Err(faults) => {
            writeln!(out, "{faults}")?;
            Err(Failure::Said)
        }
    }
}

/// The last line.
fn verdict(files: &[PathBuf], upstreams: usize, warnings: &[Fault]) -> String {
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let files = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
    let upstreams = if upstreams == 1 { "1 upstream".to_owned() } else { format!("{upstreams} upstreams") };
    match count(warnings).as_str() {
        "" => format!("{files}: {upstreams}, no faults"),
        warnings => format!("{files}: {upstreams}, no faults, {warnings}"),
    }
}

/// What may well be meant so, and may well not.
fn doubts(files: &[PathBuf], config: &Config) -> Vec<Fault> {
    let mut doubts = Vec::new();
    if files.is_empty() && matches!(&config.upstreams[..], [demo] if &*demo.name == "demo") {
        doubts.push(Fault::warning("demo", "there is no configuration file, so the built-in demo is what is served"));
    }
    if config.upstreams.is_empty() {
        doubts.push(Fault::warning("no-upstreams", "there is no upstream, so clients will see nothing"));
    }
    if config.naming.strategy == Strategy::PrefixOnConflict && config.upstreams.len() > 1 {
        let text = "with `prefix_on_conflict` a name may change when another upstream has the same one";
        doubts.push(Fault::warning("names-may-change", text));
    }
    if let Some(listen) = config.admin.listen.filter(|listen| !listen.ip().is_loopback()) {
        let text = format!("probes and metrics at {listen} can be read from other machines");
        doubts.push(Fault::warning("open-admin", text));
    }
    for upstream in &config.upstreams {
        let name = &upstream.name;
        match &upstream.transport {
            Transport::Stdio { command, env, cwd, .. } => {
                if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
                    let text = format!("upstream `{name}`: the folder {} is not there", cwd.display());
                    doubts.push(Fault::warning("no-folder", text));
                }
                if let Some(why) = missing(command, env, cwd.as_deref()) {
                    doubts.push(Fault::warning("no-command", format!("upstream `{name}`: {why}")));
                }
            }
            Transport::Http { url, headers } => {
                let local = matches!(url.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
                if url.scheme_str() == Some("http") && !local && headers.contains_key("authorization") {
                    let text = format!("upstream `{name}`: credentials are sent without encryption");
                    doubts.push(Fault::warning("plain-credentials", text));
                }
            }
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::environment::Environment;
    use crate::config::{Inputs, load};

    fn kinds(pairs: &[(&str, &str)]) -> Vec<&'static str> {
        let loaded = load(Inputs { environment: Environment::of(pairs), ..Inputs::default() }).unwrap();
        doubts(&[], &loaded.config).iter().map(|doubt| doubt.kind).collect()
    }

    #[test]
    fn what_is_doubtful_is_said() {
        assert_eq!(kinds(&[]), ["no-upstreams"]);
        let path = ("PATH", "/bin");
        assert_eq!(kinds(&[path, ("TRUNKLINE_UPSTREAMS__A__COMMAND", "sh")]), [""; 0]);
        assert_eq!(kinds(&[path, ("TRUNKLINE_UPSTREAMS__A__COMMAND", "no-such-program")]), ["no-command"]);
        let cwd = ("TRUNKLINE_UPSTREAMS__A__CWD", "/no/such/folder");
        assert_eq!(kinds(&[path, cwd, ("TRUNKLINE_UPSTREAMS__A__COMMAND", "sh")]), ["no-folder"]);
        let url = ("TRUNKLINE_UPSTREAMS__A__URL", "http://h.example/");
        assert_eq!(kinds(&[url, ("TRUNKLINE_UPSTREAMS__A__HEADERS__AUTHORIZATION", "x")]), ["plain-credentials"]);
        assert_eq!(kinds(&[url, ("TRUNKLINE_ADMIN__LISTEN", "0.0.0.0:1")]), ["open-admin"]);
        let flat = ("TRUNKLINE_NAMING__STRATEGY", "prefix_on_conflict");
        assert_eq!(kinds(&[url, flat]), [""; 0]);
        assert_eq!(kinds(&[url, flat, ("TRUNKLINE_UPSTREAMS__B__URL", "http://h.example/")]), ["names-may-change"]);
    }

    #[test]
    fn the_verdict_counts() {
        let doubt = Fault::warning("x", "x");
        assert_eq!(verdict(&[], 1, &[]), "no file: 1 upstream, no faults");
        assert_eq!(verdict(&["a".into(), "b".into()], 2, &[doubt]), "a, b: 2 upstreams, no faults, 1 warning");
    }
}
