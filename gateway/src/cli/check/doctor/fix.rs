//! What to do about a problem: a command as it is typed, or a line as it is written.

use std::path::PathBuf;

use crate::cli::args::Shared;
use crate::config::fault::Fault;
use crate::config::source::file::shown;

/// What to run or to write where a fault itself does not say it.
pub(super) fn mending(fault: &Fault) -> String {
    let own =
        fault.upstream.as_ref().map_or_else(|| "[upstreams.NAME]".to_owned(), |name| format!("[upstreams.{name}]"));
    match fault.kind {
        "no-command" => format!("install it, or write its absolute path as `command` under {own}"),
        "unreadable-file" if fault.text.starts_with("cannot read ${") => {
            "see with `ls -l` whether it is there and this user may read it, or write another path there".to_owned()
        }
        "unreadable-file" => {
            "run `trunkline import`, which makes it, or name one that is there: --config FILE".to_owned()
        }
        "syntax" => "correct the line; `trunkline check` shows it".to_owned(),
        "missing-key" => "write it there; `trunkline config schema` has every key".to_owned(),
        "demo" => "run `trunkline import`, or `trunkline add NAME -- COMMAND`".to_owned(),
        "shared-questions" => format!("write `sharing = \"per-principal\"` under {own}"),
        "shell-variable" => {
            "write \"$1\" in double quotes in the script, with the value as an argument behind it".to_owned()
        }
        "secret-in-arguments" => format!("write env = {{ NAME = \"${{NAME}}\" }} under {own} in place of the argument"),
        "loader-variable" => {
            format!("remove the variable from `env` under {own}, or let nobody else write where it leads")
        }
        "metadata-address" => format!("write the address of the server itself as `url`, or as `proxy`, under {own}"),
        "plain-credentials" => format!("write https:// or wss:// in `url` under {own}, and a proxy on this machine"),
        "names-may-change" => "write `strategy = \"prefix\"` under [naming]".to_owned(),
        "open-admin" => "write `listen = \"127.0.0.1:9808\"` under [admin], unless the network is trusted".to_owned(),
        "open-beside-roles" => "write `tokens = [\"NAME\"]` under that entry of [[server.listeners]]".to_owned(),
        "matches-nothing" => "correct the pattern; `trunkline tools` lists the names".to_owned(),
        "unset-variable" => {
            let name = fault.unset.as_deref().unwrap_or("NAME");
            format!("export {name}=…, or write `optional = true` under {own}")
        }
        "unused-key" => "remove the key there, or leave it: it has no effect here".to_owned(),
        "bad-reference" => "write `${NAME}` there, and export the variable".to_owned(),
        "bad-value" => "correct the value there".to_owned(),
        "own-entry" => "nothing is to be done: the host keeps its entry".to_owned(),
        "replaced" => "remove one of the two entries, or leave it: the later one counts".to_owned(),
        _ => "run `trunkline check`, which shows the line".to_owned(),
    }
}

/// A fix with all that a person types: each command leads to the configuration that was looked at, and a line stands in a file that takes it.
pub(super) fn as_typed(fix: &str, shared: &Shared, files: &[PathBuf]) -> String {
    let typed = shared.typed(fix);
    let is_of_host = |file: &PathBuf| {
        file.extension().is_some_and(|ending| ["json", "jsonc", "yaml", "yml"].iter().any(|known| ending == *known))
    };
    match files.last() {
        Some(host) if typed.contains("under [") && files.iter().all(is_of_host) => format!(
            "{typed}, in a TOML file that is named behind {host}: --config {host} --config trunkline.toml",
            host = shown(host)
        ),
        _ => typed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_configuration_that_was_looked_at_and_a_line_the_file_that_takes_it() {
        let files = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let shared = |names: &[&str]| Shared { config: files(names), ..Shared::default() };
        let of = |fix: &str, names: &[&str]| as_typed(fix, &shared(names), &files(names));
        assert_eq!(of("run `trunkline login x`", &[]), "run `trunkline login x`");
        assert_eq!(
            of("run `trunkline check`, or `trunkline add NAME -- COMMAND`; `ls -l`", &["a.toml", "my b.toml"]),
            "run `trunkline check --config a.toml --config 'my b.toml'`, or \
             `trunkline add NAME --config a.toml --config 'my b.toml' -- COMMAND`; `ls -l`"
        );
        assert_eq!(
            of("write `optional = true` under [upstreams.x]", &["a.toml"]),
            "write `optional = true` under [upstreams.x]"
        );
        assert_eq!(
            of("write `optional = true` under [upstreams.x]", &["mcp.json"]),
            "write `optional = true` under [upstreams.x], in a TOML file that is named behind mcp.json: \
             --config mcp.json --config trunkline.toml"
        );
    }
}
