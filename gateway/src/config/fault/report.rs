//! What is wrong with a configuration: what, where, and what to do, for a person to read.

use std::fmt;
use std::path::Path;

use super::excerpt::{Excerpt, printable};
use crate::secrets::Secrets;

/// So many faults are shown: more than anybody mends at once.
pub(crate) const SHOWN_MAX: usize = 50;

/// One thing that is wrong (or, as a warning, doubtful) in a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Whether it keeps the gateway from starting.
    pub severity: Severity,
    /// A word to search for, such as `unknown-key`.
    pub kind: &'static str,
    /// What is wrong, in one sentence, without any value from the file.
    pub text: String,
    /// Where it stands.
    pub place: Option<Place>,
    /// Written beside the caret: what was expected there.
    pub label: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The upstream that it concerns, where it is about one.
    pub upstream: Option<String>,
    /// The variable that has no value, where it is about one.
    pub unset: Option<String>,
}

/// Whether a fault keeps the gateway from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A piece of a file.
    File {
        /// As it was given.
        path: String,
        /// The line, with its number, column and caret.
        excerpt: Excerpt,
    },
    /// A whole file.
    Path(String),
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(&'static str),
}

/// All faults of a configuration; at least one is an error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl Fault {
    /// The kind of what is wrong with the files of the certificate for clients.
    pub const CERTIFICATE: &'static str = "certificate";

    /// A fault that keeps the gateway from starting.
    pub(crate) fn error(kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            kind,
            text: text.into(),
            place: None,
            label: None,
            hint: None,
            upstream: None,
            unset: None,
        }
    }

    /// A fault that does not.
    pub(crate) fn warning(kind: &'static str, text: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(kind, text) }
    }

    /// A warning about one upstream, which its text names first.
    pub(crate) fn of_upstream(kind: &'static str, upstream: &str, text: impl fmt::Display) -> Self {
        Self { upstream: Some(upstream.to_owned()), ..Self::warning(kind, format!("upstream `{upstream}`: {text}")) }
    }

    /// Of two values of which one must not be above the other.
    pub(crate) const ORDER: &str = "bad-order";

    /// Nothing is configured that could be served. `file` is the one that could say it.
    pub(crate) fn no_upstreams(file: Option<&Path>) -> Self {
        let fault = Fault::warning("no-upstreams", "no upstreams are configured, so clients see no tools");
        let fault = fault.at(file.map(|file| Place::Path(file.display().to_string())));
        let is_of_host = |file: &Path| {
            file.extension().is_some_and(|ending| ["json", "jsonc", "yaml", "yml"].iter().any(|known| ending == *known))
        };
        fault.hint(match file.is_some_and(is_of_host) {
            true => "add one to this file of a host, or name a file of your own; `trunkline import` writes one",
            false => "add one: a heading such as [upstreams.files], and below it `command = ...` or `url = ...`; without any file there is a demo",
        })
    }

    /// A listener names a token that is not there.
    pub(crate) fn no_token(name: &str) -> Self {
        Self::error("unknown-token", format!("no token of [[auth.tokens]] is named `{name}`"))
    }

    /// Whether it says so of this name.
    pub(crate) fn is_no_token(&self, name: &str) -> bool {
        let said = Self::no_token(name);
        (self.kind, &self.text) == (said.kind, &said.text)
    }

    /// Whether it may be there only because something else could not be read.
    pub(crate) fn may_follow(&self) -> bool {
        let kinds = [
            "missing-key",
            "useless-key",
            "unknown-token",
            "open-door",
            "cleartext-credentials",
            Self::ORDER,
            "duplicate-name",
        ];
        kinds.contains(&self.kind)
    }

    /// Faults are shown in the order of their places.
    pub(crate) fn order(&self) -> impl Ord + '_ {
        match &self.place {
            Some(Place::File { path, excerpt }) => (0, path.as_str(), excerpt.line, excerpt.column),
            Some(Place::Path(path)) => (0, path.as_str(), 0, 0),
            Some(Place::Variable(name)) => (1, name.as_str(), 0, 0),
            Some(Place::Flag(name)) => (2, *name, 0, 0),
            None => (3, "", 0, 0),
        }
    }

    /// Without the secrets that it quotes: names and values of a configuration may be references to them.
    #[must_use]
    pub(crate) fn masked(mut self, secrets: &Secrets) -> Self {
        let mask = |text: &mut String| {
            if let std::borrow::Cow::Owned(masked) = secrets.masked(text) {
                *text = masked;
            }
        };
        mask(&mut self.text);
        self.label.as_mut().map(mask);
        self.hint.as_mut().map(mask);
        match &mut self.place {
            Some(Place::File { path, excerpt }) => {
                mask(path);
                // The columns stay where they are.
                if secrets.has(&excerpt.shown) {
                    excerpt.shown = excerpt.shown.replace(|char: char| !char.is_whitespace(), "*");
                }
            }
            Some(Place::Path(text) | Place::Variable(text)) => mask(text),
            Some(Place::Flag(_)) | None => {}
        }
        self
    }

    /// For a program.
    pub(crate) fn json(&self) -> serde_json::Value {
        let Self { severity, kind, text, place, label, hint, upstream, unset: _ } = self;
        let place = place.as_ref().map(ToString::to_string);
        let severity = if *severity == Severity::Error { "error" } else { "warning" };
        serde_json::json!({
            "severity": severity, "kind": kind, "upstream": upstream, "text": text, "place": place, "label": label, "hint": hint
        })
    }

    pub(crate) fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, excerpt } => write!(f, "{}:{}:{}", printable(path), excerpt.line, excerpt.column),
            Self::Path(path) => write!(f, "{}", printable(path)),
            Self::Variable(name) => write!(f, "environment variable {}", printable(name)),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// How many columns a line may have, and what makes several lines of a longer text; all but the first begin with so many blanks.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) columns: usize,
    pub(crate) wrapped: fn(&str, usize, usize) -> String,
}

