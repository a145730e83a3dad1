//! Other people's programs ask and are asked: a reference server's questions, official SDK clients that answer them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_tests::peers::{
    self, Answers, Connect, Mode, Peers, Plan, Report, Sdk, Served, Web, Workplace, none_left, trunkline,
};

/// How long programs may take that are only just starting, on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(90);

const FORM: &str = "trigger-elicitation-request";
const SAMPLING: &str = "trigger-sampling-request";
const ROOTS: &str = "get-roots-list";

/// The reference server twice behind one gateway: as its child, and over Streamable HTTP.
struct Stage {
    place: Workplace,
    config: PathBuf,
    _web: Web,
}

impl Stage {
    async fn set(peers: &Peers) -> Stage {
        let (place, web) = (Workplace::new(), Web::start(peers).await);
        let entry = place.package(peers, "everything", &[]);
        let env = entry["env"].as_object().expect("an environment").iter();
        let env: Vec<String> = env.map(|(name, value)| format!("{name} = {value}")).collect();
        // JSON's texts and lists are TOML's too.
        let text = format!(
            "[defaults]\noffer = [\"elicitation\", \"sampling\", \"roots\"]\n\
             [upstreams.child]\ncommand = {}\nargs = {}\nenv = {{ {} }}\n\
             [upstreams.web]\nurl = \"{}\"\n",
            entry["command"],
            entry["args"],
            env.join(", "),
            web.url,
        );
        let config = place.dir().join("asking.toml");
        fs::write(&config, text).expect("the configuration can be written");
        Stage { place, config, _web: web }
    }

    /// The gateway as an SDK's own child.
    fn stdio(&self) -> Connect {
        Connect::Command {
            command: trunkline(),
            args: ["stdio", "--config"]
                .map(String::from)
                .into_iter()
                .chain([self.config.display().to_string()])
                .collect(),
            env: BTreeMap::from([
                ("HOME".to_owned(), self.place.home().display().to_string()),
                ("TRUNKLINE_CATALOG__CACHE".to_owned(), "false".to_owned()),
            ]),
        }
    }
}

fn plan(connect: Connect, answers: Answers, calls: &[(String, Value)]) -> Plan {
    let steps = calls.iter().map(|(name, arguments)| json!({ "do": "call", "name": name, "arguments": arguments }));
    Plan {
        connect,
        until: calls.iter().map(|(name, _)| name.clone()).collect(),
        patience: PATIENCE,
        answers: Some(answers),
        roots: None,
        token: None,
        steps: steps.collect(),
    }
}

fn calls(tools: &[&str]) -> Vec<(String, Value)> {
    let prompt = json!({ "prompt": "well?", "maxTokens": 16 });
    let arguments = |tool: &str| if tool.ends_with(SAMPLING) { prompt.clone() } else { json!({}) };
    tools.iter().map(|tool| ((*tool).to_owned(), arguments(tool))).collect()
}

/// That each step saw its text, or that it failed where there is none to be seen.
fn judge(sdk: Sdk, report: &Report, wanted: &[Option<&str>]) {
    assert_eq!(report.fatal, None, "{sdk:?} {report}");
    assert_eq!(report.revision.as_deref(), Some(sdk.revision()), "{sdk:?} {report}");
    assert_eq!(report.steps.len(), wanted.len(), "{sdk:?} {report}");
    for (seen, wanted) in report.steps.iter().zip(wanted) {
        match wanted {
            Some(text) => assert!(seen["result"].to_string().contains(text), "{sdk:?} {text}: {seen}\n{report}"),
            None => {
                let has_failed = seen["error"].is_object() || seen["result"]["isError"] == true;
                assert!(has_failed, "{sdk:?} {seen}\n{report}");
            }
        }
    }
}

/// Accepts everything, then declines; `connect` is asked anew for each client.
async fn converse(sdk: Sdk, peers: &Peers, connect: impl Fn() -> Connect) {
    // Over HTTP that server asks for roots on no call's stream, but outside of all calls: it cannot say who is meant.
    let tools = calls(&[
        &format!("child__{FORM}"),
        &format!("web__{FORM}"),
        &format!("child__{SAMPLING}"),
        &format!("web__{SAMPLING}"),
        &format!("child__{ROOTS}"),
    ]);
    let report = sdk.run(peers, &plan(connect(), Answers::Accept, &tools)).await;
    let wanted = ["Name: Ada", "Name: Ada", "Ada says so", "Ada says so", "file:///home/ada"].map(Some);
    judge(sdk, &report, &wanted);
    for (method, times) in [("elicitation/create", 2), ("sampling/createMessage", 2)] {
        let asked = report.asked.iter().filter(|asked| *asked == method).count();
        assert_eq!(asked, times, "{sdk:?} {method} {report}");
    }
    assert!(report.asked.iter().any(|asked| asked == "roots/list"), "{sdk:?} {report}");
    let report = sdk.run(peers, &plan(connect(), Answers::Decline, &tools[..4])).await;
    judge(sdk, &report, &[Some("User declined"), Some("User declined"), None, None]);
}

async fn over_http(sdk: Sdk) {
    let Some(peers) = peers::ready() else { return };
    let stage = Stage::set(peers).await;
    let served = Served::start(&stage.place, &stage.config).await;
    converse(sdk, peers, || Connect::Url { url: served.url.clone() }).await;
    // What a stateless client has left parked holds nothing up.
    served.stop().await;
    none_left(&stage.place.mark()).await;
}

async fn over_stdio(sdk: Sdk) {
    let Some(peers) = peers::ready() else { return };
    let stage = Stage::set(peers).await;
    converse(sdk, peers, || stage.stdio()).await;
    none_left(&stage.place.mark()).await;
}

macro_rules! every_client {
    ($($name:ident: $sdk:expr;)*) => {
        mod http {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                over_http($sdk).await;
            })*
        }
        mod stdio {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                over_stdio($sdk).await;
            })*
        }
    };
}

every_client! {
    typescript_1: Sdk::TypeScript1;
    typescript_2_legacy: Sdk::TypeScript2(Mode::Legacy);
    typescript_2_pinned: Sdk::TypeScript2(Mode::Pinned);
    python_2_legacy: Sdk::Python2(Mode::Legacy);
    python_2_pinned: Sdk::Python2(Mode::Pinned);
}
