//! What roles let their holders see and use: rules over public names, pure.

use crate::caller::dot_segments::can_climb;
use crate::protocol::value::Glob;
use std::sync::Arc;

/// What a named role admits. The upstreams are the fence; within it, a part that is not said is whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// Its name.
    pub name: Arc<str>,
    /// Upstreams, by name.
    pub upstreams: Vec<Glob>,
    /// Tools, by public name.
    pub tools: Option<Vec<Glob>>,
    /// Only tools whose definition says that they change nothing.
    pub read_only: bool,
    /// Resources, by what their public URI begins with.
    pub resources: Option<Vec<Box<str>>>,
    /// Prompts, by public name.
    pub prompts: Option<Vec<Glob>>,
}

/// All that one principal may see and use: what any of its roles admits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rights(Vec<Arc<Role>>);

impl Role {
    /// Whether a prefix of URIs leads out of what it begins with: to where depends on who resolves it.
    pub fn leads_out(prefix: &str) -> bool {
        // An encoded percent sign may stand in a name unless it begins another escape.
        let is_escape = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
        prefix.split("%25").skip(1).any(is_escape) || can_climb(&prefix.replace("%25", "_"))
    }

    fn sees(&self, upstream: &str) -> bool {
        fits(&self.upstreams, upstream)
    }
}

impl Rights {
    /// Those of these roles; of none, nothing.
    pub fn of(roles: impl IntoIterator<Item = Arc<Role>>) -> Self {
        Self(roles.into_iter().collect())
    }

    /// The roles.
    pub fn roles(&self) -> &[Arc<Role>] {
        &self.0
    }

    /// Whether anything of an upstream may be seen.
    pub fn sees(&self, upstream: &str) -> bool {
        self.0.iter().any(|role| role.sees(upstream))
    }

    /// Whether all of an upstream may be used, also what no list names.
    pub fn has_whole(&self, upstream: &str) -> bool {
        self.at(upstream).any(|role| {
            let all = |some: &Option<Vec<Glob>>| some.as_ref().is_none_or(|some| some.iter().any(Glob::is_any));
            all(&role.tools) && !role.read_only && role.resources.is_none() && all(&role.prompts)
        })
    }

    /// Whether a tool may be used; `changes_nothing` says whether its definition claims that.
    pub fn has_tool(&self, upstream: &str, public: &str, changes_nothing: impl Fn() -> bool) -> bool {
        self.at(upstream).any(|role| {
            role.tools.as_ref().is_none_or(|some| fits(some, public)) && (!role.read_only || changes_nothing())
        })
    }

    /// Whether a prompt may be used.
    pub fn has_prompt(&self, upstream: &str, public: &str) -> bool {
        self.at(upstream).any(|role| role.prompts.as_ref().is_none_or(|some| fits(some, public)))
    }

    /// Whether a resource may be read.
    pub fn has_resource(&self, upstream: &str, uri: &str) -> bool {
        self.at(upstream).any(|role| {
            role.resources.as_ref().is_none_or(|some| some.iter().any(|prefix| is_below(prefix, uri).is_some()))
        })
    }

    /// Whether all that a template makes may be read.
    pub fn has_template(&self, upstream: &str, template: &str) -> bool {
        let (begins, _) = template.split_once('{').unwrap_or((template, ""));
        let is_open = begins.len() < template.len();
        self.at(upstream).any(|role| {
            let Some(some) = &role.resources else { return true };
            some.iter().any(|prefix| match is_below(prefix, begins) {
                // What the first expression makes would stand at once behind the prefix.
                Some("") => !is_open || !ends_in_a_word(prefix),
                below => below.is_some(),
            })
        })
    }

    /// Checks if a value may stand in an expression of a template of an upstream. Where resources are limited by prefixes, a value with a
    /// dot segment could lead out of them.
    pub fn has_template_value(&self, upstream: &str, value: &str) -> bool {
        self.at(upstream).any(|role| role.resources.is_none()) || !can_climb(&value.replace(' ', "%20"))
    }

    fn at(&self, upstream: &str) -> impl Iterator<Item = &Arc<Role>> {
        self.0.iter().filter(move |role| role.sees(upstream))
    }
}

