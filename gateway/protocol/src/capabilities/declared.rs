//! What a client can be asked: its declared capabilities, as far as the gateway acts on them.

use crate::json;
use crate::revision::Revision;

/// A set of what a client can be asked. Small, compared and hashed as one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Capabilities(u16);

impl Capabilities {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Elicitation by a form.
    pub const FORM: Self = Self(1);
    /// Elicitation by a page that the person opens.
    pub const URL: Self = Self(1 << 1);
    /// Sampling.
    pub const SAMPLING: Self = Self(1 << 2);
    /// Sampling with tools.
    pub const SAMPLING_TOOLS: Self = Self(1 << 3);
    /// Sampling with what other upstreams know (the `context` part).
    pub const SAMPLING_OTHERS: Self = Self(1 << 4);
    /// Roots.
    pub const ROOTS: Self = Self(1 << 5);
    /// Pages of tools (`io.modelcontextprotocol/ui`).
    pub const APPS: Self = Self(1 << 6);
    /// Tasks: the extension `io.modelcontextprotocol/tasks` of stateless revisions.
    pub const TASKS: Self = Self(1 << 7);
    /// Every question, with all that belongs to it.
    pub const QUESTIONS: Self = Self(0b11_1111);

    /// Reads the capabilities that a client of `revision` has declared; what its revision cannot have does not count.
    pub fn parse(raw: &[u8], revision: Revision) -> Self {
        if raw == b"{}" {
            return Self::NONE;
        }
        let mut found = Self::NONE;
        for member in json::Members::of(raw).into_iter().flatten().flatten() {
            let value = &raw[member.value..member.end];
            if !value.starts_with(b"{") {
                continue;
            }
            let has = |key| json::get(value, key).is_some_and(|raw| raw.starts_with(b"{"));
            match json::unquote(&raw[member.start..member.key_end]).as_deref() {
                Some("elicitation") if revision >= Revision::V2025_11_25 => {
                    let (form, url) = (has("form"), has("url"));
                    // Neither said means forms: what the capability meant before there were pages.
                    found = found.with_if(Self::FORM, form || !url).with_if(Self::URL, url);
                }
                Some("elicitation") => found = found.with_if(Self::FORM, revision >= Revision::V2025_06_18),
                Some("sampling") => {
                    let later = revision >= Revision::V2025_11_25;
                    found = found
                        .with(Self::SAMPLING)
                        .with_if(Self::SAMPLING_TOOLS, later && has("tools"))
                        .with_if(Self::SAMPLING_OTHERS, later && has("context"));
                }
                Some("roots") => found = found.with(Self::ROOTS),
                Some("extensions") => {
                    found = found
                        .with_if(Self::APPS, has(EXTENSION_APPS))
                        .with_if(Self::TASKS, revision.is_modern() && has(EXTENSION_TASKS));
                }
                _ => {}
            }
        }
        found
    }

    /// Whether all of `other` is in it.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both have.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn with_if(self, other: Self, holds: bool) -> Self {
        if holds { self.with(other) } else { self }
    }

    /// As a client of `revision` declares them; what the revision cannot have is left out.
    pub fn to_json(self, revision: Revision) -> String {
        self.declare(revision, "")
    }

    /// As [`Self::to_json`], with more extensions: raw members, joined by commas.
    pub(crate) fn declare(self, revision: Revision, more: &str) -> String {
        let mut parts = Vec::new();
        let (later, modern) = (revision >= Revision::V2025_11_25, revision.is_modern());
        let both = |kinds: &[(Self, &str)]| {
            let named: Vec<_> = kinds.iter().filter(|(one, _)| self.has(*one)).map(|(_, text)| *text).collect();
            format!("{{{}}}", named.join(","))
        };
        if later && (self.has(Self::FORM) || self.has(Self::URL)) {
            parts.push(format!("\"elicitation\":{}", both(&[(Self::FORM, "\"form\":{}"), (Self::URL, "\"url\":{}")])));
        } else if revision >= Revision::V2025_06_18 && self.has(Self::FORM) {
            parts.push("\"elicitation\":{}".to_owned());
        }
        if self.has(Self::SAMPLING) {
            let inner = [(Self::SAMPLING_TOOLS, "\"tools\":{}"), (Self::SAMPLING_OTHERS, "\"context\":{}")];
            parts.push(format!("\"sampling\":{}", both(if later { &inner } else { &[] })));
        }
        if self.has(Self::ROOTS) {
            let text = if modern { "\"roots\":{}" } else { "\"roots\":{\"listChanged\":true}" };
            parts.push(text.to_owned());
        }
        let tasks = (Self::TASKS, "\"io.modelcontextprotocol/tasks\":{}");
        let apps = (Self::APPS, "\"io.modelcontextprotocol/ui\":{\"mimeTypes\":[\"text/html;profile=mcp-app\"]}");
        let known: &[_] = if modern { &[apps, tasks] } else { &[apps] };
        let extensions = both(&[known, &[(Self::NONE, more)][..usize::from(!more.is_empty())]].concat());
        if extensions != "{}" {
            parts.push(format!("\"extensions\":{extensions}"));
        }
        format!("{{{}}}", parts.join(","))
    }
}

