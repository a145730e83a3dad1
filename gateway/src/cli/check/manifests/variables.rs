//! The variables of a container: those with their value among the manifests, and stand-ins for those of Secrets elsewhere.

use std::path::PathBuf;

use crate::config::source::node::{Node, Shape};

use super::object::{list, text};
use super::objects::Objects;

/// The variables of one container.
#[derive(Default)]
pub(super) struct Variables {
    known: Vec<(String, String)>,
    /// Names whose value is elsewhere.
    unseen: Vec<String>,
    /// Whether there are others whose names are elsewhere, too.
    is_open: bool,
}

impl Variables {
    /// Those of a container.
    pub(super) fn of(container: &Node, objects: &Objects) -> Self {
        let mut variables = Self::default();
        for source in list(container, "envFrom") {
            let prefix = text(source, "prefix").unwrap_or_default();
            for (key, kind) in [("secretRef", "Secret"), ("configMapRef", "ConfigMap")] {
                let Some(reference) = source.get(key) else { continue };
                match objects.data(kind, text(reference, "name").unwrap_or_default()) {
                    Some(data) => {
                        data.iter()
                            .for_each(|(name, value)| variables.known.push((format!("{prefix}{name}"), value.clone())));
                    }
                    None => variables.is_open = true,
                }
            }
        }
        for variable in list(container, "env") {
            let Some(name) = text(variable, "name") else { continue };
            variables.known.retain(|(known, _)| known != name);
            match (variable.get("value").map(|value| &value.shape), variable.get("valueFrom")) {
                (Some(Shape::Text(value)), _) => variables.known.push((name.to_owned(), value.clone())),
                (_, Some(from)) => match referred(from, objects) {
                    Some(value) => variables.known.push((name.to_owned(), value)),
                    None => variables.unseen.push(name.to_owned()),
                },
                // No value is an empty one.
                _ => variables.known.push((name.to_owned(), String::new())),
            }
        }
        variables
    }

    /// Those of a container that nobody knows.
    pub(super) fn of_anybody() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// The value of one.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.known.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All of them, and which have a stand-in: a text that may be a token, a key or an address.
    pub(super) fn with_stand_ins(self, files: &[(PathBuf, String)]) -> (Vec<(String, String)>, Vec<String>) {
        let Self { mut known, mut unseen, is_open } = self;
        if is_open {
            let referred = files.iter().flat_map(|(_, text)| references(text));
            for name in referred {
                if !unseen.iter().any(|one| one == name) && !known.iter().any(|(one, _)| one == name) {
                    unseen.push(name.to_owned());
                }
            }
        }
        let stand_in = |at| format!("https://stand-in-{at}.invalid/0123456789012345678901234567890123456789");
        known.extend(unseen.iter().enumerate().map(|(at, name)| (name.clone(), stand_in(at))));
        (known, unseen)
    }
}

/// The value that one key of a Secret or a ConfigMap among the manifests has.
fn referred(from: &Node, objects: &Objects) -> Option<String> {
    let (reference, kind) = match from.get("secretKeyRef") {
        Some(reference) => (reference, "Secret"),
        None => (from.get("configMapKeyRef")?, "ConfigMap"),
    };
    let data = objects.data(kind, text(reference, "name")?)?;
    data.iter().find(|(key, _)| text(reference, "key") == Some(key.as_str())).map(|(_, value)| value.clone())
}

/// The variables that a text refers to and that have no other value there.
fn references(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("${").filter(move |(at, _)| !text[..*at].ends_with('$'));
    starts.filter_map(move |(at, _)| {
        let rest = &text[at + 2..];
        let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '_')?;
        let is_one = end > 0 && (rest[end..].starts_with('}') || rest[end..].starts_with(":?"));
        is_one.then(|| &rest[..end])
    })
}
