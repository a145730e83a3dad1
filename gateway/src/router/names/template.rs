//! URI templates (RFC 6570), as far as telling whether a URI may come from one. Pure.

use crate::steps;
use std::cmp::Reverse;

/// A template of more parts matches nothing: no program writes one, and each costs a walk over the URI.
const PARTS_MAX: usize = 64;
/// So much is looked at for one look-up, in bytes of URIs times parts of templates; then nothing more matches.
const LOOKS_MAX: usize = 4 << 20;

/// A template, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

/// How much may still be looked at.
#[derive(Debug)]
pub(crate) struct Looks(usize);

impl Default for Looks {
    fn default() -> Self {
        Self(LOOKS_MAX)
    }
}

impl Looks {
    fn take(&mut self, cost: usize) -> bool {
        let left = self.0.checked_sub(cost);
        steps::add(if left.is_some() { cost } else { 1 });
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Stands as it is.
    Literal(Box<str>),
    /// `{name}`: at least one character, and none of the path's separators.
    Segment,
    /// `{+name}`, `{/name}`, `{?name}` and the like: anything, or nothing.
    Any,
}

impl Template {
    /// Takes a template apart; an unclosed brace stands for itself.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, (inner, after))) = rest.split_once('{').and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            if !before.is_empty() {
                parts.push(Part::Literal(before.into()));
            }
            let is_simple = inner.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && !inner.ends_with('*');
            parts.push(if is_simple { Part::Segment } else { Part::Any });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.into()));
        }
        Self(parts)
    }

    /// How much of it is literal: the more, the fewer URIs it speaks of. Among equals one without `{+…}` is before others.
    pub(crate) fn literalness(&self) -> (usize, Reverse<usize>) {
        let literal = |part: &Part| if let Part::Literal(text) = part { text.len() } else { 0 };
        let open = self.0.iter().filter(|part| **part == Part::Any).count();
        (self.0.iter().map(literal).sum(), Reverse(open))
    }

    /// What every URI from it begins with.
    pub(crate) fn begin(&self) -> &str {
        if let Some(Part::Literal(text)) = self.0.first() { text } else { "" }
    }

    /// Whether some URI may come from both. Two that are too long to tell are taken to have one.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (self.steps(), other.steps());
        let width = two.len() + 1;
        if one.len().saturating_mul(width) > STEPS_MAX {
            return true;
        }
        let mut seen = vec![false; (one.len() + 1) * width];
        let mut open = vec![(0, 0)];
        while let Some((i, j)) = open.pop() {
            if (i, j) == (one.len(), two.len()) {
                return true;
            }
            if std::mem::replace(&mut seen[i * width + j], true) {
                continue;
            }
            let (a, b) = (one.get(i), two.get(j));
            open.extend(a.filter(|step| step.is_many).map(|_| (i + 1, j)));
            open.extend(b.filter(|step| step.is_many).map(|_| (i, j + 1)));
            if let (Some(a), Some(b)) = (a, b)
                && a.of.meets(b.of)
            {
                open.push((i + usize::from(!a.is_many), j + usize::from(!b.is_many)));
            }
        }
        false
    }

    fn steps(&self) -> Vec<Step> {
        let step = |of, is_many| Step { of, is_many };
        let mut steps = Vec::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => steps.extend(text.bytes().map(|byte| step(Class::Byte(byte), false))),
                Part::Segment => steps.extend([step(Class::Inner, false), step(Class::Inner, true)]),
                Part::Any => steps.push(step(Class::Any, true)),
            }
        }
        steps
    }

    /// Whether the URI may come from it. All ways are followed side by side, so the time is length times parts, as far as `looks`
    /// has that left.
    pub(crate) fn matches(&self, uri: &str, looks: &mut Looks) -> bool {
        let bytes = uri.as_bytes();
        steps::add(1);
        // Most differ at their beginning.
        if let Some(Part::Literal(text)) = self.0.first()
            && !bytes.starts_with(text.as_bytes())
        {
            return false;
        }
        if self.0.len() > PARTS_MAX || !looks.take((bytes.len() + 1) * self.0.len()) {
            return false;
        }
        let mut reached = vec![false; bytes.len() + 1];
        reached[0] = true;
        for part in &self.0 {
            let mut next = vec![false; bytes.len() + 1];
            match part {
                Part::Literal(text) => {
                    for at in (0..=bytes.len()).filter(|at| reached[*at]) {
                        if bytes[at..].starts_with(text.as_bytes()) {
                            next[at + text.len()] = true;
                        }
                    }
                }
                Part::Segment => {
                    for at in 1..=bytes.len() {
                        next[at] = (reached[at - 1] || next[at - 1]) && !matches!(bytes[at - 1], b'/' | b'?' | b'#');
                    }
                }
                Part::Any => {
                    let mut open = false;
                    for at in 0..=bytes.len() {
                        open |= reached[at];
                        next[at] = open;
                    }
                }
            }
            reached = next;
        }
        reached[bytes.len()]
    }
}

