//! The example file says what the defaults are, and names every key.

use std::path::Path;

use super::loading::load_texts;
use crate::config::Config;
use crate::config::import;
use crate::config::load::check;
use crate::config::read::Reading;
use crate::config::source::Environment;
use crate::runtime::Scratch;

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config.example.toml");
    std::fs::read_to_string(path).unwrap()
}

/// The file with its examples, which begin with `#` and no space, switched on.
pub(super) fn with_examples() -> String {
    let on = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest.to_owned(),
        _ => line.to_owned(),
    };
    example().lines().map(on).collect::<Vec<_>>().join("\n")
}

const ENV: [(&str, &str); 6] = [
    ("HOME", "/h"),
    ("TRUNKLINE_ADMIN_TOKEN", "0123456789abcdef"),
    ("TICKETS_TOKEN", "t"),
    ("TRUNKLINE_INTROSPECTION_SECRET", "s"),
    ("TRUNKLINE_LAPTOP_TOKEN", "0123456789abcdef"),
    ("TRUNKLINE_SIGNING_KEY", "0123456789abcdef0123456789abcdef"),
];

#[test]
fn the_example_file_equals_the_defaults() {
    let loaded = load_texts(&[("a.toml", &example())], &[]).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.config, Config::default());
}

#[test]
fn its_defaults_for_upstreams_are_those_that_are_built_in() {
    let upstream = "\n[upstreams.x]\ncommand = 'x'\n";
    let of = |text: &str| load_texts(&[("a.toml", text)], &ENV).unwrap().config.upstreams;
    assert_eq!(of(&(example() + upstream)), of(upstream));
}

#[test]
fn its_examples_are_right() {
    // The files of a certificate are read with the configuration, and here there are none.
    let is_of_files = |line: &&str| {
        let keys = ["[server.tls]", "cert = ", "key = ", "ca = ", "client_ca = ", "http2 = ", "tls = { cert"];
        keys.iter().any(|key| line.starts_with(key))
    };
    // `[server] listen` is the short form of the listeners, which are among the examples.
    let is_of_files = |line: &&str| is_of_files(line) || line.starts_with("listen = \"127.0.0.1:8808\"");
    let text = with_examples().lines().filter(|line| !is_of_files(line)).collect::<Vec<_>>().join("\n");
    let loaded = load_texts(&[("a.toml", &text)], &ENV).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.upstreams.len(), 10);
}

#[test]
fn every_key_is_in_it() {
    let folder = Scratch::new();
    let (source, _) = import::file(&folder.write("a.toml", &with_examples())).unwrap();
    let reading = Reading::new(vec![source], Environment::of(&ENV), Vec::new());
    check(&reading);
    let text = with_examples();
    let asked = reading.asked.borrow();
    let absent = |key: &&String| {
        !text.contains(&format!("{key} = "))
            && !text.contains(&format!("{key}]"))
            && !text.contains(&format!("[{key}."))
    };
    let missing: Vec<&String> = asked.iter().filter_map(|path| path.last()).filter(absent).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(asked.len() > 60, "{}", asked.len());
}
