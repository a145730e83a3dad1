//! Values stand where they stand, and what is no file of a host has a place.

use super::*;

fn said(text: &str) -> String {
    whole(text).map_err(|fault| fault.text).expect_err("a fault")
}

/// The piece of the text that a value takes, by the path of keys to it.
fn piece<'a>(text: &'a str, path: &[&str]) -> &'a str {
    let root = whole(text).map_err(|fault| fault.text).unwrap().root;
    let node = path.iter().fold(&root, |node, name| match &node.shape {
        Shape::List(items) => &items[name.parse::<usize>().unwrap()],
        _ => node.get(name).unwrap(),
    });
    &text[node.span.clone()]
}

#[test]
fn values_stand_where_they_stand() {
    let text = "# é\nA: ö\nextensions:  # x\n  # dev\n  dev:\n    on: true\n    text: |\n      a\n      b\n\n    # tail\n  b: {x: 1, y: [a, b]}\n# end\nz: >-\n  folded\n  more\nq: plain\n  goes on\nl:\n- name: a\n  c: 'x'\n\n- name: b\n";
    for (path, expected) in [
        (&["A"][..], "ö"),
        (&["extensions", "dev", "on"], "true"),
        (&["extensions", "b"], "{x: 1, y: [a, b]}"),
        (&["extensions", "b", "y", "1"], "b"),
        (&["q"], "plain\n  goes on"),
        (&["l", "0", "c"], "'x'"),
        (&["l", "0"], "name: a\n  c: 'x'"),
        (&["l", "1"], "name: b"),
    ] {
        assert_eq!(piece(text, path), expected, "{path:?}");
    }
    assert!(piece(text, &["extensions", "dev"]).ends_with("a\n      b"), "{}", piece(text, &["extensions", "dev"]));
    assert_eq!(piece("extensions:\n  a:\n    cmd: >\n  b: 1\n", &["extensions", "a", "cmd"]), "cmd");
    let root = parse(text).map_err(|fault| fault.text).unwrap();
    let names: Vec<_> = root.entries().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["extensions"]);
    let key = &root.get("extensions").unwrap().get("b").unwrap().key;
    assert_eq!(&text[key.clone()], "b");
}

#[test]
fn scalars_are_what_yaml_says() {
    let text = "a: 1\nb: -2.5\nc: yes\nd: 'true'\ne: ~\nf: 0x10\ng: !!str 5\nh: 1.2.3\ni: e5\nj: \"x\\ty\"\nk: False\nl:\nm: 017\nn: -007\no: 0o17\np: 1e3\nq: 0\n";
    let Whole { root, empty } = whole(text).map_err(|fault| fault.text).unwrap();
    let text = |text: &str| Shape::Text(text.to_owned());
    for (name, shape) in [
        ("a", Shape::Integer(1)),
        ("b", Shape::Float(-2.5)),
        ("c", text("yes")),
        ("d", text("true")),
        ("f", Shape::Integer(16)),
        ("g", text("5")),
        ("h", text("1.2.3")),
        ("i", text("e5")),
        ("j", text("x\ty")),
        ("k", Shape::Bool(false)),
        ("m", text("017")),
        ("n", text("-007")),
        ("o", Shape::Integer(15)),
        ("p", Shape::Float(1000.0)),
        ("q", Shape::Integer(0)),
    ] {
        assert_eq!(root.get(name).unwrap().shape, shape, "{name}");
    }
    assert_eq!(empty.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["e", "l"]);
}

#[test]
fn an_alias_repeats_a_value_and_no_text_becomes_large_by_it() {
    let root = whole("a: &x {b: 1}\nc: *x\n").map_err(|fault| fault.text).unwrap().root;
    assert_eq!(root.get("c").unwrap().get("b").unwrap().shape, Shape::Integer(1));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert!(said(&bomb).starts_with("more than 131072 values"));
    assert!(said("a: &a [*a]\n").contains("an alias of a value without an end"));
}

