//! `[auth.roles.NAME]` and `[[auth.certificates]]`: what a role admits, and to whom it is given.

use std::collections::HashSet;
use std::sync::Arc;

use super::transport::globs;
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::nearest::nearest;
use crate::config::read::{ANY, Section};
use crate::policy::config::{Certificate, Role};

/// All roles that are written, also those with faults: who has one of them has no other fault.
pub(super) struct Roles {
    names: Vec<String>,
    roles: Vec<Arc<Role>>,
}

impl Roles {
    /// `[auth.roles]`.
    pub(super) fn read(section: Section<'_>) -> Self {
        let mut all = Self { names: Vec::new(), roles: Vec::new() };
        for (name, section) in section.tables() {
            if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
                let fault = Fault::error("bad-value", format!("invalid name of a role: `{}`", name.escape_debug()));
                section.reading.fault(fault.at(section.own_place()).label("expected up to 64 characters on one line"));
            }
            all.roles.extend(role(&name, section).map(Arc::new));
            all.names.push(name);
        }
        all
    }

    /// The roles at `roles`, each of which there must be; `None` where the key is not written.
    pub(super) fn named(&self, section: &mut Section<'_>) -> Option<Vec<Arc<str>>> {
        let names = section.list("roles", "[\"reader\"]")?;
        for (index, name) in names.iter().enumerate().filter(|(_, name)| !self.names.contains(name)) {
            let all: Vec<&str> = self.names.iter().map(String::as_str).collect();
            let expected = match nearest(name, &all) {
                Some(known) => format!("did you mean \"{known}\"?"),
                None => format!("there is no [auth.roles.{}]", name.escape_debug()),
            };
            section.wrong_item("roles", index, &expected);
        }
        Some(names.into_iter().map(Arc::from).collect())
    }

    /// Those that are right.
    pub(super) fn into_all(self) -> Vec<Arc<Role>> {
        self.roles
    }
}

/// Keys of `[auth.roles.NAME]`.
pub(crate) const ROLES_DOC: TableDoc = TableDoc {
    heading: "[auth.roles.NAME]",
    path: &["auth", "roles", ANY],
    intro: "What a [role](../security.md#roles) lets be seen and used. `upstreams` is the fence; within it a key \
        that is not set admits all.",
    keys: &[&[
        KeyDoc { key: "upstreams", kind: "patterns", default: "required", description: "upstreams, by name" },
        KeyDoc { key: "tools", kind: "patterns", default: "all", description: "tools, by public name" },
        KeyDoc {
            key: "read_only",
            kind: "bool",
            default: "`false`",
            description: "only tools whose definition has `annotations.readOnlyHint: true`",
        },
        KeyDoc {
            key: "resources",
            kind: "list",
            default: "all",
            description: "what public URIs begin with, as `\"file:///srv/docs/\"`",
        },
        KeyDoc { key: "prompts", kind: "patterns", default: "all", description: "prompts, by public name" },
    ]],
    notes: "",
};

fn role(name: &str, mut section: Section<'_>) -> Option<Role> {
    let has_upstreams = section.has("upstreams");
    let upstreams = globs(&mut section, "upstreams");
    let tools = globs(&mut section, "tools");
    let read_only = section.flag("read_only").unwrap_or(false);
    let resources = section.list("resources", "[\"file:///srv/docs/\"]");
    for (index, prefix) in resources.iter().flatten().enumerate() {
        // Every pattern is somebody's mistake: here it would stand for itself.
        let is_prefix =
            prefix.contains(':') && !prefix.contains(['*', '{', '}']) && !prefix.contains(char::is_whitespace);
        if !is_prefix {
            section.wrong_item("resources", index, "expected what URIs begin with, such as \"file:///srv/docs/\"");
        } else if Role::leads_out(prefix) {
            section.wrong_item("resources", index, "expected no `.` or `..` in the path, however it is written");
        }
    }
    let prompts = globs(&mut section, "prompts");
    if !has_upstreams {
        let fault = Fault::error("missing-key", format!("role `{name}` names no `upstreams`")).at(section.own_place());
        section.reading.fault(fault.hint("write upstreams = [\"*\"] for all of them"));
    }
    section.end("[auth.roles.NAME]");
    let resources = resources.map(|some| some.into_iter().map(String::into_boxed_str).collect());
    Some(Role { name: name.into(), upstreams: upstreams?, tools, read_only, resources, prompts })
}

/// Keys of `[[auth.certificates]]`.
pub(crate) const CERTIFICATES_DOC: TableDoc = TableDoc {
    heading: "[[auth.certificates]]",
    path: &["auth", "certificates", ANY],
    intro: "What the bearers of [client certificates](#servertls) see. Without any entry they see everything.",
    keys: &[&[
        KeyDoc {
            key: "name",
            kind: "text",
            default: "required",
            description: "the subject, as principals are shown without `cert:`; `\"*\"`: all that no other entry \
                names. One that none names sees nothing",
        },
        KeyDoc { key: "roles", kind: "list", default: "required", description: "its [roles](../security.md#roles)" },
    ]],
    notes: "",
};

/// `[[auth.certificates]]`.
pub(super) fn certificates(section: &mut Section<'_>, roles: &Roles) -> Vec<Certificate> {
    let (mut all, mut names) = (Vec::new(), HashSet::new());
    for mut entry in section.list_of_tables("certificates") {
        let place = entry.own_place();
        let fault = |kind, text: String| entry.reading.fault(Fault::error(kind, text).at(place.clone()));
        let name = entry.parse("name", |text| match text {
            "" => Err(
                "expected the subject of certificates, as principals are shown without `cert:`; \"*\" for all others"
                    .to_owned(),
            ),
            text => Ok(Arc::<str>::from(text)),
        });
        let given = roles.named(&mut entry);
        match &name {
            None => fault("missing-key", "an entry of certificates has no `name`".to_owned()),
            Some(name) if !names.insert(name.clone()) => {
                fault("duplicate-name", format!("two entries of certificates are named `{name}`"));
            }
            Some(name) if given.is_none() => fault("missing-key", format!("`{name}` has no `roles`")),
            Some(_) => {}
        }
        entry.end("[[auth.certificates]]");
        all.extend(name.zip(given).map(|(name, roles)| Certificate { name, roles }));
    }
    all
}
