//! TOML with syntax faults: the statement with the fault is left out, or its whole table where its end is doubtful.

use memchr::memmem;

use super::rest::{FAULTS_MAX, Torn};
use crate::config::source::node::Node;
use crate::config::source::toml::{LONG, Syntax, parse, quoted, statement};

/// What can be read of `text`, which has the fault `first`.
pub(crate) fn read(text: &str, first: Syntax) -> Torn<Syntax> {
    let (mut torn, mut read) = (Torn::new(text, first), 0);
    if let Err(fault) = next(text, &mut read) {
        // The parser tells brackets first, wherever they stand.
        torn.faults = vec![(fault, 0..0)];
    }
    while let Some((fault, _)) = torn.faults.last().filter(|(fault, _)| fault.at != (0..0)) {
        let part = Part::with(&torn.text, fault.at.start);
        let is_blank = torn.text.get(part.from..part.to).is_none_or(|part| part.trim().is_empty());
        if is_blank || torn.faults.len() > FAULTS_MAX {
            break;
        }
        part.paths.iter().for_each(|path| torn.gaps.note(path));
        torn.leave_out(part.from..part.to);
        match next(&torn.text, &mut read) {
            Ok(root) => return Torn { root, ..torn }.sorted(|fault| fault.at.start),
            Err(next) => torn.faults.push((next, 0..0)),
        }
    }
    torn.given_up().sorted(|fault| fault.at.start)
}

/// The values of a text, or its next fault. Each table is read by itself until it has none; what tables have with each other is a fault
/// of the whole. There is none before `read`, which moves on.
fn next(text: &str, read: &mut usize) -> Result<Node, Syntax> {
    while *read < text.len() {
        let end = table_end(text, *read);
        if let Err(Syntax { at, text, is_name }) = parse(&text[*read..end]) {
            return Err(Syntax { at: at.start + *read..at.end + *read, text, is_name });
        }
        *read = end;
    }
    parse(text)
}

/// Where the table ends that begins here. What looks like a heading may belong to a text in several lines.
fn table_end(text: &str, from: usize) -> usize {
    let rest = &text[from..];
    if from == 0 && LONG.iter().any(|mark| text.contains(mark)) {
        return text.len();
    }
    let mut end = rest.find('\n').map_or(rest.len(), |end| end + 1);
    for line in rest[end..].split_inclusive('\n') {
        if heading(line).is_some() {
            break;
        }
        end += line.len();
    }
    from + end
}

/// A part of a text that is left out.
#[derive(Debug, PartialEq)]
struct Part {
    from: usize,
    to: usize,
    /// The tables that it is of; nothing is known of what belongs to none.
    paths: Vec<Vec<String>>,
}

impl Part {
    /// The part that has a syntax fault at `at`.
    fn with(text: &str, at: usize) -> Self {
        let from = statement(text, at);
        let line_end = text[from..].find('\n').map_or(text.len(), |end| from + end);
        let line = &text[from..line_end];
        let above: Vec<Vec<String>> = text[..from].lines().rev().find_map(heading).into_iter().collect();
        let upto = text.get(from..at.max(from).max(line_end)).unwrap_or_default();
        let rest = text.get(at..).unwrap_or_default();
        // Marks that stand in comments are counted, too.
        let is_endless = |mark: &str| rest.strip_prefix(mark).is_some_and(|rest| !rest.contains(mark));
        let is_doubtful = |mark: &&&str| is_odd(text, mark) || upto.contains(**mark) || is_endless(mark);
        let doubtful: Vec<&str> = LONG.iter().filter(is_doubtful).copied().collect();
        if !doubtful.is_empty() {
            // A text in several lines has no end, and what looks like a heading may belong to it. Where this is not its first line, it may
            // have begun anywhere before.
            let is_first = doubtful.iter().all(|mark| opens(text, from, line, mark));
            return Self { from: if is_first { from } else { 0 }, to: text.len(), paths: vec![Vec::new()] };
        }
        let is_heading = line.trim_start().starts_with('[');
        let ends = !is_heading && at <= line_end && is_closed(line);
        if ends {
            let path = above.into_iter().next().unwrap_or_else(|| key_of(line));
            return Self { from, to: line_end, paths: vec![path] };
        }
        let mut to = line_end;
        for next in text[line_end..].split_inclusive('\n') {
            if heading(next).is_some() {
                break;
            }
            to += next.len();
        }
        let own = if is_heading { broken_heading(line) } else { None };
        let paths = own.map_or(above, |own| vec![own]);
        // A heading that is not understood begins a table that nobody knows.
        let is_known =
            !paths.is_empty() && !text[line_end..to].lines().any(|line| line.trim_start().starts_with("[\""));
        Self { from, to, paths: if is_known { paths } else { vec![Vec::new()] } }
    }
}

