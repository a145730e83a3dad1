//! Handshake clients that are asked through the gateway: by upstreams of both eras, over both transports on both sides.

use serde_json::{Value, json};
use trunkline_tests::client::converse::Conversation;
use trunkline_tests::client::{Client, Desk, Reach, Reply, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::Order;
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

    async fn content(&self) {
        assert_eq!(self.upstream.complaints().await, Vec::<String>::new());
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
        stage.content().await;
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
        stage.content().await;
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

const COMPLETE: &str = "notifications/elicitation/complete";

/// The parameters of a notice that a page was seen to.
fn completed(frame: &Frame) -> Option<Value> {
    let params = serde_json::from_str(frame.params.as_ref()?.get()).ok()?;
    frame.is_notice(COMPLETE).then_some(params)
}

#[tokio::test]
async fn that_a_page_was_seen_to_is_told_to_the_session_that_opened_it_and_to_nobody_else() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = Upstream::start(way, Script::new("up", Revision::R2025_11_25).asking()).await;
        let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
        let ada = Client::connect_with(&gateway.reach(), Revision::R2025_11_25, Desk::willing("ada")).await;
        let bob = Client::connect_with(&gateway.reach(), Revision::R2025_11_25, Desk::willing("bob")).await;
        ada.tools_until("the upstream is up", |tools| tools.contains(&"up__ask".into())).await;
        let (_hers, _his) = (ada.listen(&[]).await, bob.listen(&[]).await);
        let told = report(&ada.converse(ask("url")).await);
        assert_eq!(told["rounds"][0][0]["answer"], json!({"action": "accept"}), "{told}");
        let page = ada.desk.asked(0).await.params["elicitationId"].clone();
        // One that nobody was asked to open, then hers, twice: it is over with the first.
        for id in [&json!("elicitation-of-nobody"), &page, &page] {
            upstream.order(Order::Notify(COMPLETE.into(), json!({"elicitationId": id}).to_string())).await;
        }
        ada.notices.wait("she is told", completed).await;
        let marks = [&ada, &bob].map(|client| client.notices.all().len());
        upstream.order(Order::AddTool("last".into())).await;
        for (client, mark) in [&ada, &bob].into_iter().zip(marks) {
            client.tools_until("what came after it", |tools| tools.contains(&"up__last".into())).await;
            let last = |frame: &Frame| frame.is_notice("notifications/tools/list_changed").then_some(());
            client.notices.wait_from(mark, "the change is told", last).await;
        }
        let heard = |client: &Client| client.notices.all().iter().filter_map(completed).collect::<Vec<_>>();
        assert_eq!(heard(&ada), [json!({"elicitationId": page})], "{way:?}");
        assert_eq!(heard(&bob), Vec::<Value>::new(), "{way:?}");
        for client in [&ada, &bob] {
            assert_eq!(client.complaints.all(), Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn a_stateless_upstreams_page_is_complete_with_its_call() {
    for over_stdio in [true, false] {
        let stage = Stage::set(Way::Http, Revision::R2026_07_28, over_stdio, Desk::willing("ada")).await;
        let open = stage.client.start(ask("url")).await;
        let page = stage.client.desk.asked(0).await.params["elicitationId"].clone();
        assert!(page.as_str().is_some_and(|page| page.len() >= 16), "it gets a name: {page}");
        let notices = if over_stdio { stage.client.notices.clone() } else { open.notices.clone() };
        open.answer().await;
        let told: Vec<_> = notices.all().iter().filter_map(completed).collect();
        assert_eq!(told, [json!({"elicitationId": page})]);
        stage.content().await;
    }
}
