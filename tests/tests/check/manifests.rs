//! `trunkline check -`: what a chart renders is judged as its pods will find it.

use std::io::Write;
use std::process::{Command, Stdio};

use trunkline_tests::process::{GATEWAY, beside};

/// What is said of a text on stdin, and whether it is good.
fn check(text: &str, args: &[&str]) -> (bool, String) {
    check_bytes(text.as_bytes(), args)
}

fn check_bytes(text: &[u8], args: &[&str]) -> (bool, String) {
    let mut command = Command::new(beside(GATEWAY));
    // What this machine has says nothing of a pod.
    command.arg("check").args(args).env_clear().env("A_KEY", "of this machine");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // One that reads nothing of it has ended already.
    let _ = child.stdin.take().expect("a pipe").write_all(text);
    let output = child.wait_with_output().expect("it ends");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// What the chart renders with the values of this name.
fn rendered(name: &str) -> String {
    let path = format!("{}/chart/golden/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the rendering is there")
}

#[test]
fn what_the_chart_renders_is_checked_with_the_files_and_variables_of_its_pod() {
    for (name, of) in [
        (
            "default",
            "Deployment gateway-trunkline: gateway-trunkline/config.toml, gateway-trunkline/chart.toml: 0 upstreams",
        ),
        ("full", "Deployment mcp: mcp/config.toml, mcp/chart.toml: 3 upstreams, no faults"),
        (
            "replicas",
            "Deployment gateway-trunkline: gateway-trunkline/config.toml, gateway-trunkline/chart.toml: 1 upstream",
        ),
    ] {
        let (good, said) = check(&rendered(name), &["-"]);
        assert!(good && said.contains(of), "{name}: {said}");
    }
    // Some shells put a mark before what they pipe.
    let marked = "\u{feff}apiVersion: v1\nkind: ConfigMap\nmetadata: { name: own }\ndata: { config.toml: '' }\n";
    let (good, said) = check(marked, &["-"]);
    assert!(good && said.contains("ConfigMap own: own/config.toml: "), "{said}");
    // The values of Secrets elsewhere are not known, and that is said.
    let (_, said) = check(&rendered("full"), &["-"]);
    assert!(said.contains("stand-ins here: TRUNKLINE_TOKEN, TRUNKLINE_SIGNING_KEY, TICKETS_TOKEN"), "{said}");
    // Nor is anything known of the machine on which it will run.
    assert!(said.contains("no faults\n") && !said.contains("warning"), "{said}");
}

#[test]
fn a_fault_is_told_with_the_config_map_and_the_line_in_it() {
    let text = rendered("default").replace("    path = \"/mcp\"", "    pth = \"/mcp\"");
    let (good, said) = check(&text, &["-"]);
    assert!(!good && said.contains("gateway-trunkline/chart.toml:2:1") && said.contains("`path`"), "{said}");
    assert!(said.contains("Deployment gateway-trunkline: 1 error"), "{said}");
    let (good, said) = check(&text, &["-", "--json"]);
    let said: serde_json::Value =
        serde_json::from_str(&said[..said.find("\n}\n").expect("JSON") + 2]).expect("one value");
    assert_eq!((good, &said["gateways"]), (false, &serde_json::json!(["Deployment gateway-trunkline"])), "{said}");
}

#[test]
fn a_variable_that_the_pod_does_not_have_is_told() {
    let server = "  config.toml: |\n    [upstreams.a]\n    url = \"https://a.example/\"\n    headers = { X-Key = \"${A_KEY}\" }\n";
    let text = rendered("default").replace("  config.toml: |\n    \n", server);
    let (good, said) = check(&text, &["-"]);
    assert!(!good && said.contains("error[unset-variable]") && said.contains("A_KEY"), "{said}");
    // One from a Secret that is among the manifests has its value.
    let from = "          env:\n            - name: A_KEY\n              valueFrom: { secretKeyRef: { name: keys, key: a } }\n";
    let secret = "\n---\napiVersion: v1\nkind: Secret\nmetadata: { name: keys }\ndata: { a: bGluZQpicmVhaw== }\n";
    let with = text.replace("          env:\n", from);
    let (good, said) = check(&with, &["-"]);
    assert!(good && said.contains("A_KEY"), "{said}");
    let (good, said) = check(&(with + secret), &["-"]);
    assert!(!good && said.contains("a.headers") && !said.contains("break"), "the value breaks a header: {said}");
}

#[test]
fn a_config_map_that_is_not_among_the_manifests_is_named_and_may_be_added() {
    let text = rendered("own");
    let (good, said) = check(&text, &["-"]);
    assert!(!good && said.contains("the ConfigMap `my-config` with /etc/trunkline/config.toml is not among"), "{said}");
    let map = |text: &str| {
        format!(
            "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: my-config }}\ndata:\n  config.toml: |\n    {text}\n"
        )
    };
    let tokens = "auth.tokens = [{ name = 'ci', token = '0123456789012345' }]";
    let key = "\n    server.session.signing_key = 'a-signing-key-that-is-long-enough-for-it'";
    let (good, said) = check(&(text + &map(&format!("{tokens}{key}"))), &["-"]);
    assert!(good && said.contains("my-config/config.toml, gateway-trunkline/chart.toml"), "{said}");
    // By itself it is a configuration, too.
    let (good, said) = check(&map("lissten = 1"), &["-"]);
    assert!(!good && said.contains("my-config/config.toml:1:1") && said.contains("ConfigMap my-config: "), "{said}");
}

#[test]
fn what_has_no_configuration_is_told_and_a_configuration_is_taken_by_itself() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: { name: a }\n";
    for (text, said) in [
        (service, "no container among the manifests runs `trunkline serve --config FILE`"),
        ("", "stdin is empty"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {\n", "stdin:"),
        ("[upstreams.a]\nurrl = 'https://a.example/'\n", "stdin:2:1"),
    ] {
        let (good, told) = check(text, &["-"]);
        assert!(!good && told.contains(said), "{said} in {told}");
    }
    let (good, said) = check("[upstreams.a]\nurl = 'https://a.example/'\n", &["-"]);
    assert!(good && said.contains("stdin: 1 upstream, no faults"), "{said}");
    let (good, said) = check("", &["-", "--config", "a.toml"]);
    assert!(!good && said.contains("leave `--config` away"), "{said}");
    for (bytes, why) in [(&b"a = '\xff'\n"[..], "stdin is not UTF-8 text"), (&vec![b'#'; 33 << 20], "more than 32 MiB")]
    {
        let (good, said) = check_bytes(bytes, &["-"]);
        assert!(!good && said.contains(why), "{said}");
    }
}

#[test]
fn a_syntax_fault_is_told_with_its_line_in_the_whole_stream() {
    let before = rendered("default");
    let (good, said) = check(&format!("{before}---\nkind: ConfigMap\nmetadata: [\n"), &["-"]);
    let last = before.lines().count() + 3;
    let is_there = (last..last + 2).any(|line| said.contains(&format!("stdin:{line}:")));
    assert!(!good && is_there, "line {last}: {said}");
}

/// What a container that is no gateway's looks like.
const BESIDE: &str = "    - { name: beside, args: [check, --config, /etc/a/config.toml] }\n";

/// A pod whose second container has these keys, with these volumes, and what stands beside it.
fn pod(container: &str, volumes: &str, others: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{ name: odd }}\nspec:\n  containers:\n{BESIDE}    - name: gateway\n{container}\n  volumes:\n{volumes}\n---\n{others}"
    )
}