/// Templates whose lengths multiply to more are not compared.
const STEPS_MAX: usize = 1 << 20;

/// One byte of a URI, or any number of them.
struct Step {
    of: Class,
    is_many: bool,
}

/// Which bytes a step takes.
#[derive(Clone, Copy)]
enum Class {
    Byte(u8),
    /// All but the path's separators.
    Inner,
    Any,
}

impl Class {
    fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Byte(a), Self::Byte(b)) => a == b,
            (Self::Byte(byte), Self::Inner) | (Self::Inner, Self::Byte(byte)) => !matches!(byte, b'/' | b'?' | b'#'),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_match_as_a_reader_expects() {
        for (template, uri, expected) in [
            ("file:///{path}", "file:///a", true),
            ("file:///{path}", "file:///a/b", false),
            ("file:///{path}", "file:///", false),
            ("file:///{+path}", "file:///a/b", true),
            ("x://{a}/{b}/end", "x://1/2/end", true),
            ("x://{a}/{b}/end", "x://1/2/en", false),
            ("x://list{?page}", "x://list", true),
            ("x://list{?page}", "x://list?page=2", true),
            ("x://{a}{b}", "x://1", false),
            ("plain:", "plain:", true),
            ("odd{", "odd{", true),
        ] {
            assert_eq!(Template::parse(template).matches(uri, &mut Looks::default()), expected, "{template} {uri}");
        }
    }

    #[test]
    fn templates_overlap_where_one_uri_may_come_from_both() {
        for (one, two, expected) in [
            ("{+any}", "db://{x}", true),
            ("db://{x}", "db://{y}/z", false),
            ("db://a{x}", "db://{y}b", true),
            ("db://a", "db://{x}", true),
            ("db://a/b", "db://{x}", false),
            ("file:///{+path}", "file:///{name}.md", true),
            ("x://{a}", "y://{a}", false),
            ("x://list{?page}", "x://list", true),
        ] {
            let (a, b) = (Template::parse(one), Template::parse(two));
            assert_eq!((a.overlaps(&b), b.overlaps(&a)), (expected, expected), "{one} {two}");
        }
        let (long, other) = (Template::parse(&"{+a}x".repeat(400)), Template::parse(&"y{+a}".repeat(400)));
        assert!(long.overlaps(&other));
        let rank = |text| Template::parse(text).literalness();
        assert!(rank("db://{x}") > rank("{+any}") && rank("db://{x}") > rank("db://{+x}"));
    }

    #[test]
    fn a_hostile_template_takes_no_longer() {
        assert!(!Template::parse(&"{+a}x".repeat(30)).matches(&"x".repeat(29), &mut Looks::default()));
        assert!(!Template::parse(&"{+a}".repeat(PARTS_MAX + 1)).matches("x", &mut Looks::default()));
    }

    #[test]
    fn a_look_up_among_any_number_of_templates_costs_so_much_and_no_more() {
        let (template, uri) = (Template::parse(&"{+a}x".repeat(30)), "x".repeat(8192));
        let mut looks = Looks::default();
        let cost = crate::steps::of(|| (0..10_000).for_each(|_| _ = template.matches(&uri, &mut looks))).unwrap();
        assert!(cost < 2 * LOOKS_MAX as u64, "{cost} steps");
    }
}
