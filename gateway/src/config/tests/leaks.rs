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

/// Secrets that look like what stands around values, where names are.
const HOSTILE: &str = r#"
[upstreams.a]
command = "x"
args = ["--key=canary=", "canary: canary", "{ canary = canary, canary: 1 }", 'canary = "canary"']
env = { KEY = "1, canary = canary", OTHER = ", canary = 'canary'" } # canary = "canary"
[upstreams.b]
url = "https://canary:canary@h/?canary=canary&x=[canary]"
headers.Authorization = "canary= # canary = canary"
"#;

const HOSTILE_LINES: &str = r#"
[upstreams.a]
url = "https://h/"
[upstreams.a.headers]
X-Key = """
canary = "canary"
[canary]
canary: canary
"""
X-Other = '''
canary==
{ canary = canary }
'''
"#;

const HOSTILE_JSON: &str = r#"{"mcpServers": {
  "a": {"command": "x", "args": ["--key=canary=", "canary: {canary: canary}", "\"canary\": \"canary\"", ", canary:"],
    "env": {"KEY": "{canary: canary, ", "OTHER": ": canary: // canary"}},
  "b": {"url": "https://canary:canary@h/?canary=canary", "headers": {"Authorization": "canary:"}} // "canary": canary
}}"#;

const HOSTILE_YAML: &str = r#"mcpServers:
  - name: a
    command: x
    args: ["canary=canary", "canary: canary", 'canary: canary', canary:canary]
    env:
      KEY: "canary
        canary: canary"
      OTHER: 'canary: canary' # canary
      MORE: canary=
  - name: b
    url: https://canary:canary@h/?canary=canary
    headers:
      X: |
        canary: canary
        canary:
      Y: canary
"#;

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

#[test]
fn a_line_behind_a_fault_shows_no_name_that_may_be_the_rest_of_a_secret_there() {
    let torn = [
        ("?canary=canary&", "\ncanary=canary&", HOSTILE),
        ("=[canary]", "\n[canary]", HOSTILE),
        ("OTHER = \"", "OTHER = \n", HOSTILE),
        ("X-Key = ", "X-Key ='", HOSTILE_LINES),
        ("X-Key = ", "X-Key =#", HOSTILE_LINES),
    ];
    for (part, broken, whole) in torn {
        let text = whole.replacen(part, broken, 1);
        let folder = Scratch::new();
        let files = vec![folder.write("a.toml", &text)];
        let faults = load(Inputs { files, ..Inputs::default() }).expect_err("it has faults").0;
        let broken: Vec<_> = faults.iter().filter(|fault| fault.kind == "syntax").map(ToString::to_string).collect();
        assert!(text != whole && !broken.is_empty() && !leaks(&broken.concat()), "{text}\n{}", broken.concat());
    }
}

/// The number of texts of each test. `TRUNKLINE_SUITE=whole` asks for more of them.
fn cases() -> u32 {
    if std::env::var_os("TRUNKLINE_SUITE").is_some_and(|value| value == "whole") { 3_000 } else { 250 }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_broken_toml_file_tells_no_secret(at: prop::sample::Index, with in "[\"'=\\[\\]{}#\n\\\\ ,.$:a0]?") {
        let text = broken(TOML, at, &with);
        let faults = std::panic::catch_unwind(|| shown(&text)).expect("it has faults and no panic");
        prop_assert!(!leaks(&faults), "{}\n{}", text, faults);
    }

    #[test]
    fn a_broken_file_with_secrets_that_look_like_names_tells_none(
        at: prop::sample::Index, with in "[\"'=\\[\\]{}#\n\\\\ ,.$:a0]?", kind in 0..4usize,
    ) {
        let (name, text) = [("a.toml", HOSTILE), ("b.toml", HOSTILE_LINES), ("mcp.json", HOSTILE_JSON), ("a.yaml", HOSTILE_YAML)][kind];
        let text = broken(text, at, &with);
        let folder = Scratch::new();
        if let Err(faults) = load(Inputs { files: vec![folder.write(name, &text)], ..Inputs::default() }) {
            let broken: Vec<_> = faults.0.iter().filter(|fault| fault.kind == "syntax").map(ToString::to_string).collect();
            prop_assert!(!leaks(&broken.concat()), "{}\n{}", text, broken.concat());
        }
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
