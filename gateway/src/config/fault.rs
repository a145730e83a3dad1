//! What is wrong with a configuration: what, where, and what to do, for a person to read.

use std::fmt;

use super::excerpt::{Excerpt, printable};

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
    /// A fault that keeps the gateway from starting.
    pub(crate) fn error(kind: &'static str, text: impl Into<String>) -> Self {
        Self { severity: Severity::Error, kind, text: text.into(), place: None, label: None, hint: None }
    }

    /// A fault that does not.
    pub(crate) fn warning(kind: &'static str, text: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(kind, text) }
    }

    /// Faults are shown in the order of their places.
    pub(super) fn order(&self) -> impl Ord + '_ {
        match &self.place {
            Some(Place::File { path, excerpt }) => (0, path.as_str(), excerpt.line, excerpt.column),
            Some(Place::Path(path)) => (0, path.as_str(), 0, 0),
            Some(Place::Variable(name)) => (1, name.as_str(), 0, 0),
            Some(Place::Flag(name)) => (2, *name, 0, 0),
            None => (3, "", 0, 0),
        }
    }

    pub(super) fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}[{}]: {}", self.kind, printable(&self.text))?;
        let mut margin = " ".to_owned();
        match &self.place {
            Some(Place::File { path, excerpt }) => {
                margin = " ".repeat(excerpt.line.to_string().len().max(2));
                write!(f, "\n{margin}┌─ {}:{}:{}", printable(path), excerpt.line, excerpt.column)?;
                write!(f, "\n{:>width$}│ {}", excerpt.line, excerpt.shown, width = margin.len())?;
                let caret = " ".repeat(excerpt.indent) + &"^".repeat(excerpt.width);
                write!(f, "\n{margin}│ {caret}")?;
            }
            Some(Place::Path(path)) => write!(f, "\n{margin}┌─ {}", printable(path))?,
            Some(Place::Variable(name)) => write!(f, "\n{margin}┌─ environment variable {}", printable(name))?,
            Some(Place::Flag(name)) => write!(f, "\n{margin}┌─ flag {name}")?,
            None => {}
        }
        match (&self.label, &self.place) {
            (Some(label), Some(Place::File { .. })) => write!(f, " {}", printable(label))?,
            (Some(label), _) => write!(f, "\n{margin}= {}", printable(label))?,
            (None, _) => {}
        }
        match &self.hint {
            Some(hint) => write!(f, "\n{margin}= hint: {}", printable(hint)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.0 {
            writeln!(f, "{fault}")?;
        }
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