#[test]
fn a_file_is_found_where_its_container_would_find_it() {
    let container = "      args: [serve, --config=/etc/t/conf.d/a.toml]\n      volumeMounts:\n        - { name: inner, mountPath: /etc/t/conf.d/a.toml, subPath: odd }\n        - { name: outer, mountPath: /etc/t }";
    let volumes = "    - { name: outer, configMap: { name: outer } }\n    - { name: inner, configMap: { name: inner, items: [{ key: real.toml, path: odd }] } }";
    let maps = "apiVersion: v1\nkind: List\nitems:\n  - kind: ConfigMap\n    metadata: { name: inner }\n    data: { real.toml: \"[upstreams.a]\\nurl = 'https://a.example/'\", odd: nonsense }\n  - kind: ConfigMap\n    metadata: { name: outer }\n    data: { conf.d/a.toml: nonsense, a.toml: nonsense }\n";
    let (good, said) = check(&pod(container, volumes, maps), &["-"]);
    assert!(good && said.contains("Pod odd: inner/real.toml: 1 upstream, no faults"), "{said}");
    // A container that only checks is no gateway, and then a ConfigMap is taken by itself: its TOML alone.
    let text = pod(
        "      args: [sleep]",
        "",
        "kind: ConfigMap\nmetadata: { name: own }\ndata: { config.toml: '', notes.txt: '[[' }\n",
    );
    let (good, said) = check(&text, &["-"]);
    assert!(good && said.contains("ConfigMap own: own/config.toml: 0 upstreams"), "{said}");
}

