//! The table of a rename commit: names, paths and files, before and after.
//!
//! ```text
//! # a comment
//! old -> new                          a name, everywhere
//! a::old -> b::new                    a path of modules, everywhere
//! gateway/src/http/**: old -> new     only in these files (`*` within a folder, `**` across folders), named as before the commit
//! old/path.rs => new/path.rs          a moved file
//! old/folder/ => new/folder/          all files of a moved folder
//! skip gateway/src/lib.rs             a file that a person compares
//! ```
//!
//! A name may have several targets, itself included: each place must then have one of them. A target for some files replaces the one for
//! all files.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use super::lexer::{Kind, Token, lex};

/// A line of the table.
#[derive(Debug)]
struct Entry {
    line: usize,
    /// The pattern of its files; `None` for all.
    files: Option<String>,
    old: Vec<String>,
    new: Vec<String>,
    uses: Cell<usize>,
}

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
    /// Files and folders that moved, each with its line.
    moves: Vec<(usize, String, String, Cell<usize>)>,
    skipped: Vec<(usize, String, Cell<usize>)>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// With the number of a line that has no known form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split_once('#').filter(|(before, _)| !before.ends_with('r')).map_or(line, |(line, _)| line);
            if !line.trim().is_empty() {
                table.add(at + 1, line.trim()).ok_or_else(|| format!("line {} of the table: {line}", at + 1))?;
            }
        }
        Ok(table)
    }

    fn add(&mut self, line: usize, text: &str) -> Option<()> {
        if let Some(pattern) = text.strip_prefix("skip ") {
            self.skipped.push((line, pattern.trim().to_owned(), Cell::new(0)));
            return Some(());
        }
        if let Some((old, new)) = text.split_once("=>") {
            let (old, new) = (old.trim().to_owned(), new.trim().to_owned());
            let is_valid = old.ends_with('/') == new.ends_with('/') && !old.is_empty();
            return is_valid.then(|| self.moves.push((line, old, new, Cell::new(0))));
        }
        let (files, names) = match text.split_once(": ") {
            Some((files, names)) => (Some(files.trim().to_owned()), names),
            None => (None, text),
        };
        let (old, new) = names.split_once("->")?;
        let (old, new) = (names_of(old)?, names_of(new)?);
        self.entries.push(Entry { line, files, old, new, uses: Cell::new(0) });
        Some(())
    }

    /// Whether a person compares a file.
    #[must_use]
    pub fn skips(&self, path: &str) -> bool {
        let found = self.skipped.iter().filter(|(_, pattern, _)| fits(pattern, path));
        found.map(|(_, _, uses)| uses.set(uses.get() + 1)).count() > 0
    }

    /// The new path of a file, if the table moves it.
    #[must_use]
    pub fn moved(&self, path: &str) -> Option<String> {
        // The longest entry is the most specific one.
        let mut fitting: Vec<_> = self
            .moves
            .iter()
            .filter_map(|(_, old, new, uses)| {
                let rest = path.strip_prefix(old.as_str()).filter(|rest| old.ends_with('/') || rest.is_empty())?;
                Some((old.len(), format!("{new}{rest}"), uses))
            })
            .collect();
        fitting.sort_by_key(|(length, _, _)| *length);
        let (_, new, uses) = fitting.pop()?;
        uses.set(uses.get() + 1);
        Some(new)
    }

    /// The renames that hold in a file, by its path before the commit.
    #[must_use]
    pub fn names_in(&self, path: &str) -> Names<'_> {
        let mut names = Names::default();
        for is_local in [true, false] {
            let mut found: HashMap<&str, Vec<(&str, &Cell<usize>)>> = HashMap::new();
            let holds = |entry: &&Entry| {
                entry.files.is_some() == is_local && entry.files.as_ref().is_none_or(|files| fits(files, path))
            };
            for entry in self.entries.iter().filter(holds) {
                match (&entry.old[..], &entry.new[..]) {
                    ([old], [new]) => found.entry(old).or_default().push((new, &entry.uses)),
                    _ => names.paths.push((&entry.old, &entry.new, &entry.uses)),
                }
            }
            for (old, targets) in found {
                names.targets.entry(old).or_insert(targets);
            }
        }
        names.paths.sort_by_key(|(old, _, _)| std::cmp::Reverse(old.len()));
        names
    }

    /// The renames with the number of their uses.
    #[must_use]
    pub fn uses(&self) -> BTreeMap<String, usize> {
        let text = |entry: &Entry| {
            let files = entry.files.as_ref().map(|files| format!("{files}: ")).unwrap_or_default();
            format!("{files}{} -> {}", entry.old.join("::"), entry.new.join("::"))
        };
        self.entries.iter().map(|entry| (text(entry), entry.uses.get())).collect()
    }

    /// The lines that nothing used.
    #[must_use]
    pub fn unused(&self) -> Vec<usize> {
        let entries = self.entries.iter().map(|entry| (entry.line, entry.uses.get()));
        let moves = self.moves.iter().map(|(line, _, _, uses)| (*line, uses.get()));
        let skipped = self.skipped.iter().map(|(line, _, uses)| (*line, uses.get()));
        let mut unused: Vec<usize> =
            entries.chain(moves).chain(skipped).filter(|(_, uses)| *uses == 0).map(|(line, _)| line).collect();
        unused.sort_unstable();
        unused
    }
}

