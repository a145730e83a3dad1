//! `trunkline check -`.

use std::io::Write;
use std::process::{Command, Stdio};

use trunkline_tests::process::{GATEWAY, beside};

/// Pipes bytes into `trunkline check` and returns its success with stdout and stderr.
fn check(stdin: &[u8], args: &[&str]) -> (bool, String) {
    let mut command = Command::new(beside(GATEWAY));
    command.arg("check").args(args).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the gateway starts");
    // A command that refuses its arguments ends before it reads stdin.
    let _ = child.stdin.take().expect("stdin is piped").write_all(stdin);
    let output = child.wait_with_output().expect("the gateway ends");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn configuration_on_stdin_is_checked() {
    for (text, line) in [
        ("[upstreams.a]\nurl = 'https://a.example/'\n", "stdin: 1 upstream, no faults"),
        ("\u{feff}[upstreams.a]\nurl = 'https://a.example/'\n", "stdin: 1 upstream, no faults"),
    ] {
        let (good, output) = check(text.as_bytes(), &["-"]);
        assert!(good && output.contains(line), "{output}");
    }
    let (good, output) = check(b"[upstreams.a]\nurrl = 'https://a.example/'\n", &["-"]);
    assert!(!good && output.contains("stdin:2:1"), "{output}");
}

#[test]
fn unusable_stdin_is_refused() {
    for (bytes, why) in [
        (&b""[..], "stdin is empty"),
        (&b"a = '\xff'\n"[..], "stdin is not UTF-8 text"),
        (&vec![b'#'; 33 << 20], "more than 32 MiB"),
    ] {
        let (good, output) = check(bytes, &["-"]);
        assert!(!good && output.contains(why), "{why} in {output}");
    }
    let (good, output) = check(b"", &["-", "--config", "a.toml"]);
    assert!(!good && output.contains("leave `--config` away"), "{output}");
}

#[test]
fn kubernetes_manifests_are_refused_with_advice() {
    let path = format!("{}/chart/golden/default.yaml", env!("CARGO_MANIFEST_DIR"));
    let manifests = std::fs::read(path).expect("the rendering exists");
    let (good, output) = check(&manifests, &["-"]);
    assert!(!good, "{output}");
    for advice in ["Kubernetes manifests", "`config.toml`", "--show-only templates/configmap.yaml", "init container"] {
        assert!(output.contains(advice), "{advice} in {output}");
    }
}
