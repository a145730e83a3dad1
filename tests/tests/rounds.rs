//! Handshake clients that are asked through the gateway: by upstreams of both eras, over both transports on both sides.

use serde_json::{Value, json};
use trunkline_tests::client::converse::Conversation;
use trunkline_tests::client::{Client, Desk, Reach, Reply, Request, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::script::plan::Kind;
use trunkline_tests::upstream::{Upstream, Way};

const OFFER: &str = "offer = [\"elicitation\", \"sampling\", \"roots\"]";

/// A client before an upstream, with the gateway between them.
struct Stage {
    upstream: Upstream,
    client: Client,
    _serving: Option<Gateway>,
    _prepared: Option<StdioGateway>,
}

impl Stage {
    async fn set(way: Way, asking: Revision, over_stdio: bool, desk: Desk) -> Stage {
        let upstream = Upstream::start(way, Script::new("up", asking).asking()).await;
        let offer = if way == Way::Stdio { OFFER } else { "" };
        let config = Config::new().upstream_with(&upstream, offer);
        let (mut serving, mut prepared) = (None, None);
        let reach: Reach = if over_stdio {
            prepared.insert(StdioGateway::prepare(&config)).reach()
        } else {
            serving.insert(Gateway::serve(&config).await).reach()
        };
        let client = Client::connect_with(&reach, Revision::R2025_11_25, desk).await;
        client.tools_until("the upstream is up", |tools| tools.contains(&"up__ask".into())).await;
        Stage { upstream, client, _serving: serving, _prepared: prepared }
    }

    async fn ask(&self, plan: &str) -> Conversation {
        self.client.converse(ask(plan)).await
    }

    fn content(&self) {
        assert_eq!(self.upstream.complaints(), Vec::<String>::new());
        assert_eq!(self.client.complaints.all(), Vec::<String>::new());
    }
}

fn ask(plan: &str) -> Request {
    tool("up__ask", &format!("{{\"plan\":\"{plan}\",\"who\":\"ada\"}}"))
}

fn report(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.answer.text()).expect("a report is JSON")
}

async fn every_cell<F: Future<Output = ()>>(check: impl Fn(Way, Revision, bool) -> F) {
    for way in [Way::Stdio, Way::Http] {
        for asking in [Revision::R2025_11_25, Revision::R2026_07_28] {
            for over_stdio in [true, false] {
                check(way, asking, over_stdio).await;
            }
        }
    }
}

#[tokio::test]
async fn every_kind_is_asked_side_by_side_and_in_rounds() {
    every_cell(|way, asking, over_stdio| async move {
        let stage = Stage::set(way, asking, over_stdio, Desk::willing("ada")).await;
        let told = report(&stage.ask("form+roots+sampling,url,sampling-tools").await);
        let rounds = told["rounds"].as_array().expect("rounds");
        let kinds: Vec<_> = rounds.iter().flat_map(|round| round.as_array().expect("a round")).collect();
        assert_eq!(kinds.len(), 5, "{way:?} {asking} {told}");
        for one in kinds {
            let answer = &one["answer"];
            assert!(answer.to_string().contains("ada") || *answer == json!({"action": "accept"}), "{told}");
        }
        stage.content();
    })
    .await;
}

#[tokio::test]
async fn what_is_declined_or_refused_is_said_to_whoever_can_hear_it() {
    every_cell(|way, asking, over_stdio| async move {
        let desk = Desk::willing("ada").reply(Kind::Form, Reply::Decline).reply(Kind::Sampling, Reply::Refuse(-1));
        let stage = Stage::set(way, asking, over_stdio, desk).await;
        let told = report(&stage.ask("form").await);
        assert_eq!(told["rounds"][0][0]["answer"], json!({"action": "decline"}), "{told}");
        let refused = stage.ask("sampling").await;
        if asking.is_modern() {
            let told = refused.answer.value();
            assert_eq!(told["isError"], true, "{told}");
            assert!(refused.answer.text().contains("`up`") && refused.answer.text().contains("refused"), "{told}");
        } else {
            assert_eq!(report(&refused)["rounds"][0][0]["error"]["code"], -1);
        }
        stage.content();
    })
    .await;
}

#[tokio::test]
async fn a_client_that_declared_nothing_is_never_asked() {
    every_cell(|way, asking, over_stdio| async move {
        let stage = Stage::set(way, asking, over_stdio, Desk::closed()).await;
        let told = stage.ask("!roots").await;
        assert!(stage.client.desk.asked.all().is_empty(), "{way:?} {asking} {told:?}");
        if asking.is_modern() {
            assert_eq!(told.answer.value()["isError"], true, "{told:?}");
            assert!(told.answer.text().contains("`roots`"), "{told:?}");
        }
        assert_eq!(stage.client.complaints.all(), Vec::<String>::new());
    })
    .await;
}