/// A pod with variables of these sources and its own, whose configuration has these headers; and what stands beside it.
fn with_variables(from: &str, own: &str, headers: &str, others: &str) -> (bool, String) {
    let container = format!(
        "      command: [trunkline, serve]\n      volumeMounts: [{{ name: c, mountPath: /etc/t }}]\n      envFrom: [{from}]\n      env: [{{ name: TRUNKLINE_CONFIG, value: /etc/t/config.toml }}{own}]"
    );
    let map = format!(
        "kind: ConfigMap\nmetadata: {{ name: c }}\ndata:\n  config.toml: |\n    [upstreams.a]\n    url = 'https://a.example/'\n    headers = {{ {headers} }}\n---\n{others}"
    );
    check(&pod(&container, "    - { name: c, configMap: { name: c } }", &map), &["-"])
}

#[test]
fn variables_come_of_secrets_and_config_maps_and_those_of_others_have_stand_ins() {
    let from = "{ secretRef: { name: s }, prefix: P_ }, { configMapRef: { name: m } }";
    let others = "kind: Secret\nmetadata: { name: s }\nstringData: { KEY: \"two\\nlines\" }\n---\nkind: ConfigMap\nmetadata: { name: m }\ndata: { OPEN: word }\n";
    let is_good = |said: &str| said.contains("Pod odd: c/config.toml: 1 upstream, no faults");
    let (good, said) = with_variables(from, "", "X-Open = '${OPEN}'", others);
    assert!(good && is_good(&said) && !said.contains("stand-ins"), "{said}");
    // Its value is one that no header can have.
    let (good, said) = with_variables(from, "", "X-Key = '${P_KEY}'", others);
    assert!(!good && said.contains("a.headers") && !said.contains("unset"), "{said}");
    let (good, said) = with_variables(from, "", "X-Key = '${KEY}'", others);
    assert!(!good && said.contains("unset-variable"), "{said}");
    // Where a source is elsewhere, every name may be in it; what is written out is no name.
    let (good, said) = with_variables(from, "", "X-Key = '${ELSEWHERE}', Y = '$${NONE}'", "");
    assert!(good && said.contains("stand-ins here: ELSEWHERE\n"), "{said}");
    // Its own ones: of a key, without a value, and in the place of one of a source.
    let own = ", { name: ONE, valueFrom: { configMapKeyRef: { name: m, key: OPEN } } }, { name: EMPTY }, { name: P_KEY, value: good }";
    let (good, said) = with_variables(from, own, "A = 'x${EMPTY}', B = '${ONE}', C = '${P_KEY}'", others);
    assert!(good && is_good(&said) && !said.contains("stand-ins"), "{said}");
}

#[test]
fn files_of_a_pod_that_are_not_here_are_no_faults() {
    let map = "kind: ConfigMap\nmetadata: { name: own }\ndata:\n  config.toml: |\n    [server.tls]\n    cert = '/etc/tls/tls.crt'\n    key = '/etc/tls/tls.key'\n    [upstreams.a]\n    url = 'https://a.example/'\n";
    let text = format!("apiVersion: v1\n{map}");
    let (good, said) = check(&text, &["-"]);
    assert!(good && said.contains("was not looked at") && said.contains("no faults, 1 warning"), "{said}");
    let (good, said) = check(&(text + "    lissten = 1\n"), &["-"]);
    assert!(!good && said.contains("lissten"), "{said}");
}
