//! Configuration files: our own, those of hosts, and the references in them.

use super::target::{Shape, Target};
use trunkline::config::fault::Fault;
use trunkline::config::fault::Faults;
use trunkline::fuzzing::config::{self, Format};
use trunkline::fuzzing::steps;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "toml_files", body: toml_files, words: TOML_WORDS },
    Target { name: "host_files", body: host_files, words: HOST_WORDS },
    Target { name: "yaml_files", body: yaml_files, words: YAML_WORDS },
    Target { name: "references", body: references, words: &["${", "}", ":-", ":?", "$$", "${file:/", "env:", "A"] },
];

const TOML_WORDS: &[&str] = &[
    "[upstreams.a]\n",
    "command = \"x\"\n",
    "url = \"http://h/\"\n",
    "[server]\n",
    "listen = \"127.0.0.1:1\"\n",
    "[[auth.tokens]]\n",
    "a.b.c = 1\n",
    "'''",
    "\"\"\"",
    "[",
    "]",
    "{",
    "}",
    " = ",
    "inf",
    "1979-05-27T07:32:00Z",
    "0x",
    "[defaults]\n",
    "call_timeout = \"1s\"\n",
    "${A:-b}",
];

const HOST_WORDS: &[&str] = &[
    "{\"mcpServers\":{",
    "\"command\":\"npx\"",
    "\"args\":[\"-y\"]",
    "\"url\":\"http://h/\"",
    "\"env\":{\"A\":\"b\"}",
    "\"servers\":{",
    "//",
    "/*",
    "*/",
    "\"type\":\"stdio\"",
    "\"headers\":{",
    "\"timeout\":1",
    "\"disabled\":true",
    "null",
    "1e999",
    "${A}",
];

const YAML_WORDS: &[&str] = &[
    "extensions:\n",
    "mcpServers:\n",
    "- name: a\n",
    "  command: x\n",
    "cmd: x\n",
    "env: {A: b}\n",
    "&a ",
    "*a",
    "? ",
    ": ",
    "|\n",
    ">-\n",
    "---\n",
    "...\n",
    "!!str ",
    "%TAG ! x\n",
    "'",
    "\"\\x",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "  ",
    "\t",
    "#",
    "${{ secrets.A }}",
];

fn toml_files(input: &[u8]) -> Shape {
    judged(input, Format::Toml)
}

fn host_files(input: &[u8]) -> Shape {
    judged(input, Format::Json)
}

fn yaml_files(input: &[u8]) -> Shape {
    judged(input, Format::Yaml)
}

/// Faults can be shown on any terminal, have a place within the file, and cost no more than the file is long.
fn judged(input: &[u8], format: Format) -> Shape {
    let text = String::from_utf8_lossy(input);
    let mut faults = Vec::new();
    if let Some(steps) = steps::of(|| faults = config::faults(&text, format)) {
        // Each fault that is shown costs a look at its file; there are only so many.
        let most = (text.len() as u64 + 4096) * 512;
        assert!(steps <= most, "{steps} steps for {} bytes", text.len());
    }
    let kinds: Vec<&str> = faults.iter().map(|fault: &Fault| fault.kind).take(4).collect();
    let shape = Shape::of((kinds, faults.len().min(9)));
    let shown = Faults(faults).to_string();
    assert!(shown.chars().all(|char| char == '\n' || !char.is_control()), "{shown:?}");
    shape
}

/// What is filled in is never looked at again, and a text without references stays.
fn references(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    let expanded = config::expanded(&text);
    if !text.contains('$') {
        assert_eq!(expanded.as_deref(), Some(&*text));
    }
    Shape::of((expanded.is_some(), text.matches("${").count().min(5)))
}
