//! Where clients are served: what goes together, and what does not.

use super::loading::{load_texts, shown};
use crate::downstream::config::{Config as Server, Faces};

const TOKENS: &str = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"0123456789abcdef\"\n";

fn server(text: &str) -> Server {
    load_texts(&[("a.toml", text)], &[]).unwrap_or_else(|faults| panic!("{faults}")).config.server
}

fn entry(address: &str, keys: &str) -> String {
    format!("[[server.listeners]]\naddress = \"{address}\"\n{keys}\n")
}

#[test]
fn an_entry_says_what_is_its_own_and_has_the_rest_of_the_section() {
    let common =
        "[server]\nlegacy_sse = false\nallowed_hosts = [\"a.example\"]\nallowed_origins = [\"https://a.example\"]\n";
    let own = "faces = [\"ws\"]\ntokens = [\"ann\"]\nallowed_hosts = []\nallowed_origins = [\"https://b.example\"]";
    let server = server(&format!("{common}{}{}{TOKENS}", entry("127.0.0.1:1", ""), entry("localhost:2", own)));
    assert!(server.lists_listeners);
    let [one, other] = &server.listeners[..] else { panic!("{:?}", server.listeners) };
    assert_eq!((one.address.to_string(), &one.tokens), ("127.0.0.1:1".to_owned(), &None));
    assert_eq!(one.faces, Faces { mcp: true, sse: false, websocket: true });
    assert_eq!(
        (&one.allowed_hosts[..], &one.allowed_origins[..]),
        (&["a.example".to_owned()][..], &["https://a.example".to_owned()][..])
    );
    assert_eq!(
        (other.address.to_string(), other.tokens.as_deref()),
        ("127.0.0.1:2".to_owned(), Some(&["ann".into()][..]))
    );
    assert_eq!(other.faces, Faces { mcp: false, sse: false, websocket: true });
    assert!(other.allowed_hosts.is_empty() && other.allowed_origins == ["https://b.example"]);
}

