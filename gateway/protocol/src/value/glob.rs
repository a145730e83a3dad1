//! Patterns of names: `*` and `?` as in file names. Pure.

/// A pattern of `*` (any run, also none) and `?` (one character); all else stands for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Glob {
    /// What every name that fits begins with.
    begins: Box<str>,
    /// The rest, from the first `*` or `?` on.
    rest: Box<[char]>,
}

impl Glob {
    /// Takes any text: there is no wrong pattern, only one that matches nothing.
    pub fn new(pattern: &str) -> Self {
        let (begins, rest) = pattern.split_at(pattern.find(['*', '?']).unwrap_or(pattern.len()));
        let mut rest: Vec<char> = rest.chars().collect();
        rest.dedup_by(|a, b| *a == '*' && *b == '*');
        Self { begins: begins.into(), rest: rest.into_boxed_slice() }
    }

    /// As it is written, but for stars that say nothing.
    pub fn text(&self) -> String {
        self.begins.chars().chain(self.rest.iter().copied()).collect()
    }

    /// Whether the whole of `name` fits. Only the last `*` is ever tried again, so the time is
    /// bounded by pattern length times name length, whatever a hostile name looks like.
    pub fn matches(&self, name: &str) -> bool {
        // Most names differ in the first letter, and a start tries thousands.
        if !self.begins.is_empty() && self.begins.as_bytes().first() != name.as_bytes().first() {
            return false;
        }
        let Some(name) = name.strip_prefix(&*self.begins) else { return false };
        let (mut pattern, mut rest) = (&self.rest[..], name.chars());
        let mut star: Option<(&[char], std::str::Chars<'_>)> = None;
        loop {
            match (pattern.split_first(), rest.clone().next()) {
                (Some(('*', after)), _) => {
                    star = Some((after, rest.clone()));
                    pattern = after;
                }
                (Some((&want, after)), Some(got)) if want == '?' || want == got => {
                    pattern = after;
                    rest.next();
                }
                (None, None) => return true,
                (_, got) => {
                    // A mismatch: the last star takes one character more, if there is one.
                    let Some((after, mut from)) = star.take() else { return false };
                    if got.is_none() || from.next().is_none() {
                        return false;
                    }
                    pattern = after;
                    rest = from.clone();
                    star = Some((after, from));
                }
            }
        }
    }

    /// What every name that fits begins with.
    pub fn begins(&self) -> &str {
        &self.begins
    }

    /// Whether every name fits.
    pub fn is_any(&self) -> bool {
        self.begins.is_empty() && matches!(self.rest[..], ['*'])
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}