/// Whether a mark stands in a text an odd number of times, so that one is missing or too many.
fn is_odd(text: &str, mark: &str) -> bool {
    memmem::find_iter(text.as_bytes(), mark).count() % 2 == 1
}

/// Whether a statement begins a text in several lines: its mark stands where a value does, or elsewhere behind a key where no other mark can be
/// its beginning. What ends a text may stand behind anything.
fn opens(text: &str, from: usize, line: &str, mark: &str) -> bool {
    let value = dotted(line).and_then(|(_, rest)| rest.trim_start().strip_prefix('='));
    let Some(value) = value.filter(|value| value.contains(mark)) else { return false };
    let is_value = value.starts_with([' ', '\t']) && value.trim_start().starts_with(mark);
    is_value || !is_odd(&text[..from], mark) && !is_odd(text, mark)
}

/// Whether a line leaves no bracket and no text in quotes open.
fn is_closed(line: &str) -> bool {
    let bytes = line.as_bytes();
    let (mut open, mut here) = (0_usize, 0);
    while here < bytes.len() {
        here += match bytes[here] {
            b'#' => bytes.len() - here,
            quote @ (b'"' | b'\'') => {
                let length = quoted(&line[here..]);
                // It may have been meant to go on in the next line.
                if length < 2 || bytes[here + length - 1] != quote {
                    return false;
                }
                length
            }
            byte => {
                match byte {
                    b'[' | b'{' => open += 1,
                    b']' | b'}' => open = open.saturating_sub(1),
                    _ => {}
                }
                1
            }
        };
    }
    open == 0
}

/// The keys of a line that is a heading, and can be nothing else.
fn heading(line: &str) -> Option<Vec<String>> {
    let inside = line.trim().strip_prefix('[')?;
    let inside = inside.strip_prefix('[').unwrap_or(inside);
    let (keys, behind) = dotted(inside)?;
    let behind = behind.trim_start().strip_prefix(']')?;
    let behind = behind.strip_prefix(']').unwrap_or(behind).trim_start();
    let first = keys.first()?;
    // An item of a list may look like one.
    let is_word = first.starts_with(|char: char| char.is_ascii_alphabetic())
        && !["true", "false", "inf", "nan"].contains(&first.as_str());
    (is_word && !inside.trim_start().starts_with(['"', '\'']) && (behind.is_empty() || behind.starts_with('#')))
        .then_some(keys)
}

/// The keys of a heading that is not well written, as far as they can be told.
fn broken_heading(line: &str) -> Option<Vec<String>> {
    let (keys, _) = dotted(line.trim_start().trim_start_matches('['))?;
    (keys.len() > 1 || keys.first().is_some_and(|first| first != "upstreams")).then_some(keys)
}

/// The keys with dots between them with which a text begins, and what stands behind them.
fn dotted(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut keys, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let length = match rest.as_bytes().first()? {
            b'"' | b'\'' => quoted(rest),
            _ => rest.find(|char: char| !(char.is_ascii_alphanumeric() || "-_".contains(char))).unwrap_or(rest.len()),
        };
        if length == 0 {
            return None;
        }
        keys.push(rest[..length].trim_matches(['"', '\'']).to_owned());
        rest = rest[length..].trim_start_matches([' ', '\t']);
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind,
            None => return Some((keys, rest)),
        }
    }
}

/// The table that a statement outside of every table is of.
fn key_of(line: &str) -> Vec<String> {
    let keys = dotted(line).map(|(keys, _)| keys).unwrap_or_default();
    // The last one is that of the value.
    if keys.first().is_some_and(|first| first == "upstreams") && keys.len() < 3 { Vec::new() } else { keys }
}

#[cfg(test)]
mod tests {
    use super::super::gaps::Gaps;
    use super::*;

    /// The lines of `text` that are left out, and how many faults are told.
    fn left_out(text: &str) -> (Vec<usize>, usize, Gaps) {
        let first = parse(text).unwrap_err();
        let torn = read(text, first);
        let pairs = text.lines().zip(torn.text.lines()).enumerate();
        let gone = pairs.filter(|(_, (before, after))| before != after).map(|(index, _)| index + 1).collect();
        (gone, torn.faults.len(), torn.gaps)
    }

