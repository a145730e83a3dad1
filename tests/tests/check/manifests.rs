//! `trunkline check -`: what a chart renders is judged as its pods will find it.

use std::io::Write;
use std::process::{Command, Stdio};

use trunkline_tests::process::{GATEWAY, beside};

/// What is said of a text on stdin, and whether it is good.
fn check(text: &str, args: &[&str]) -> (bool, String) {
    let mut command = Command::new(beside(GATEWAY));
    command.arg("check").args(args).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // One that reads nothing of it has ended already.
    let _ = child.stdin.take().expect("a pipe").write_all(text.as_bytes());
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
    // The values of Secrets elsewhere are not known, and that is said.
    let (_, said) = check(&rendered("full"), &["-"]);
    assert!(said.contains("stand-ins here: TRUNKLINE_TOKEN, TRUNKLINE_SIGNING_KEY, TICKETS_TOKEN"), "{said}");
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
}
