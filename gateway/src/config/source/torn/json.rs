//! A host's JSON with syntax faults: the servers with the faults are left out.

use super::gaps::Gaps;
use super::rest::{FAULTS_MAX, Torn};
use crate::config::source::comments::{string_length, without_comments};
use crate::config::source::host::slug;
use crate::config::source::json::{Syntax, parse};
use crate::steps;

/// The key whose members are known to be servers.
const SERVERS: [&str; 3] = ["mcpServers", "servers", "context_servers"];

/// What can be read of `text`, which has the fault `first`.
pub(crate) fn read(text: &str, first: Syntax) -> Torn<Syntax> {
    let mut torn = Torn::new(text, first);
    let mut so_far = 0;
    // Where a brace is missing or too many, it is told once, by what is found first.
    let is_next =
        |torn: &Torn<Syntax>| torn.faults.len() == 1 || !torn.faults.last().is_some_and(|(next, _)| next.is_end);
    while let Some((fault, _)) = torn.faults.last().filter(|_| torn.faults.len() <= FAULTS_MAX && is_next(&torn)) {
        let plain = without_comments(&torn.text);
        // What follows in the line of a fault may be a comment, or the rest of a text.
        let is_apart = |member: &Member<'_>| {
            so_far == 0 || plain.get(so_far..member.from).is_some_and(|between| between.contains('\n'))
        };
        let Some(member) = Member::with(&plain, fault.at.start).filter(is_apart) else { break };
        torn.gaps.note(&["upstreams".to_owned(), slug(member.name)]);
        let (from, is_open) = (member.from, member.to.is_none());
        so_far = member.to.unwrap_or(torn.text.len());
        torn.leave_out(from..so_far);
        if is_open {
            // All that was open around it ends here.
            torn.gaps.add(Gaps::everything());
            torn.text.push_str("}}");
        }
        match parse(&torn.text) {
            Ok(root) => return Torn { root, ..torn },
            Err(next) => torn.faults.push((next, 0..0)),
        }
    }
    torn.given_up()
}

/// One server of a file.
struct Member<'a> {
    name: &'a str,
    from: usize,
    /// Behind its comma, or before it; `None` where it has no end.
    to: Option<usize>,
}

impl<'a> Member<'a> {
    /// The server in whose text `at` stands.
    fn with(text: &'a str, at: usize) -> Option<Self> {
        steps::add(text.len());
        let bytes = text.as_bytes();
        let (mut open, mut here) = (Vec::new(), 0);
        // The last name in the outermost object, and the one in the object of servers with its place.
        let (mut root, mut name, mut found) = ("", "", None);
        // Where a text in quotes has no end, quotes and brackets behind it mean nothing.
        let mut is_doubtful = false;
        while here < bytes.len() {
            let length = if bytes[here] == b'"' { string_length(&bytes[here..]) } else { 1 };
            let word = || text.get(here + 1..here + length - 1).unwrap_or_default();
            is_doubtful |= length > 1 && memchr::memchr(b'\n', &bytes[here..here + length]).is_some();
            match (bytes[here], open.as_slice()) {
                (b'"', [b'{']) if is_key(bytes, here + length) => root = word(),
                (b'"', [b'{', b'{']) if is_key(bytes, here + length) => {
                    if here > at {
                        // No comma has ended the one before.
                        is_doubtful = true;
                        break;
                    }
                    name = word();
                    found = Some(here);
                }
                (b'{' | b'[', _) => open.push(bytes[here]),
                (b'}' | b']', [b'{', b'{']) if found.is_some() => break,
                (closing @ (b'}' | b']'), _) => {
                    // Of a bracket that does not fit nobody knows what it closes.
                    is_doubtful |= open.pop().is_some_and(|opening| (opening == b'{') != (closing == b'}'));
                }
                (b',', [b'{', b'{']) if here >= at && found.is_some() => {
                    // Where one is missing before the server, the one behind it stands for it.
                    here += usize::from(found != Some(at));
                    break;
                }
                _ => {}
            }
            here += length;
        }
        let from = found.filter(|from| *from <= at && SERVERS.contains(&root))?;
        // Behind the last server there is nothing of it.
        (at <= here).then_some(Self { name, from, to: (here < bytes.len() && !is_doubtful).then_some(here) })
    }
}

