//! A host's YAML with syntax faults: the servers with the faults are left out.

use std::ops::Range;

use super::gaps::Gaps;
use super::rest::{FAULTS_MAX, Torn};
use crate::config::source::host::slug;
use crate::config::source::json::Syntax;
use crate::config::source::yaml::{ROOTS, parse, whole};
use crate::steps;

/// What is said of a server whose fault is found behind it.
const ENDLESS: &str = "something in this server has no end: a `]`, a `}` or a quote is missing";

/// What can be read of `text`, which has the fault `first`.
pub(crate) fn read(text: &str, first: Syntax) -> Torn<Syntax> {
    let mut torn = Torn::new(text, first);
    while torn.faults.len() <= FAULTS_MAX
        && let Some((fault, _)) = torn.faults.last_mut()
    {
        let Some(server) = Server::with(&torn.text, fault.at.start) else { break };
        if fault.at.start >= server.part.end && server.part.end < text.len() {
            let from = server.part.start;
            let line = torn.text[from..].lines().next().unwrap_or_default();
            let at = from + line.len() - line.trim_start().len()..from + line.trim_end().len();
            *fault = Syntax::new(at, ENDLESS);
        }
        match &server.name {
            Some(name) => torn.gaps.note(&["upstreams".to_owned(), slug(name)]),
            None => torn.gaps.add(Gaps::everything()),
        }
        torn.leave_out(server.part.clone());
        match parse(&torn.text) {
            Ok(root) => return Torn { root, ..torn },
            Err(next) => {
                // What is told of a value that was left out, or stands no further, only follows from the one before.
                let follows = next.at.start < server.part.end || next.text.contains("anchor");
                torn.faults.push((next, 0..0));
                if follows {
                    break;
                }
            }
        }
    }
    torn.given_up()
}

/// One server of a file.
struct Server {
    /// Whole lines.
    part: Range<usize>,
    name: Option<String>,
}

impl Server {
    /// The server with the fault that is found at `at`: there, or in one before whose end is not where it seems.
    fn with(text: &str, at: usize) -> Option<Self> {
        let mut all = servers(text);
        let is_well = |index: usize| whole(text.get(..all[index].part.start).unwrap_or_default()).is_ok();
        let last = all.iter().rposition(|server| server.part.start <= at)?;
        // What stands before the one with the fault is well written.
        let index = if is_well(last) {
            last
        } else {
            (0..last).collect::<Vec<_>>().partition_point(|index| is_well(*index)).checked_sub(1)?
        };
        let found = all.swap_remove(index);
        let is_there = at < found.part.end || text.get(..found.part.end).is_some_and(|text| whole(text).is_err());
        is_there.then_some(found)
    }
}

/// The servers of a text, by the indentation of its lines.
fn servers(text: &str) -> Vec<Server> {
    steps::add(text.len());
    let mut all: Vec<Server> = Vec::new();
    // Whether the lines belong to the servers, how far those are indented, and whether each begins with a hyphen.
    let (mut is_inside, mut own, mut at) = (false, None, 0);
    for line in text.split_inclusive('\n') {
        let from = at;
        at += line.len();
        let content = line.trim();
        let indented = line.trim_start_matches(' ');
        // A tab says nothing of where a line belongs.
        if content.is_empty() || content.starts_with('#') || indented.starts_with('\t') {
            continue;
        }
        let indent = line.len() - indented.len();
        let is_item = content == "-" || content.starts_with("- ");
        if own.is_some_and(|(own, _)| is_inside && indent < own) && indent > 0 {
            // Nobody can say of what such a line is.
            return Vec::new();
        }
        if indent == 0 && !is_item {
            end(&mut all, is_inside, from);
            let key = content.split('#').next().unwrap_or_default().trim_end();
            (is_inside, own) = (key.strip_suffix(':').is_some_and(|key| ROOTS.contains(&key)), None);
            continue;
        }
        if is_inside && *own.get_or_insert((indent, is_item)) == (indent, is_item) {
            end(&mut all, true, from);
            let name = if is_item { None } else { key(content) };
            all.push(Server { part: from..text.len(), name });
        }
        if let (Some((_, true)), Some(server)) =
            (own, all.last_mut().filter(|server| is_inside && server.name.is_none()))
        {
            let pair = content.trim_start_matches("- ").trim_start();
            server.name = pair.strip_prefix("name:").map(|name| bare(name.trim()));
        }
    }
    end(&mut all, is_inside, text.len());
    all
}