#[test]
fn the_public_address_is_admitted_where_few_names_are() {
    let public = "[server]\npublic_url = \"https://MCP.example.com:8443/gw/\"\n";
    let listed = [
        entry("127.0.0.1:1", ""),
        entry("0.0.0.0:2", ""),
        entry("0.0.0.0:3", "allowed_hosts = [\"a.example\"]"),
        entry("unix:/run/mcp.sock", ""),
    ];
    let server = server(&format!("{public}{}{TOKENS}", listed.concat()));
    let url = server.public_url.expect("it is set");
    assert_eq!((url.to_string().as_str(), url.host()), ("https://mcp.example.com:8443/gw", "mcp.example.com:8443"));
    let hosts: Vec<_> = server.listeners.iter().map(|one| one.allowed_hosts.join(" ")).collect();
    assert_eq!(hosts, ["mcp.example.com:8443", "", "a.example mcp.example.com:8443", ""]);
    assert!(server.listeners.iter().all(|one| one.allowed_origins == ["https://mcp.example.com:8443"]));
    for (text, expected) in [
        ("https://mcp.example.com:443", "https://mcp.example.com"),
        ("http://a:80/b", "http://a/b"),
        ("https://a:80", "https://a:80"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ] {
        let server = self::server(&format!("[server]\npublic_url = \"{text}\"\n"));
        assert_eq!(server.public_url.expect("it is set").to_string(), expected);
    }
    let wrong = "mcp.example.com ftp://a https:// https://a/b?c https://u@a https://a//b https://:8443 https://[::1 https://h:abc \
                 https://h:99999 https://h: https://h,evil https://h<script> https://h/../x https://h/./x https://[x]";
    for wrong in wrong.split(' ').chain(["https://a/b c", "https://h\\nx"]) {
        let said = shown(&format!("[server]\npublic_url = \"{wrong}\"\n"));
        assert!(said.contains("expected an address such as"), "{wrong}: {said}");
    }
}

#[test]
fn the_short_form_is_one_listener() {
    let short = server("[server]\nlisten = \"127.0.0.1:7\"\nwebsocket = false\n");
    let long = server(&format!("[server]\nwebsocket = false\n{}", entry("127.0.0.1:7", "")));
    assert_eq!(short.listeners, long.listeners);
    assert!(!short.lists_listeners);
}

#[test]
fn both_forms_at_once_are_refused_and_an_empty_variable_is_none() {
    let listed = entry("127.0.0.1:1", "");
    for (text, key) in [
        (
            format!("[server]\nlisten = \"127.0.0.1:2\"\n{listed}"),
            "both `server.listen` and [[server.listeners]] are written",
        ),
        (format!("{listed}[server.tls]\ncert = \"/x\"\n"), "both `server.tls` and [[server.listeners]] are written"),
    ] {
        let said = shown(&text);
        assert!(said.contains("error[two-forms]") && said.contains(key), "{said}");
    }
    let with = |value| load_texts(&[("a.toml", &listed)], &[("TRUNKLINE_SERVER__LISTEN", value)]);
    let said = with("127.0.0.1:2").unwrap_err().to_string();
    assert!(said.contains("error[two-forms]") && said.contains("TRUNKLINE_SERVER__LISTEN"), "{said}");
    assert_eq!(with("").unwrap().config.server.listeners[0].address.to_string(), "127.0.0.1:1");
    let nothing = load_texts(&[("a.toml", "")], &[("TRUNKLINE_SERVER__LISTEN", "")]).unwrap();
    assert_eq!(nothing.config.server.listeners, Server::default().listeners);
    assert!(shown("[server]\nlisten = \"\"\n").contains("expected an address with a port"), "a file says so");
}

/// Two listeners that say nothing but where they are.
fn two(one: &str, other: &str) -> String {
    entry(one, "") + &entry(other, "")
}

/// Each text is refused, at this place, with these words.
fn hold(cases: &[(String, &str, &str)]) {
    for (text, at, says) in cases {
        let said = shown(text);
        assert!(said.contains(says) && said.contains(&format!("a.toml:{at}\n")), "{says} at {at} in\n{said}");
    }
}

#[test]
fn what_does_not_go_together_is_told_at_its_place() {
    hold(&[
        (two("127.0.0.1:1", "127.0.0.1:1"), "5:11", "two listeners have the address 127.0.0.1:1"),
        (
            format!("[auth]\nallow_unauthenticated = true\n{}", two("0.0.0.0:1", "127.0.0.1:1")),
            "7:11",
            "two listeners have the address 127.0.0.1:1",
        ),
        (
            format!("{}[admin]\nlisten = \"127.0.0.1:2\"\n", two("127.0.0.1:1", "127.0.0.1:2")),
            "8:10",
            "([[server.listeners]])",
        ),
        (
            two("127.0.0.1:1", "0.0.0.0:2"),
            "5:11",
            "0.0.0.0:2 can be reached from other machines, and no tokens are configured",
        ),
        (format!("{}{TOKENS}", entry("0.0.0.0:2", "tokens = []")), "2:11", "none of the tokens counts there"),
        (entry("127.0.0.1:1", "tokens = [\"bob\"]"), "3:11", "no token of [[auth.tokens]] is named `bob`"),
        (
            entry("127.0.0.1:1", "faces = [\"mcp\", \"http\"]"),
            "3:17",
            "expected one or more of \"mcp\", \"sse\", \"ws\"",
        ),
        (entry("127.0.0.1:1", "faces = []"), "3:9", "expected one or more of"),
        (entry("nowhere", ""), "2:11", "expected an address with a port"),
        ("[[server.listeners]]\n".to_owned(), "1:1", "a listener has no `address`"),
        ("[server]\nlisteners = []\n".to_owned(), "2:13", "expected at least one entry"),
        (
            entry("127.0.0.1:1", "tls = { cert = \"/x\" }"),
            "3:1",
            "`tls` of [[server.listeners]] needs both `cert` and `key`",
        ),
        (
            entry("127.0.0.1:1", "tls = { cert = \"/x\", key = \"/y\" }"),
            "3:16",
            "invalid value for `server.listeners.0.tls.cert`",
        ),
        (entry("127.0.0.1:1", "port = 1"), "3:1", "`port` is not a key of [[server.listeners]]"),
    ]);
    let fine = format!("{}{}{TOKENS}", entry("0.0.0.0:2", ""), entry("127.0.0.1:1", "tokens = []"));
    assert_eq!(server(&fine).listeners.len(), 2);
}

#[test]
fn a_socket_has_a_path_that_the_system_takes_and_a_name_that_a_unit_can_give() {
    hold(&[
        (
            two("unix:/run/a/mcp.sock", "unix:///run/a/mcp.sock"),
            "5:11",
            "two listeners have the address unix:/run/a/mcp.sock",
        ),
        (two("systemd", "systemd"), "5:11", "two listeners have the address systemd"),
        (entry("systemd:", ""), "2:11", "expected \"systemd\", or \"systemd:NAME\""),
        (entry("systemd:a:b", ""), "2:11", "expected \"systemd\", or \"systemd:NAME\""),
        (entry("unix:mcp.sock", ""), "2:11", "expected an absolute path, without `#`"),
        (entry("unix:/run/a/", ""), "2:11", "expected an absolute path, without `#`"),
        (
            entry(&format!("unix:/{}", "x".repeat(107)), ""),
            "2:11",
            "the path has 108 bytes; that of a socket has at most 107",
        ),
        (
            entry("unix:/run/mcp.sock", "tls = { cert = \"/x\", key = \"/y\" }"),
            "3:1",
            "`tls` has no meaning at a Unix socket",
        ),
    ]);
    let longest = server(&format!("[server]\nlisten = \"unix:/{}\"\n", "x".repeat(106)));
    assert!(longest.listeners[0].address.port().is_none() && longest.listeners[0].address.is_local());
}