fn fits(globs: &[Glob], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

fn ends_in_a_word(prefix: &str) -> bool {
    prefix.ends_with(char::is_alphanumeric)
}

/// What of a URI stands behind a prefix. A prefix that ends in a word has the whole word: `file:///srv/pub` is not the begin of
/// `file:///srv/public`. A URI that climbs out of what it begins with begins with nothing.
fn is_below<'a>(prefix: &str, uri: &'a str) -> Option<&'a str> {
    let rest = uri.strip_prefix(prefix)?;
    let is_whole = !ends_in_a_word(prefix) || rest.is_empty() || rest.starts_with(['/', '?', '#']);
    (is_whole && !can_climb(rest)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(upstreams: &[&str]) -> Role {
        let upstreams = upstreams.iter().map(|one| Glob::new(one)).collect();
        Role { name: "r".into(), upstreams, tools: None, read_only: false, resources: None, prompts: None }
    }

    fn rights(role: Role) -> Rights {
        Rights::of([Arc::new(role)])
    }

    #[test]
    fn a_part_that_is_not_said_is_whole_within_the_upstreams_and_nothing_is_beyond_them() {
        let whole = rights(role(&["a", "b-*"]));
        for (upstream, is_seen) in [("a", true), ("b-1", true), ("c", false), ("b", false)] {
            let all = [
                whole.sees(upstream),
                whole.has_whole(upstream),
                whole.has_tool(upstream, "t", || false),
                whole.has_prompt(upstream, "p"),
                whole.has_resource(upstream, "m:1"),
                whole.has_template(upstream, "m:{x}"),
            ];
            assert_eq!(all, [is_seen; 6], "{upstream}");
        }
        assert!(!Rights::default().sees("a"));
    }

    #[test]
    fn tools_are_by_pattern_and_by_what_they_claim() {
        let some = rights(Role { tools: Some(vec![Glob::new("a__r*")]), read_only: true, ..role(&["*"]) });
        let has = |name: &str, claims: bool| some.has_tool("a", name, || claims);
        assert_eq!([has("a__read", true), has("a__read", false), has("a__write", true)], [true, false, false]);
        assert!(!some.has_whole("a"));
        // Roles add up, and one does not widen another.
        let two = Rights::of([
            Arc::new(Role { tools: Some(vec![Glob::new("*")]), read_only: true, ..role(&["a"]) }),
            Arc::new(Role { tools: Some(vec![Glob::new("b__x")]), ..role(&["b"]) }),
        ]);
        let has = |upstream: &str, name: &str, claims: bool| two.has_tool(upstream, name, || claims);
        assert!(
            has("a", "a__y", true) && !has("a", "a__y", false) && has("b", "b__x", false) && !has("b", "b__y", true)
        );
    }

    #[test]
    fn a_prefix_of_uris_ends_at_a_word_and_nothing_climbs_out_of_it() {
        let some = |prefix: &str| rights(Role { resources: Some(vec![prefix.into()]), ..role(&["*"]) });
        let has = |prefix: &str, uri: &str| some(prefix).has_resource("a", uri);
        for uri in [
            "file:///srv/pub",
            "file:///srv/pub/x",
            "file:///srv/pub?x",
            "file:///srv/pub/a..b/...",
            "file:///srv/pub#x",
        ] {
            assert!(has("file:///srv/pub", uri), "{uri}");
        }
        for uri in [
            "file:///srv/public",
            "file:///srv/pub.old",
            "file:///srv/pub-old/x",
            "file:///srv",
            "FILE:///srv/pub/x",
            "file:///srv/pub/../secret",
            "file:///srv/pub/x/..",
            "file:///srv/pub/./x",
            "file:///srv/pub/%2e%2e/secret",
            "file:///srv/pub/%2E./secret",
            "file:///srv/pub/..%2fsecret",
            "file:///srv/pub/..%5Csecret",
            "file:///srv/pub/..\\secret",
            "file:///srv/pub/%252e%252e/secret",
            "file:///srv/pub/..?x",
            "file:///srv/pub/.\t./x",
            "file:///srv/pub/.\n./x",
            "file:///srv/pub/.. ",
            "file:///srv/pub/..\u{1}/x",
            "file:///srv/pub/..;/x",
        ] {
            assert!(!has("file:///srv/pub", uri), "{uri}");
        }
        for prefix in
            ["file:///srv/../etc/", "file:///srv/%2e%2E/x", "file:///srv/%252e./", "file:///srv/..", "file:///./x"]
        {
            assert!(Role::leads_out(prefix), "{prefix}");
        }
        for prefix in ["file:///srv/pub", "file:///srv/a..b/.git/", "https://h/50%25/", "note:a-"] {
            assert!(!Role::leads_out(prefix), "{prefix}");
        }
        assert!(has("note:a-", "note:a-1") && !has("note:a-", "note:b-1") && !has("note:", "note:.."));
    }

    #[test]
    fn a_template_is_seen_where_all_that_it_makes_may_be_read() {
        let some = |prefix: &str| rights(Role { resources: Some(vec![prefix.into()]), ..role(&["*"]) });
        let has = |prefix: &str, template: &str| some(prefix).has_template("a", template);
        assert!(has("file:///srv/", "file:///srv/{+path}") && has("file:///srv", "file:///srv/{x}"));
        assert!(has("m:1", "m:1") && has("m:", "m:{x}"));
        for template in ["file:///{+path}", "file:///srv{+path}", "{+any}", "file:///srv/../{x}"] {
            assert!(!has("file:///srv", template), "{template}");
        }
    }
}