/// The last server ends here, if it has no end.
fn end(all: &mut [Server], is_inside: bool, at: usize) {
    all.last_mut().filter(|_| is_inside).into_iter().for_each(|server| server.part.end = at);
}

/// The key with which a line begins.
fn key(content: &str) -> Option<String> {
    content.split_once(':').map(|(key, _)| bare(key.trim_end()))
}

fn bare(text: &str) -> String {
    text.trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The servers that are left, how many faults are told, and what is not known.
    fn left(text: &str) -> (Vec<String>, usize, Gaps) {
        let torn = read(text, parse(text).unwrap_err());
        let root = ROOTS.iter().find_map(|root| torn.root.get(root));
        (
            root.map_or(&[][..], |servers| servers.entries()).iter().map(|(name, _)| name.clone()).collect(),
            torn.faults.len(),
            torn.gaps,
        )
    }

    fn of(names: &[&str]) -> Gaps {
        let mut gaps = Gaps::default();
        names.iter().for_each(|name| gaps.note(&["upstreams".to_owned(), (*name).to_owned()]));
        gaps
    }

    #[test]
    fn a_server_with_a_fault_is_left_out_and_those_around_it_are_read() {
        let around = |broken: &str| {
            format!(
                "GOOSE_MODEL: x\nextensions:\n  # mine\n  a:\n    cmd: x\n\n  B b:\n{broken}\n  c:\n    cmd: \"x\"\nGOOSE_MODE: auto\n"
            )
        };
        for broken in [
            "    cmd: x: y",
            "    args: [x",
            "    args: [x, {y: z]",
            "    envs: {A: b",
            "    cmd: \"x",
            "    cmd: 'x",
            "    cmd: x\n   args: [y]",
            "    cmd: x\n      args: [y]",
            "\tcmd: x",
            "    cmd: x\n    args\n    timeout: 5",
            "    cmd: \"\\q\"",
        ] {
            assert_eq!(left(&around(broken)), (vec!["a".to_owned(), "c".to_owned()], 1, of(&["b-b"])), "{broken}");
        }
        let text = around("    args: [x");
        let torn = read(&text, parse(&text).unwrap_err());
        let (fault, _) = &torn.faults[0];
        assert_eq!(
            (&text[fault.at.clone()], &*fault.text),
            ("B b:", ENDLESS),
            "it is told where it is, and not where it is found"
        );
        let at_the_end = "extensions:\n  a:\n    cmd: x\n  b:\n    args: [x\n";
        assert_eq!(left(at_the_end), (vec!["a".to_owned()], 1, of(&["b"])));
        let two = around("    cmd: x: y").replace("cmd: \"x\"", "args: [x");
        assert_eq!(left(&two), (vec!["a".to_owned()], 2, of(&["b-b", "c"])));
    }

    #[test]
    fn a_server_of_a_list_has_its_name_inside() {
        for pad in ["", "  "] {
            let text = format!(
                "name: x\nmcpServers:\n{pad}- name: a\n{pad}  command: x\n{pad}- command: x: y\n{pad}  name: 'b'\n{pad}- name: c\n{pad}  args: [x\n"
            );
            let torn = read(&text, parse(&text).unwrap_err());
            assert_eq!((torn.faults.len(), torn.gaps), (2, of(&["b", "c"])), "{text}");
            assert!(torn.text.contains("name: a") && !torn.text.contains("name: c"), "{}", torn.text);
        }
        let nameless = "mcpServers:\n- command: x: y\n";
        assert!(left(nameless).2.has_upstream("zed"));
    }

    #[test]
    fn nothing_is_left_where_the_fault_is_in_no_server() {
        for text in [
            "extensions:\n  a:\n    cmd: x\nz: x: y\n",
            "extensions: {a: {cmd: x}\n",
            "x: [\nextensions:\n  a: {}\n",
            "extensions:\n    a: {cmd: x}\n  b: {cmd: y}\n",
        ] {
            assert_eq!(left(text), (Vec::new(), 1, Gaps::everything()), "{text}");
        }
        // The alias is of a value that was left out.
        let alias = "extensions:\n  a:\n    envs: &e {A: b}\n    cmd: x: y\n  b:\n    cmd: x\n    envs: *e\n";
        assert_eq!(left(alias), (Vec::new(), 1, Gaps::everything()));
    }

    #[test]
    fn many_faults_are_told_up_to_a_bound() {
        let servers: String = (0..FAULTS_MAX + 5).map(|index| format!("  a{index}:\n    cmd: x: y\n")).collect();
        assert_eq!(left(&format!("extensions:\n{servers}")).1, FAULTS_MAX);
    }
}