    fn of(upstreams: &[&str]) -> Gaps {
        let mut gaps = Gaps::default();
        upstreams.iter().for_each(|name| gaps.note(&["upstreams".to_owned(), (*name).to_owned()]));
        gaps
    }

    #[test]
    fn a_statement_is_left_out_alone_where_its_end_is_certain() {
        for line in ["command = npx", "command =", "command \"x\"", "command = \"x\" y", "args = [a]"] {
            let text = format!("[upstreams.a]\n{line}\nprefix = \"p\"\n[upstreams.b]\nurl = 1\n");
            assert_eq!(left_out(&text), (vec![2], 1, of(&["a"])), "{line}");
        }
        let two = "[upstreams.a]\ncommand = npx\nprefix = \"p\"\n[upstreams.b]\nurl = x\nprefix = y\n";
        assert_eq!(left_out(two), (vec![2, 5, 6], 3, of(&["a", "b"])));
        let twice = "[upstreams.a]\ncommand = \"a\"\ncommand = \"b\"\n";
        assert_eq!(left_out(twice), (vec![3], 1, of(&["a"])));
    }

    #[test]
    fn a_table_is_left_out_where_the_end_of_a_statement_is_doubtful() {
        let after = "[upstreams.b]\nurl = \"x\"\n";
        for (table, gone, names) in [
            ("[upstreams.a]\nargs = [\"x\",\nenv = { A = \"x\" }\n", vec![2, 3], &["a"][..]),
            ("[upstreams.a]\nenv = { A = \"x\",\n  b = 1\n", vec![2, 3], &["a"]),
            ("[upstreams.a]\ncommand = \"x\nargs = y\n", vec![2, 3], &["a"]),
            ("[upstreams.a\ncommand = \"x\"\nargs = []\n", vec![1, 2, 3], &["a"]),
            ("[upstreams.a]\n[upstreams.a]\ncommand = \"x\"\n", vec![2, 3], &["a"]),
            ("[upstreams.a]\nargs = [a,\n  \"b\"]\n", vec![2, 3], &["a"]),
            ("[upstreams.a]\ncommand = \"\nargs = y\n", vec![2, 3], &["a"]),
            ("[upstreams.a]\nargs = [\n  [true]\n  x\n]\n", vec![2, 3, 4, 5], &["a"]),
        ] {
            assert_eq!(left_out(&format!("{table}{after}")), (gone, 1, of(names)), "{table}");
        }
    }

    #[test]
    fn the_rest_is_left_out_where_a_text_in_several_lines_has_no_end() {
        let text = "[upstreams.a]\nurl = \"x\"\nenv.A = \"\"\"\n[upstreams.b]\nurl = \"x\"\n";
        let (gone, faults, gaps) = left_out(text);
        assert_eq!((gone, faults), (vec![3, 4, 5], 1));
        let first = parse(text).unwrap_err();
        assert_eq!((text[..first.at.start].lines().count(), &text[first.at.clone()]), (3, "\"\"\""), "{}", first.text);
        assert!(gaps.has_upstream("zed") && gaps.has_section());
        // A comment with such a mark ends no text.
        let (gone, faults, gaps) = left_out(&format!("# \"\"\"\n{text}"));
        assert_eq!((gone, faults), (vec![4, 5, 6], 1));
        assert!(gaps.has_upstream("zed") && gaps.has_section());
    }

    #[test]
    fn what_may_belong_to_a_text_in_several_lines_whose_beginning_is_not_certain_is_left_out() {
        let text = |opening: &str| {
            format!(
                "[upstreams.a]\nurl = \"x\"\n{opening}\n[canary]\nkey = 1\nlast\"\"\"\n[upstreams.b]\nurl = \"x\"\n"
            )
        };
        for (opening, first) in [
            ("env.A = x\"\"\"", 3),
            ("env.A =x\"\"\"", 3),
            ("env.A x= \"\"\"", 1),
            ("env.A x \"\"\"", 1),
            ("env.A = \"\"x", 1),
            ("env.A = \"x\"", 1),
            ("env.A = \"\"", 1),
            ("env.A = \"\" \"", 1),
            ("#env.A = \"\"\"", 1),
            ("env.A = #\"\"\"", 1),
            ("env.A = '\"\"\"", 1),
        ] {
            let text = text(opening);
            let (gone, _, gaps) = left_out(&text);
            assert_eq!(gone, (first..=text.lines().count()).collect::<Vec<_>>(), "{opening}");
            assert!(gaps.has_upstream("zed") && gaps.has_section(), "{opening}");
        }
    }