impl Layout {
    /// Lines as long as they are.
    const LONG: Self = Self { columns: usize::MAX, wrapped: |text, _, _| text.to_owned() };

    fn wrapped(self, text: &str, indent: usize) -> String {
        (self.wrapped)(text, indent, self.columns)
    }

    /// The faults, each with its lines. Of many the first are shown, errors before warnings, and how many more there are.
    pub(crate) fn list(self, faults: &[Fault]) -> String {
        let is_error = |fault: &&Fault| fault.severity == Severity::Error;
        let errors = faults.iter().filter(is_error).count().min(SHOWN_MAX);
        let (mut errors, mut warnings) = (errors, SHOWN_MAX - errors);
        let mut out = String::new();
        for fault in faults {
            let left = if is_error(&fault) { &mut errors } else { &mut warnings };
            if *left > 0 {
                *left -= 1;
                out.push_str(&format!("{}\n", fault.laid_out(self)));
            }
        }
        if faults.len() > SHOWN_MAX {
            out.push_str(&format!("… and {} more\n", faults.len() - SHOWN_MAX));
        }
        out
    }
}

impl Fault {
    fn laid_out(&self, layout: Layout) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let file = match &self.place {
            Some(Place::File { excerpt, .. }) => Some(excerpt),
            _ => None,
        };
        let margin = " ".repeat(file.map_or(1, |excerpt| excerpt.line.to_string().len().max(2)));
        let under = margin.len() + 2;
        let mut out = layout.wrapped(&format!("{severity}[{}]: {}", self.kind, printable(&self.text)), 2);
        // A path is not broken: it is what is looked for.
        self.place.iter().for_each(|place| out.push_str(&format!("\n{margin}┌─ {place}")));
        let mut label = self.label.as_ref().map(|label| printable(label));
        if let Some(excerpt) = file {
            let (shown, indent, width) = excerpt.within(layout.columns.saturating_sub(under));
            out.push_str(&format!("\n{:>width$}│ {shown}", excerpt.line, width = margin.len()));
            out.push_str(&format!("\n{margin}│ {}{}", " ".repeat(indent), "^".repeat(width)));
            let used = under + indent + width + 1;
            let fits = |label: &mut String| label.chars().count() <= layout.columns.saturating_sub(used);
            label.take_if(fits).into_iter().for_each(|label| out.push_str(&format!(" {label}")));
        }
        let hint = self.hint.as_ref().map(|hint| format!("hint: {}", printable(hint)));
        for remark in label.into_iter().chain(hint) {
            out.push_str(&format!("\n{}", layout.wrapped(&format!("{margin}= {remark}"), under)));
        }
        out
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.laid_out(Layout::LONG))
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Layout::LONG.list(&self.0))?;
        f.write_str(&count(&self.0))
    }
}

/// "2 errors, 1 warning"; empty where there are none.
pub fn count(faults: &[Fault]) -> String {
    let of = |severity| faults.iter().filter(|fault| fault.severity == severity).count();
    let said = |number: usize, noun: &str| match number {
        0 => None,
        1 => Some(format!("1 {noun}")),
        _ => Some(format!("{number} {noun}s")),
    };
    [said(of(Severity::Error), "error"), said(of(Severity::Warning), "warning")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}