/// Whether a text in quotes that ends here is a key.
fn is_key(bytes: &[u8], end: usize) -> bool {
    bytes.get(end..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The servers that are left, and what is told.
    fn left(text: &str) -> (Vec<String>, usize, Gaps) {
        let first = parse(text).unwrap_err();
        let torn = read(text, first);
        let servers = torn.root.get("mcpServers").map_or(&[][..], |servers| servers.entries());
        (servers.iter().map(|(name, _)| name.clone()).collect(), torn.faults.len(), torn.gaps)
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
                "{{\"mcpServers\": {{\n\"a\": {{\"command\": \"x\"}},\n\"b b\": {broken},\n\"c\": {{\"command\": \"x\"}}\n}}}}"
            )
        };
        for broken in
            ["{\"command\": npx}", "{\"command\": \"x\" \"args\": [\"{\"]}", "{'command': 1}", "oops", "{\"a\": [1 2]}"]
        {
            assert_eq!(left(&around(broken)), (vec!["a".to_owned(), "c".to_owned()], 1, of(&["b-b"])), "{broken}");
        }
        let no_comma = around("{\"command\": \"x\"}").replace("},\n\"b b\"", "}\n\"b b\"");
        assert_eq!(left(&no_comma), (vec!["a".to_owned(), "c".to_owned()], 1, of(&["b-b"])));
        let two = around("{\"command\": npx}").replace("\"c\": {\"command\": \"x\"}", "\"c\": {\"command\" 1}");
        assert_eq!(left(&two), (vec!["a".to_owned()], 2, of(&["b-b", "c"])));
        let line = two.replace('\n', " ");
        assert_eq!(left(&line), (Vec::new(), 1, Gaps::everything()), "the second may be the rest of the first");
    }

    #[test]
    fn a_brace_that_slipped_is_told_once() {
        let around = |broken: &str| {
            format!(
                "{{\"mcpServers\": {{\n\"a\": {{\"command\": \"x\"}},\n\"b\": {broken},\n\"c\": {{\"command\": \"x\"}}\n}}}}\n"
            )
        };
        for broken in [
            "{\"command\": \"x\"]}",
            "{\"args\": [\"x\"}",
            "{\"args\": [\"x\"}}",
            "{\"command\": \"x\"}}",
            "{\"command\": \"x\"",
            "{\"command\": npx",
            "{\"command\": npx}}",
            "{\"env\": {\"A\": \"x\", \"command\": npx}",
        ] {
            let (servers, faults, _) = left(&around(broken));
            assert!(faults == 1 && !servers.contains(&"b".to_owned()), "{broken}: {servers:?} {faults}");
        }
    }

    #[test]
    fn what_follows_is_left_out_where_the_end_of_a_server_is_doubtful() {
        for text in [
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"x",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"x,\n\"args\": []}, \"c\": {}}}",
            // Quotes around a line's end, a bracket that does not fit, and a comma that is missing behind the server.
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"args\": [\"y\"], env\": {\"A\": \"1\"}}, \"c\": {\ncommand\": \"x\"}}}",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"args\": [y\"], \"env: {\"A\": \"1\"}}, \"c\": {\"command\": \"x\"}}}",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"args\": [\"y\"], \"env\": {\"A\": \"1\"}}, c\": {xcommand\": \"x\"}}}",
        ] {
            let (servers, faults, gaps) = left(text);
            assert_eq!((servers, faults), (vec!["a".to_owned()], 1), "{text}");
            assert!(gaps.has_upstream("zed"), "{text}");
        }
        for text in [
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"b\": {}}}",
            "{\"theme\" 1, \"mcpServers\": {}}",
            "{",
            // A second fault that is an end, one behind the last server, and one in what is no object of servers.
            "{\n\"theme\": 1,\n\"mcpServers\": {\n\"a\": {\n\"command\": \"x\"\n},\n\"b\": {\n\"args\":{[\n\"y\"\n]\n}\n},\n\"other\": {\n\"q\": {\"w\": 1},\n\"r\": {}\n}\n\n",
            "{\"mcpServers\": {\n\"a\":x{\"command\": \"x\"},\n\"b\": {\"command\": \"x\", \"args\": [\"y\"]},\n\"c\": {\"command\": \"x\"}\n}{\n",
            "{\"mcpServers\": {\n\"a\": {\"command\"} \"x\"},\n\"b\": {\"command\": \"x\", \"args\": [\"y]},\n\"c\": {\"command\": \"x\"}\n}}\n",
        ] {
            assert_eq!(left(text), (Vec::new(), 1, Gaps::everything()), "{text}");
        }
    }
}
