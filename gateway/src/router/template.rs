//! URI templates (RFC 6570), as far as telling whether a URI may come from one. Pure.

/// A template, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

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
    pub(super) fn parse(text: &str) -> Self {
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

    /// Whether the URI may come from it. All ways are followed side by side, so the time is length times parts.
    pub(super) fn matches(&self, uri: &str) -> bool {
        let bytes = uri.as_bytes();
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
            assert_eq!(Template::parse(template).matches(uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn a_hostile_template_takes_no_longer() {
        assert!(!Template::parse(&"{+a}x".repeat(200)).matches(&"x".repeat(199)));
    }
}
