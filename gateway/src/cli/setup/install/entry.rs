//! The entry, as each host writes it.

use jsonc_parser::cst::CstInputValue;
use toml_edit::{Array, Item, Table, value};

use crate::cli::setup::hosts::{Form, Host};

/// How it is named in each host.
pub(crate) const NAME: &str = "trunkline";

/// What a host shows of the entry that shows such a thing.
pub(super) const DESCRIPTION: &str = "servers behind Trunkline";

/// The program that the host starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

impl Entry {
    /// Its texts, which may be shown.
    pub(super) fn words(&self, host: &Host) -> Vec<String> {
        let keys = [
            "startup_timeout_sec",
            "tool_timeout_sec",
            "command",
            "stdio",
            "--config",
            "args",
            "type",
            "local",
            "tools",
            "timeout",
            "enabled",
            "name",
            "description",
            "cmd",
            "Local Config",
            "version",
            "schema",
            "servers",
        ];
        let values = ["600000", "600", "20", "*", "[", "]", "true", "1.0.0", "v1", DESCRIPTION, NAME];
        let mut words: Vec<String> = self.args.iter().cloned().chain([self.command.clone()]).collect();
        words.extend(host.root.iter().chain(&keys).chain(&values).map(|word| (*word).to_owned()));
        // The longest first: a path may hold a shorter word.
        words.sort_by_key(|word| usize::MAX - word.len());
        words
    }

    /// As JSON.
    pub(super) fn json(&self, form: Form) -> CstInputValue {
        let text = |text: &str| CstInputValue::String(text.to_owned());
        let list = |words: &[String]| CstInputValue::Array(words.iter().map(|word| text(word)).collect());
        let mut pairs: Vec<(&str, CstInputValue)> = Vec::new();
        match form {
            Form::Typed => pairs.push(("type", text("stdio"))),
            Form::Copilot | Form::OpenCode => pairs.push(("type", text("local"))),
            Form::Plain | Form::Gemini | Form::Codex | Form::Goose | Form::Continue => {}
        }
        if form == Form::OpenCode {
            let words: Vec<String> = [self.command.clone()].into_iter().chain(self.args.clone()).collect();
            pairs.push(("command", list(&words)));
        } else {
            pairs.push(("command", text(&self.command)));
            pairs.push(("args", list(&self.args)));
        }
        match form {
            Form::Copilot => pairs.push(("tools", list(&["*".to_owned()]))),
            Form::Gemini => pairs.push(("timeout", CstInputValue::Number("600000".to_owned()))),
            _ => {}
        }
        CstInputValue::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// As lines of YAML, each with this before it.
    pub(super) fn yaml(&self, form: Form, pad: &str) -> String {
        let pairs = self.yaml_pairs(form);
        let lines = pairs.iter().map(|(key, value)| format!("{key}: {value}\n"));
        match form {
            Form::Continue => {
                let hyphen = |(at, line)| format!("{pad}{}{line}", if at == 0 { "- " } else { "  " });
                lines.enumerate().map(hyphen).collect()
            }
            _ => format!("{pad}{NAME}:\n{}", lines.map(|line| format!("{pad}  {line}")).collect::<String>()),
        }
    }

    /// As YAML between brackets.
    pub(super) fn yaml_flow(&self, form: Form) -> String {
        let pairs: Vec<_> = self.yaml_pairs(form).iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let pairs = format!("{{{}}}", pairs.join(", "));
        if form == Form::Continue { pairs } else { format!("{NAME}: {pairs}") }
    }

    /// The keys with their values. A text in JSON is one in YAML, too.
    fn yaml_pairs(&self, form: Form) -> Vec<(&'static str, String)> {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let args: Vec<String> = self.args.iter().map(|arg| text(arg)).collect();
        let (command, args) = (text(&self.command), format!("[{}]", args.join(", ")));
        let plain = |text: &str| text.to_owned();
        match form {
            Form::Continue => vec![("name", plain(NAME)), ("command", command), ("args", args)],
            // It waits five minutes for a call, if nothing is said.
            _ => vec![
                ("enabled", plain("true")),
                ("type", plain("stdio")),
                ("name", plain(NAME)),
                ("description", plain(DESCRIPTION)),
                ("cmd", command),
                ("args", args),
                ("timeout", plain("600")),
            ],
        }
    }

    /// As TOML. The host waits ten seconds for its start and sixty for a call, if nothing is said.
    pub(super) fn toml(&self) -> Table {
        let mut table = Table::new();
        table.insert("command", value(&self.command));
        table.insert("args", Item::Value(self.args.iter().collect::<Array>().into()));
        table.insert("startup_timeout_sec", value(20));
        table.insert("tool_timeout_sec", value(600));
        table
    }
}
