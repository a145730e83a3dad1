//! The entry, as each host writes it.

use jsonc_parser::cst::CstInputValue;
use toml_edit::{Array, Item, Table, value};

use crate::cli::setup::hosts::Form;

/// How it is named in each host.
pub(super) const NAME: &str = "trunkline";

/// The program that the host starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

impl Entry {
    /// As JSON.
    pub(super) fn json(&self, form: Form) -> CstInputValue {
        let text = |text: &str| CstInputValue::String(text.to_owned());
        let list = |words: &[String]| CstInputValue::Array(words.iter().map(|word| text(word)).collect());
        let mut pairs: Vec<(&str, CstInputValue)> = Vec::new();
        match form {
            Form::Typed => pairs.push(("type", text("stdio"))),
            Form::Copilot | Form::OpenCode => pairs.push(("type", text("local"))),
            Form::Plain | Form::Gemini | Form::Codex => {}
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