    #[test]
    fn a_mark_that_has_no_other_makes_all_doubtful_wherever_it_stands() {
        for text in [
            "[upstreams.a]\ncommand = npx\n[upstreams.b]\nurl = \"x\" # \"\"\"\n",
            "# \"\"\"\n[upstreams.a]\nargs = [\n  \"\"\"\n[upstreams.b]\nurl = \"x\"\n",
        ] {
            let (gone, _, gaps) = left_out(text);
            assert_eq!(gone, (1..=text.lines().count()).collect::<Vec<_>>(), "{text}");
            assert!(gaps.has_upstream("zed") && gaps.has_section(), "{text}");
        }
    }

    #[test]
    fn what_may_be_an_item_of_a_list_or_a_heading_leaves_nothing_certain_behind_it() {
        for (table, gone) in [
            ("[upstreams.a]\nargs = [\n  [\"x\"]\n  y\n]\n", vec![2, 3, 4, 5]),
            ("[upstreams.a]\nargs = [\"x\",\n[\"upstreams\".c]\nurl = \"x\"\n", vec![2, 3, 4]),
        ] {
            let (left, faults, gaps) = left_out(&format!("{table}[upstreams.b]\nurl = \"x\"\n"));
            assert_eq!((left, faults), (gone, 1), "{table}");
            assert!(gaps.has_upstream("zed"), "{table}");
        }
    }

    #[test]
    fn other_sections_have_gaps_of_their_own() {
        let (_, _, gaps) = left_out("[[auth.tokens]]\nname = x\n[upstreams.a]\nurl = 1\n");
        assert!(gaps.has_section() && !gaps.has_upstream("a"));
        for text in ["[upstreams]\na.url = x\n", "upstreams.a = { url = x }\n", "[\n", "[upstreams]\na = {\n"] {
            assert!(left_out(text).2.has_upstream("zed"), "{text}");
        }
        assert_eq!(left_out("upstreams.a.url = x\n").2, of(&["a"]));
    }

    #[test]
    fn faults_before_one_that_is_told_first_are_told_in_their_order() {
        for broken in ["args = [\"x, \"y\"]", "args = [\"x]", "env = { A = \"x }", "command = \"x"] {
            let text = format!("[upstreams.a]\ncommand = npx\n[upstreams.b]\n{broken}\n[upstreams.c]\nurl = \"x\"\n");
            let torn = read(&text, parse(&text).unwrap_err());
            let lines: Vec<_> = torn.faults.iter().map(|(fault, _)| text[..fault.at.start].lines().count()).collect();
            assert_eq!(lines, [2, 4], "{broken}");
            assert!(torn.faults[1].0.text.starts_with("a quote is missing in this line"), "{broken}");
            assert_eq!(torn.gaps, of(&["a", "b"]), "{broken}");
        }
    }

    #[test]
    fn what_is_told_first_is_the_first_fault_of_a_table_and_not_what_the_parser_finds_behind_it() {
        let text = "[upstreams.a]\nenv = { A = \"x\"\n[upstreams.b]\n= 3\n";
        let first = parse(text).unwrap_err();
        assert_eq!(text[..first.at.start].lines().count(), 2, "the parser takes the heading for a part of the table");
        let torn = read(text, first);
        let told = |(fault, _): &(Syntax, _)| text[..fault.at.start].matches('\n').count() + 1;
        assert_eq!(torn.faults.iter().map(told).collect::<Vec<_>>(), [2, 4]);
        assert!(torn.faults[0].0.text.contains("unclosed inline table"), "{}", torn.faults[0].0.text);
    }

    #[test]
    fn a_text_with_many_broken_tables_is_read_a_few_times_and_not_once_for_each_fault() {
        let table = |index: usize| format!("[upstreams.a{index}]\ncommand = npx\n");
        let text: String = (0..16_000).map(table).collect();
        let steps =
            crate::steps::of(|| assert_eq!(read(&text, parse(&text).unwrap_err()).faults.len(), FAULTS_MAX)).unwrap();
        assert!(steps < 4 * text.len() as u64, "{steps} for {} bytes", text.len());
    }

    #[test]
    fn many_faults_are_told_up_to_a_bound() {
        let lines: String = (0..FAULTS_MAX + 5).map(|index| format!("k{index} = x\n")).collect();
        assert_eq!(left_out(&lines).1, FAULTS_MAX);
    }
}
