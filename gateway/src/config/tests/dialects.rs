//! Upstreams that know calls of tools alone: what is said of them, and what then has no meaning.

use super::loading::{good, shown};
use crate::upstream::config::{Config, Dialect, EraChoice, Sharing};

const HTTP: &str = "[upstreams.a]\nurl = \"http://h.example/\"\n";
const SOCKET: &str = "[upstreams.a]\nurl = \"ws://h.example/\"\n";
const DEFINE: &str = "[upstreams.a.tools]\ndefine = { two = '{\"description\":\"2\"}', one = ' {\"inputSchema\":{\"type\":\"object\",\"x\":1}} ' }\n";

fn one(text: &str) -> Config {
    good(text).config.upstreams.remove(0)
}

#[test]
fn what_knows_calls_of_tools_alone_has_no_eras_no_sessions_and_no_pings() {
    let plain = one(HTTP);
    assert_eq!((plain.dialect, plain.sharing), (Dialect::Mcp, Sharing::OwnSessions));
    assert_eq!(one(&format!("{HTTP}sessions = \"auto\"\n")).dialect, Dialect::Mcp);
    let off = one(&format!("{HTTP}sessions = \"off\"\n"));
    assert_eq!((off.dialect, off.era, off.sharing), (Dialect::CallsOnly, EraChoice::Legacy, Sharing::Shared));
    assert_eq!((off.health.interval, off.defined), (None, None));
    let bare = one(&format!("{SOCKET}dialect = \"bare\"\n{DEFINE}"));
    assert_eq!((bare.dialect, bare.era, bare.health.interval), (Dialect::Bare, EraChoice::Legacy, None));
    let list = r#"{"tools":[{"name":"two","inputSchema":{"type":"object"},"description":"2"},{"name":"one","inputSchema":{"type":"object","x":1}}]}"#;
    assert_eq!(bare.defined.as_deref(), Some(list.as_bytes()));
    assert_eq!(one(&format!("{HTTP}sessions = \"off\"\n{DEFINE}")).defined.as_deref(), Some(list.as_bytes()));
}

#[test]
fn what_has_no_meaning_for_it_is_refused() {
    for key in
        ["era = \"legacy\"", "eras = \"both\"", "roots = []", "hang_restart = true", "health = { interval = \"1s\" }"]
    {
        let name = key.split_once(' ').expect("a key").0;
        let said = shown(&format!("{SOCKET}dialect = \"bare\"\n{key}\n{DEFINE}"));
        assert!(said.contains(&format!("error[useless-key]: `{name}` has no meaning for this upstream")), "{said}");
    }
    for (text, says) in [
        (format!("{HTTP}dialect = \"bare\"\n"), "calls by plain HTTP are `sessions = \"off\"`"),
        (format!("{SOCKET}sessions = \"off\"\n"), "only an upstream with transport `http` can do without"),
        ("[upstreams.a]\ncommand = \"x\"\ndialect = \"bare\"\n".into(), "only an upstream with transport `websocket`"),
        (format!("{HTTP}{DEFINE}"), "tools are defined for `sessions = \"off\"` and `dialect = \"bare\"` alone"),
        (format!("{SOCKET}dialect = \"bare\"\n"), "needs `tools.define`: it has no list of tools"),
        (format!("{SOCKET}dialect = \"bare\"\ntools.define = {{}}\n"), "needs `tools.define`: it has no list of tools"),
        (format!("{SOCKET}dialect = \"bare\"\ntools.define = {{}}\n"), "no tool is defined here"),
        (format!("{HTTP}sessions = \"of\"\n"), "did you mean \"off\"?"),
    ] {
        let said = shown(&text);
        assert!(said.contains(says), "{text}: {said}");
    }
}

#[test]
fn a_definition_that_is_none_is_shown_with_what_to_write() {
    for (text, says) in [
        ("x", "expected a JSON object such as"),
        ("[1]", "expected a JSON object such as"),
        (r#"{"name":"x"}"#, "its name is the key; leave `name` out"),
        (r#"{"inputSchema":1}"#, "`inputSchema` must be an object"),
    ] {
        let said = shown(&format!("{HTTP}sessions = \"off\"\n[upstreams.a.tools.define]\nprint = '{text}'\n"));
        assert!(said.contains("invalid definition of the tool `print`") && said.contains(says), "{said}");
        assert!(said.contains("a.toml:5:9"), "{said}");
    }
}

#[test]
fn what_asks_nothing_is_not_doubted_where_several_tokens_share_it() {
    let tokens: String = ["ann", "bob"]
        .map(|name| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{name}-0123456789abcdef\"\n"))
        .concat();
    assert!(one(&format!("{SOCKET}{tokens}")).doubt().is_some());
    assert_eq!(one(&format!("{SOCKET}dialect = \"bare\"\n{DEFINE}{tokens}")).doubt(), None);
}