/// The extension that is tasks.
pub const EXTENSION_TASKS: &str = "io.modelcontextprotocol/tasks";
/// The extension that is pages of tools.
pub const EXTENSION_APPS: &str = "io.modelcontextprotocol/ui";

/// Whether the gateway knows an extension by name.
pub fn is_known(extension: &str) -> bool {
    matches!(extension, EXTENSION_TASKS | EXTENSION_APPS)
}

/// The extensions that a client declares and the gateway does not know.
pub fn unknown_extensions(raw: &[u8]) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    let all = if raw == b"{}" { None } else { json::get(raw, "extensions") };
    all.into_iter().flat_map(names).filter(|name| !is_known(name))
}

/// What a client declares, without extensions that the gateway does not know.
pub fn without_unknown_extensions(raw: &[u8]) -> bytes::Bytes {
    let (mut out, mut comma) = (b"{".to_vec(), false);
    for member in json::Members::of(raw).into_iter().flatten().flatten() {
        out.extend_from_slice(if std::mem::replace(&mut comma, true) { b"," } else { b"" });
        let value = &raw[member.value..member.end];
        if json::unquote(&raw[member.start..member.key_end]).as_deref() != Some("extensions") {
            out.extend_from_slice(&raw[member.start..member.end]);
            continue;
        }
        let known =
            json::Members::of(value).into_iter().flatten().flatten().filter(|member| {
                json::unquote(&value[member.start..member.key_end]).is_some_and(|name| is_known(&name))
            });
        let kept: Vec<_> = known.map(|member| &value[member.start..member.end]).collect();
        out.extend_from_slice(&[&b"\"extensions\":{"[..], &kept.join(&b','), b"}"].concat());
    }
    out.push(b'}');
    out.into()
}

fn names(extensions: &[u8]) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    let members = json::Members::of(extensions).into_iter().flatten().flatten();
    members.filter_map(|member| json::unquote(&extensions[member.start..member.key_end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision as R;

    #[test]
    fn a_set_survives_being_declared() {
        for bits in 0..1u16 << 8 {
            let set = Capabilities(bits);
            // Parts of sampling mean nothing without it.
            if !set.has(Capabilities::SAMPLING) && bits & 0b1_1000 != 0 {
                continue;
            }
            assert_eq!(Capabilities::parse(set.to_json(R::V2026_07_28).as_bytes(), R::V2026_07_28), set, "{bits:b}");
        }
    }

    #[test]
    fn unknown_extensions_can_be_left_out() {
        let raw = br#"{"roots":{},"extensions":{"a/b":{},"io.modelcontextprotocol/ui":{}},"x":1}"#;
        assert!(unknown_extensions(raw).eq(["a/b"]));
        let rest = without_unknown_extensions(raw);
        assert_eq!(rest, r#"{"roots":{},"extensions":{"io.modelcontextprotocol/ui":{}},"x":1}"#);
        assert!(unknown_extensions(&rest).chain(unknown_extensions(b"{}")).next().is_none());
    }

    #[test]
    fn what_a_revision_cannot_have_does_not_count() {
        let all = br#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{},"x":1}"#;
        for (revision, expected) in [
            (R::V2024_11_05, Capabilities::SAMPLING.with(Capabilities::ROOTS)),
            (R::V2025_03_26, Capabilities::SAMPLING.with(Capabilities::ROOTS)),
            (R::V2025_06_18, Capabilities::SAMPLING.with(Capabilities::ROOTS).with(Capabilities::FORM)),
            (R::V2025_11_25, Capabilities::QUESTIONS),
            (R::V2026_07_28, Capabilities::QUESTIONS),
        ] {
            assert_eq!(Capabilities::parse(all, revision), expected, "{revision}");
        }
        let only = |raw: &[u8]| Capabilities::parse(raw, R::V2025_11_25);
        assert_eq!(only(br#"{"elicitation":{}}"#), Capabilities::FORM);
        assert_eq!(only(br#"{"elicitation":{"url":{}}}"#), Capabilities::URL);
        assert_eq!(only(br#"{"elicitation":null,"sampling":true}"#), Capabilities::NONE);
    }
}
