//! Whatever is wrong with a file, nothing secret in it is shown.

use proptest::prelude::*;

use super::loading::shown;
use crate::config::{Inputs, load};
use crate::runtime::Scratch;

/// The secret stands wherever one can stand; `${NO}` makes every text a fault.
const TOML: &str = r#"
[upstreams.a]
command = "x"
args = ["--key", "canary", "${NO} canary"]
env = { KEY = "canary", OTHER = 'canary ${NO}' } # canary
[upstreams.b]
url = "https://h/?key=canary"
headers.Authorization = "Bearer canary"
[upstreams.b.headers]
X-Key = """
canary
canary ${NO} canary"""
[[auth.tokens]]
name = "n"
token = "canary-canary-canary"
[server.session]
signing_key = "canary ${NO} canary"
"#;

const JSON: &str = r#"{"mcpServers": {
  "a": {"command": "x", "args": ["--key", "canary", "${NO} canary"], "env": {"KEY": "canary", "OTHER": "canary ${NO}"}},
  "b": {"url": "https://h/?key=canary", "headers": {"Authorization": "Bearer canary"}} // canary
}}"#;

/// Replaces one character, which breaks the text in one of many ways.
fn broken(text: &str, at: prop::sample::Index, with: &str) -> String {
    let mut chars: Vec<String> = text.chars().map(String::from).collect();
    let at = at.index(chars.len());
    chars[at] = with.to_owned();
    chars.concat()
}

/// Faults beside the canary itself: a broken one is no longer a secret, but all others are.
fn leaks(faults: &str) -> bool {
    faults.contains("canary")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

    #[test]
    fn a_broken_toml_file_tells_no_secret(at: prop::sample::Index, with in "[\"'=\\[\\]{}#\n\\\\ ,.$:a0]?") {
        let text = broken(TOML, at, &with);
        let faults = std::panic::catch_unwind(|| shown(&text)).expect("it has faults and no panic");
        prop_assert!(!leaks(&faults), "{}\n{}", text, faults);
    }

    #[test]
    fn a_broken_host_file_tells_no_secret(at: prop::sample::Index, with in "[\"'=\\[\\]{}#\n\\\\ ,.$:/*a0]?") {
        let folder = Scratch::new();
        let text = broken(JSON, at, &with);
        let files = vec![folder.write("mcp.json", &text)];
        if let Err(faults) = load(Inputs { files, ..Inputs::default() }) {
            prop_assert!(!leaks(&faults.to_string()), "{}\n{}", text, faults);
        }
    }
}