#[test]
fn what_is_too_deep_too_much_or_no_table_has_a_place() {
    for (text, why) in [
        ("a: [1\n", ""),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("mcpServers: {}\nb: 2\nmcpServers: {}\n", "the key `mcpServers` is defined twice, first in line 1"),
        ("? [x]\n: 1\n", "a key must be a text"),
        ("- a\n", "this looks like YAML"),
        ("a", "YAML is read as the file of Goose or Continue"),
    ] {
        assert!(said(text).contains(why), "{text}: {}", said(text));
    }
    assert!(said(&format!("a: {}", "[".repeat(40))).contains("nested too deep"));
    assert!(said(&"- a\n".repeat(3000)).contains("more than 2048 entries"));
    let wrong = parse("mcpServers: x\n").map_err(|fault| fault.text).unwrap_err();
    assert!(wrong.contains("`mcpServers` must be"), "{wrong}");
    assert!(parse("extensions:\n").is_ok() && whole("# nothing\n").is_ok() && whole("").is_ok());
}

#[test]
fn a_key_that_stands_twice_has_no_value_and_all_around_it_is_read() {
    let text =
        "x: 1\nextensions:\n  a: {b: 1, c: {d: 1, d: {e: 2}}}\n  f:\n    g: ~\n    g: 1\n    h: 1\n    h:\nx: 2\n";
    let root = parse(text).map_err(|fault| fault.text).unwrap();
    let all = root.get("extensions").unwrap();
    let [a, f] = ["a", "f"].map(|name| all.get(name).unwrap());
    assert_eq!(a.get("b").unwrap().shape, Shape::Integer(1));
    for (node, name, line) in [(a.get("c").unwrap(), "d", 3), (f, "g", 5), (f, "h", 7)] {
        let why = format!("the key `{name}` is defined twice, first in line {line}");
        assert_eq!(node.get(name).unwrap().shape, Shape::Broken(why), "{name}");
    }
    let whole = whole(text).map_err(|fault| fault.text).unwrap().root;
    assert_eq!((whole.entries().len(), f.entries().len()), (2, 2), "each stands once");
}

#[test]
fn an_item_of_a_list_that_is_null_is_none_that_can_be_left_away() {
    let text = "extensions:\n  a:\n    args: [x, ~, y]\n  b:\n    args:\n    - x\n    -\n  c: [[null]]\n";
    let root = parse(text).map_err(|fault| fault.text).unwrap();
    let why = |name: &str| root.get("extensions").and_then(|all| all.get(name)).and_then(Node::broken).unwrap().1;
    assert_eq!([why("a"), why("b")], ["item 2 of `args` is null", "item 2 of `args` is null"]);
    assert_eq!(why("c"), "item 1 of a list is null");
}

#[test]
fn a_hosts_file_without_servers_has_none_and_what_is_no_hosts_file_is_told_what_to_write() {
    for host in ["GOOSE_MODEL: x\n", "GOOSE_PROVIDER:\n", "name: x\nversion: 1.0.0\nschema: v1\nmodels: []\n"] {
        assert_eq!(parse(host).map_err(|fault| fault.text), Ok(Node::default()), "{host}");
    }
    let said = |text: &str| parse(text).map_err(|fault| (fault.text, fault.is_without_servers)).unwrap_err();
    for (text, why, is_without_servers) in [
        ("extension:\n  a: {cmd: x}\n", "did you mean `extensions`?", false),
        ("mcpServer:\n", "did you mean `mcpServers`?", false),
        ("server:\n  listen: 127.0.0.1:1\n", UNLIKE, false),
        ("services:\n  web: {image: x}\n", WITHOUT, true),
        ("", WITHOUT, true),
    ] {
        let (said, is) = said(text);
        assert!(said.contains(why) && is == is_without_servers, "{text}: {said}");
    }
}
