//! Patterns of names: `*` and `?` as in file names. Pure.

/// A pattern of `*` (any run, also none) and `?` (one character); all else stands for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Glob(Box<[char]>);

impl Glob {
    /// Takes any text: there is no wrong pattern, only one that matches nothing.
    pub fn new(pattern: &str) -> Self {
        let mut chars: Vec<char> = pattern.chars().collect();
        chars.dedup_by(|a, b| *a == '*' && *b == '*');
        Self(chars.into_boxed_slice())
    }

    /// As it is written, but for stars that say nothing.
    pub fn text(&self) -> String {
        self.0.iter().collect()
    }

    /// Whether the whole of `name` fits. Only the last `*` is ever tried again, so the time is
    /// bounded by pattern length times name length, whatever a hostile name looks like.
    pub fn matches(&self, name: &str) -> bool {
        // Most names differ in the first character, and a start tries thousands.
        if self.0.first().is_some_and(|first| !matches!(first, '*' | '?') && !name.starts_with(*first)) {
            return false;
        }
        let (mut pattern, mut rest) = (&self.0[..], name.chars());
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
    pub fn begins(&self) -> String {
        self.0.iter().take_while(|letter| !matches!(letter, '*' | '?')).collect()
    }

    /// Whether every name fits.
    pub fn is_any(&self) -> bool {
        matches!(self.0[..], ['*'])
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{letter}"))
    }
}