/// The names of a path, or one name or lifetime.
fn names_of(text: &str) -> Option<Vec<String>> {
    let tokens = lex(text).ok()?;
    let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Lifetime);
    let is_path =
        tokens.iter().enumerate().all(|(at, token)| if at % 2 == 0 { is_name(token) } else { token.is("::") });
    let names = tokens.iter().step_by(2).map(|token| token.text.to_owned()).collect();
    (is_path && tokens.len() % 2 == 1).then_some(names)
}

/// Whether a path fits a pattern.
fn fits(pattern: &str, path: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else { return pattern == path };
    let Some(rest) = path.strip_prefix(before) else { return false };
    let (behind, is_deep) = behind.strip_prefix('*').map_or((behind, false), |behind| (behind, true));
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| (is_deep || !rest[..at].contains('/')) && fits(behind, &rest[at..]))
}

/// The renames of one file.
#[derive(Debug, Default)]
pub struct Names<'t> {
    targets: HashMap<&'t str, Vec<(&'t str, &'t Cell<usize>)>>,
    paths: Vec<(&'t [String], &'t [String], &'t Cell<usize>)>,
}

impl Names<'_> {
    /// Whether the file keeps all its names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.paths.is_empty()
    }

    /// Whether a name of the old file may stand as this one in the new file. A name in the short form of a field may also stay.
    #[must_use]
    pub fn accept(&self, old: &str, new: &str, is_short: bool) -> bool {
        let Some(targets) = self.targets.get(old) else { return old == new };
        let Some((_, uses)) = targets.iter().find(|(target, _)| *target == new) else { return is_short && old == new };
        uses.set(uses.get() + 1);
        true
    }

    /// The new names of this one.
    pub fn targets_of(&self, old: &str) -> impl Iterator<Item = &str> {
        self.targets.get(old).into_iter().flatten().map(|(target, _)| *target)
    }
}

impl<'t> Names<'t> {
    /// Replaces the paths of the table. A path begins where no other path continues.
    #[must_use]
    pub fn with_new_paths<'a>(&self, tokens: &[Token<'a>]) -> Vec<Token<'a>>
    where
        't: 'a,
    {
        if self.paths.is_empty() {
            return tokens.to_vec();
        }
        let mut out: Vec<Token<'a>> = Vec::with_capacity(tokens.len());
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let is_begin = !out.last().is_some_and(|before| before.is("::") || before.is("."));
            let found = self.paths.iter().filter(|_| is_begin).find(|(old, _, _)| is_path(&tokens[at..], old));
            let Some((old, new, uses)) = found else {
                out.push(*token);
                at += 1;
                continue;
            };
            uses.set(uses.get() + 1);
            for (place, name) in new.iter().enumerate() {
                if place > 0 {
                    out.push(Token::made(Kind::Sign, "::", token.line));
                }
                out.push(Token::made(Kind::Word, name, token.line));
            }
            at += old.len() * 2 - 1;
        }
        out
    }
}

/// Whether these tokens begin with a path.
fn is_path(tokens: &[Token<'_>], names: &[String]) -> bool {
    names.iter().enumerate().all(|(at, name)| {
        tokens.get(at * 2).is_some_and(|token| token.is_word(name))
            && (at == 0 || tokens.get(at * 2 - 1).is_some_and(|sign| sign.is("::")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cross_folders_only_with_two_stars() {
        assert!(fits("a/*.rs", "a/b.rs") && !fits("a/*.rs", "a/b/c.rs"));
        assert!(fits("a/**", "a/b/c.rs") && fits("a/**/c.rs", "a/b/c.rs") && !fits("a/**", "b/a/c.rs"));
    }

    #[test]
    fn entries_for_some_files_replace_those_for_all() {
        let table = Table::parse("a -> b # everywhere\nx/*.rs: a -> c\nx/*.rs: a -> a\n'a -> 'long\n").unwrap();
        assert!(table.names_in("y.rs").accept("a", "b", false) && !table.names_in("y.rs").accept("a", "c", false));
        let local = table.names_in("x/y.rs");
        assert!(local.accept("a", "c", false) && local.accept("a", "a", false) && !local.accept("a", "b", false));
        assert_eq!(table.unused(), [4]);
        assert_eq!(table.uses()["a -> b"], 1);
    }

    #[test]
    fn files_move_alone_or_with_their_folder() {
        let table = Table::parse("a/ => b/\na/x.rs => c.rs\nskip d/**\ne/ => f/").unwrap();
        assert_eq!(table.moved("a/y/z.rs").as_deref(), Some("b/y/z.rs"));
        assert_eq!(table.moved("a/x.rs").as_deref(), Some("c.rs"));
        assert_eq!(table.moved("g.rs"), None);
        assert!(table.skips("d/a.rs"));
        assert_eq!(table.unused(), [4]);
    }

    #[test]
    fn paths_are_replaced_where_they_begin() {
        let table = Table::parse("crate::protocol -> crate\ncrate::protocol::steps -> ground").unwrap();
        let names = table.names_in("a.rs");
        let tokens = lex("crate::protocol::json crate::protocol::steps::x a::crate::protocol").unwrap();
        let text: String = names.with_new_paths(&tokens).iter().map(|token| token.text).collect();
        assert_eq!(text, "crate::jsonground::xa::crate::protocol");
    }

    #[test]
    fn lines_of_no_known_form_are_refused() {
        for line in ["a", "a -> ", "a -> 1", "a/ => b", "a b -> c"] {
            assert!(Table::parse(line).is_err(), "{line}");
        }
    }
}
