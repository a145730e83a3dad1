//! Upstreams that are configured and left out, since something that they need is missing: what each command says of them.

use std::process::Output;

use tokio::process::Command;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::shell;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

use crate::laptop::{entry, in_home, text};

const LEGACY: Revision = Revision::R2025_11_25;
const OPTIONAL: &str = "[upstreams.opt]\ncommand = 'sh'\nargs = ['${NOT_SET_HERE}']\noptional = true\n";
const WHY: &str = "upstream `opt` is left out: ${NOT_SET_HERE} has no value and no default; \
    export NOT_SET_HERE=… where the gateway is started, and start it anew";

async fn run(mut command: Command) -> Output {
    within("the command ends", command.output()).await.expect("it runs")
}

#[tokio::test]
async fn each_command_says_of_an_upstream_that_was_left_out_why_and_what_to_do() {
    let well = Upstream::stdio(Script::new("well", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&well).section(OPTIONAL)).await;
    gateway.look_until("/readyz?verbose", "one is up", |page| page.contains("  ready  ")).await;
    for args in [
        &["status", "opt"][..],
        &["tools", "opt"],
        &["prompts", "opt"],
        &["logs", "opt"],
        &["call", "opt__find"],
        &["start", "opt"],
        &["restart", "opt"],
    ] {
        let Output { status, stdout, stderr } = run(gateway.command(args)).await;
        let said = text(&stdout) + &text(&stderr);
        assert!(status.code() == Some(1) && said.contains(WHY), "{args:?}: {said}");
    }
    let listed = text(&run(gateway.command(&["ls"])).await.stdout);
    let row = listed.lines().find(|line| line.starts_with("opt ")).unwrap_or_default();
    assert!(row.contains("left_out") && row.contains("${NOT_SET_HERE} has no value"), "{listed}");
    let json: serde_json::Value =
        serde_json::from_slice(&run(gateway.command(&["ls", "--json"])).await.stdout).expect("it is JSON");
    assert_eq!(json["configuration"]["left_out"][0]["name"], "opt", "{json:#}");
    let unknown = text(&run(gateway.command(&["status", "nosuch"])).await.stderr);
    assert!(unknown.contains("Known: well (left out: opt)"), "{unknown}");
    // Of a list of all, what is not there is said beside it.
    let all = run(gateway.command(&["tools"])).await;
    let beside = text(&all.stderr);
    assert!(all.status.success() && beside.contains(&format!("not listed: {WHY}")), "{beside}");
}

#[tokio::test]
async fn a_command_without_a_running_gateway_says_why_an_upstream_was_left_out() {
    let home = Scratch::new();
    let _file =
        home.file("trunkline.toml", &format!("{OPTIONAL}[upstreams.slow]\ncommand = 'sleep'\nargs = ['600']\n"));
    for args in [&["call", "opt__find"][..], &["login", "opt"]] {
        let Output { status, stderr, .. } = run(in_home(&home, args)).await;
        let said = text(&stderr);
        let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(
            status.code() == Some(1) && error.contains("is left out: ${NOT_SET_HERE} has no value"),
            "{args:?}: {said}"
        );
    }
}

#[tokio::test]
async fn a_server_of_a_host_that_cannot_be_used_is_known_as_left_out() {
    let home = Scratch::new();
    let servers =
        r#"{"mcpServers": {"Lame One": {"command": "sh", "env": {"A": "${NOT_SET_HERE}"}}, "odd": {"args": []}}}"#;
    let file = home.file("mcp.json", servers).display().to_string();
    for (name, why) in [("lame-one", "${NOT_SET_HERE} has no value"), ("odd", "`command`")] {
        let Output { status, stderr, .. } = run(in_home(&home, &["tools", name, "--config", &file])).await;
        let said = text(&stderr);
        let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(status.code() == Some(1) && error.contains("is left out: ") && error.contains(why), "{name}: {said}");
    }
}

#[tokio::test]
async fn of_many_that_are_left_out_a_command_without_a_running_gateway_says_in_one_line_how_many() {
    let home = Scratch::new();
    let lame = |name: &str| OPTIONAL.replace("[upstreams.opt]", &format!("[upstreams.{name}]"));
    let lame = format!("{}{}{}", lame("one"), lame("two"), lame("three"));
    let well = entry("sh", &shell::upstream(&[("hello", "said ok")]));
    let _file = home.file("trunkline.toml", &format!("{lame}{well}"));
    let many = "3 of 4 upstreams are left out; `trunkline doctor` says why";
    let told = format!("not listed: {many}");
    for (args, code, stdout, stderr) in [
        (&["tools"][..], 0, "sh__hello\n1 tool\n", format!("{told}\n")),
        (&["prompts"], 0, "no prompts\n", format!("{told}\n")),
        (&["call", "sh__hello"], 0, "ok\n", String::new()),
        (&["call", "sh__helo"], 1, "", format!("{many}\nerror: no tool `sh__helo`: did you mean `sh__hello`?\n")),
        (&["tools", "two"], 1, "", format!("error: {}\n", WHY.replace("`opt`", "`two`"))),
        (&["call", "two__x"], 1, "", format!("error: {}\n", WHY.replace("`opt`", "`two`"))),
    ] {
        let Output { status, stdout: out, stderr: said } = run(in_home(&home, args)).await;
        assert_eq!((status.code(), text(&out), text(&said)), (Some(code), stdout.to_owned(), stderr), "{args:?}");
    }
    let json = run(in_home(&home, &["tools", "--json"])).await;
    let said: serde_json::Value = serde_json::from_slice(&json.stderr).expect("one line of JSON");
    assert_eq!(said["note"], told);
    let checked = text(&run(in_home(&home, &["check"])).await.stdout);
    assert_eq!(checked.matches("warning[unset-variable]").count(), 3, "{checked}");
    // Where none is left, that is why there is nothing.
    let path = home.file("lame.toml", &lame).display().to_string();
    let none = run(in_home(&home, &["tools", "--config", &path])).await;
    let said = text(&none.stderr);
    let all = format!("error: no tools: 3 of 3 upstreams are left out; `trunkline doctor --config {path}` says why\n");
    assert_eq!((none.status.code(), said), (Some(1), all));
    // A gateway that runs has its own environment: it is asked.
    let gateway = Gateway::serve(&Config::new().section(&lame)).await;
    let asked = run(gateway.command(&["tools"])).await;
    let said = text(&asked.stderr);
    assert!(
        asked.status.code() == Some(1) && said.contains("3 of 3 upstreams are left out; `trunkline ls --config"),
        "{said}"
    );
}
