//! A name is shown where it is one, and nothing that may be a part of a value.

use super::*;

/// The names that are shown of the line in which `!` stands, where the fault is.
fn names(of: fn(&str, usize) -> Vec<Range<usize>>, marked: &str) -> String {
    let at = marked.find('!').unwrap();
    let text = marked.replacen('!', "", 1);
    of(&text, at).into_iter().map(|name| text[name].to_owned()).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_before_a_fault_in_toml_are_found() {
    for (text, expected) in [
        ("command = !\"npx", "command"),
        ("comand!: \"npx\"", "comand"),
        ("[upstreams.a!\ncommand = 'x'", "upstreams.a"),
        ("[[auth.tokens!]", "auth.tokens"),
        ("env = { A = \"x\", B = !y }", "env A B"),
        ("x = '''\na\n'''\nenv = { A = !x }", "env"),
        ("args = [\"a\"\n!env = { A = \"b\" }", "env"),
        ("args = [\n  \"a==\",\n]\nenv.A = !x", "env.A"),
        ("command =!", "command"),
        ("headers.\"X\" = \"a\" !b", ""),
    ] {
        assert_eq!(names(of_toml, text), expected, "{text}");
    }
}

#[test]
fn what_may_be_a_part_of_a_value_in_toml_is_no_name() {
    for (text, expected) in [
        ("key = \"\"\"\nsecret = !x\n", ""),
        ("key = \"\"\"\na\"\"\"\nsecret = !x\n\"\"\"\n", ""),
        ("key = \"half of it\nsecret=half!\"\n", ""),
        ("key = [\n  half,\n  secret=!half\n]", ""),
        ("args = [\n  secret=!half\n]", ""),
        ("c2VjcmV0==!\n", ""),
        ("secret=!\n", ""),
        ("secret!==\n", ""),
        ("c2VjcmV0Y2FuYXJ5 = !x\n", ""),
        ("env = { A = x, secret = !y\" }", "env"),
        ("env = { A = \"a, B = \", secret = !y\" }", "env"),
        ("env = { A = \"\", secret = y!\" }", "env"),
        ("key = {secret= # x!\"", "key"),
        ("key = {secret=!}", "key"),
        ("key = {secret= x!\"", "key"),
        ("env = { A = 1, secret = y!\" }", "env"),
        ("key = \"\"\nsecret: !x\n\"\"\"\n", ""),
        ("env = { A = \n, secret = 'x'!\" }", ""),
        ("env = { A = ,\n secret = 'x'!\" }", ""),
        ("url = https://h/?secret=!x", "url"),
        ("https!://h/?secret=x", ""),
        ("é = \"é\", \"é!", ""),
    ] {
        assert_eq!(names(of_toml, text), expected, "{text}");
    }
}

#[test]
fn names_before_a_fault_in_json_are_found_and_no_others() {
    for (text, expected) in [
        ("{\"mcpServers\": {\"a\": !}}", "\"mcpServers\" \"a\""),
        ("{\"mcpServers\" !{}}", "\"mcpServers\""),
        ("{!mcpServers: {}}", "mcpServers"),
        ("{\"env\": {\"A\": \"x, !B\": \"secret\"}}", "\"env\" \"A\""),
        ("{\"env\": {\"A\": \"x, \"secret\": !y\"}}", "\"env\" \"A\""),
        ("{\"A\": \"half\n\"secret\": !\"x\"}", ""),
        ("{\"a\": 1 /* \" */, // \"\n \"b\": !}", "\"b\""),
        ("{\"secret\"!, \"b\"}", ""),
        ("{\"args\": [\"--key\", \"secret\"!: \"x\"]}", "\"args\""),
        ("{\"args\": [\"--key\", \"secret\": !\"x\"]}", "\"args\""),
        ("{\"a b\": {\"c2VjcmV0Y2FuYXJ5\": !}}", ""),
    ] {
        assert_eq!(names(of_json, text), expected, "{text}");
    }
}

#[test]
fn the_name_that_begins_a_line_of_yaml_is_found_unless_the_line_may_go_on_with_another() {
    for (text, expected) in [
        ("extensions:\n  a:\n    args: [!", "args"),
        ("mcpServers:\n  - name: a\n    comand: x!: y", "comand"),
        ("a: x\n  secret: !y", ""),
        ("a: x\n  command: !y", "command"),
        ("a: \"x\n  secret: !y", ""),
        ("a: |\n  x\nsecret: !y", ""),
        ("a: [x,\nsecret: !y", ""),
        ("half\nsecret: !y", ""),
        ("a:\nsecret: !y' # z", ""),
        ("a:\ncommand: !y'", "command"),
        ("a: b\nhttps://h/?secret=!x", ""),
    ] {
        assert_eq!(names(of_yaml, text), expected, "{text}");
    }
}
