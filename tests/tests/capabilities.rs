//! Lists that an upstream makes by what a client declares: each client sees those that the upstream gives to such as it is.

use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Client, Desk};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const CHANGED: &str = "notifications/tools/list_changed";
const ASKING: &str = "{\"elicitation\":{}}";
const ROOTED: &str = "{\"roots\":{}}";

/// An upstream with one tool for those who can be asked, and another one for those who cannot, and a gateway before it.
async fn stage(revisions: &[Revision], keys: &str) -> (Upstream, Gateway) {
    let script = Script::new("up", revisions[0]).with(|script| {
        script.revisions = revisions.to_vec();
        script.tools = vec!["echo".into()];
        script.tools_for =
            vec![("elicitation".into(), true, "asks".into()), ("elicitation".into(), false, "asks_not".into())];
    });
    let upstream = Upstream::http(script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    (upstream, gateway)
}

async fn declaring(gateway: &Gateway, revision: Revision, capabilities: &str) -> Client {
    Client::connect_with(&gateway.reach(), revision, Desk::closed().declaring(capabilities)).await
}

/// How many handshakes there were, and how many sessions were ended.
fn opened_and_ended(upstream: &Upstream) -> (usize, usize) {
    let count =
        |fits: fn(&What) -> bool| upstream.events.all().iter().filter(|event: &&Event| fits(&event.what)).count();
    let opened = count(|what| matches!(what, What::Frame { raw, .. } if raw.contains("\"initialize\"")));
    (opened, count(|what| matches!(what, What::Visit { method, .. } if method == "DELETE")))
}

async fn each_sees_its_own(gateway: &Gateway, revision: Revision) {
    for _ in 0..2 {
        let (asking, rooted) = (declaring(gateway, revision, ASKING).await, declaring(gateway, revision, ROOTED).await);
        assert_eq!(asking.tools().await, ["up__echo", "up__asks"], "{revision}: its first list");
        assert_eq!(rooted.tools().await, ["up__echo", "up__asks_not"], "{revision}: its first list");
        // What it is listed can be called, though others are not.
        let answer = rooted.call("up__asks_not", "{\"nonce\":\"n\"}").await;
        assert!(answer.error_value()["message"].as_str().is_some_and(|why| why.contains("asks_not")), "{answer:?}");
        assert!(answer.message().contains("Unknown tool"), "the upstream itself answers: {}", answer.message());
        let answer = rooted.call("up__asks", "{}").await;
        assert!(answer.message().contains("up__asks"), "the gateway does: {}", answer.message());
    }
}

#[tokio::test]
async fn a_client_sees_the_lists_that_its_capabilities_make_in_the_era_and_sessions_of_a_handshake_upstream() {
    let (_upstream, gateway) = stage(&[LEGACY], "").await;
    each_sees_its_own(&gateway, LEGACY).await;
    each_sees_its_own(&gateway, MODERN).await;
}

#[tokio::test]
async fn a_client_sees_the_lists_that_its_capabilities_make_where_each_request_declares_them() {
    let (_upstream, gateway) = stage(&[MODERN], "").await;
    each_sees_its_own(&gateway, LEGACY).await;
    each_sees_its_own(&gateway, MODERN).await;
}

#[tokio::test]
async fn a_client_sees_the_lists_that_its_capabilities_make_where_the_upstream_speaks_both_eras() {
    let (_upstream, gateway) = stage(&[LEGACY, MODERN], "").await;
    each_sees_its_own(&gateway, LEGACY).await;
    each_sees_its_own(&gateway, MODERN).await;
}

/// What `status` remarks of the upstream.
async fn remarks(gateway: &Gateway) -> Vec<String> {
    let sheet = within("it answers", gateway.command(&["status", "up"]).output()).await.expect("it runs");
    let sheet = String::from_utf8_lossy(&sheet.stdout).into_owned();
    sheet.lines().filter_map(|line| line.strip_prefix("remark      ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_tools_that_some_are_not_offered_since_they_cannot_be_asked_are_named_where_both_lists_are_known() {
    let lacks = "not offered to clients that take no elicitation and no sampling: `asks`";
    let only = "offered only to clients that take elicitation: `asks`";
    for (of, revision, declares, says) in [(LEGACY, LEGACY, ROOTED, lacks), (MODERN, MODERN, ASKING, only)] {
        let (upstream, gateway) = stage(&[of], "").await;
        gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
        assert_eq!(remarks(&gateway).await, [""; 0], "nobody has looked yet");
        // Whoever is offered the same as all.
        let same = declaring(&gateway, revision, if declares == ROOTED { ASKING } else { ROOTED }).await;
        same.tools().await;
        assert_eq!(remarks(&gateway).await, [""; 0], "{revision}");
        let client = declaring(&gateway, revision, declares).await;
        client.tools().await;
        assert_eq!(remarks(&gateway).await, [says], "{revision}");
        let listed = within("it answers", gateway.command(&["ls"]).output()).await.expect("it runs");
        assert!(String::from_utf8_lossy(&listed.stdout).contains(says), "{revision}");
        // It is kept up to date.
        upstream.order(Order::AddToolFor("elicitation".into(), true, "pays".into())).await;
        until("the other one is named", async || {
            client.tools().await;
            (remarks(&gateway).await == [format!("{says}, `pays`")]).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn all_see_the_same_lists_where_they_share_one_session() {
    let (_upstream, gateway) = stage(&[LEGACY], "sharing = \"shared\"").await;
    for capabilities in [ASKING, ROOTED] {
        let client = declaring(&gateway, LEGACY, capabilities).await;
        assert_eq!(client.tools().await, ["up__echo", "up__asks"]);
    }
}

#[tokio::test]
async fn a_change_for_some_is_told_to_them_alone() {
    let (upstream, gateway) = stage(&[LEGACY], "").await;
    // Whoever is there before the upstream is told of its lists, too.
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    for revision in [LEGACY, MODERN] {
        let (asking, rooted) =
            (declaring(&gateway, revision, ASKING).await, declaring(&gateway, revision, ROOTED).await);
        let (of_asking, of_rooted) = (asking.listen(&[]).await, rooted.listen(&[]).await);
        let has = |tool: &str| format!("up__{tool}_{revision}");
        asking.tools_until("its own list", |tools| tools.contains(&"up__asks".into())).await;
        rooted.tools_until("its own list", |tools| tools.contains(&"up__asks_not".into())).await;
        // It is told once that its own list is another one than it could have seen before.
        of_rooted.hears(0, CHANGED).await;
        let (heard, unheard) = (of_asking.heard.all().len(), of_rooted.heard.all().len());
        let add = async |must: bool, tool: &str| {
            upstream.order(Order::AddToolFor("elicitation".into(), must, format!("{tool}_{revision}"))).await;
        };
        add(true, "more").await;
        of_asking.hears(heard, CHANGED).await;
        assert!(asking.tools().await.contains(&has("more")));
        assert!(!rooted.tools().await.contains(&has("more")));
        // It comes after what the other one was told of.
        add(false, "less").await;
        of_rooted.hears(unheard, CHANGED).await;
        rooted.tools_until("its own list has changed", |tools| tools.contains(&has("less"))).await;
        let told = of_rooted.heard.all()[unheard..].iter().filter(|frame| frame.is_notice(CHANGED)).count();
        assert_eq!(told, 1, "{revision}: of what changed for it");
        assert!(!asking.tools().await.contains(&has("less")));
    }
}

#[tokio::test]
async fn the_session_that_reads_such_lists_ends_where_they_are_everyones_and_is_opened_for_a_change() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = declaring(&gateway, LEGACY, ASKING).await;
    assert!(client.tools().await.contains(&"up__echo".into()));
    until("it ends", async || (opened_and_ended(&upstream) == (2, 1)).then_some(())).await;
    for _ in 0..3 {
        assert!(client.tools().await.contains(&"up__echo".into()));
    }
    assert_eq!(opened_and_ended(&upstream), (2, 1), "nothing has changed");
    upstream.order(Order::AddToolFor("elicitation".into(), true, "for_all_that_ask".into())).await;
    upstream.order(Order::AddToolFor("elicitation".into(), false, "for_others".into())).await;
    let other = declaring(&gateway, LEGACY, ROOTED).await;
    client.tools_until("what is new", |tools| tools.contains(&"up__for_all_that_ask".into())).await;
    let tools = other.tools_until("what is new", |tools| tools.contains(&"up__for_others".into())).await;
    assert!(!tools.contains(&"up__for_all_that_ask".into()), "{tools:?}");
}

#[tokio::test]
async fn such_lists_come_back_when_the_upstream_has_forgotten_its_sessions_and_go_with_the_gateway() {
    let (upstream, gateway) = stage(&[LEGACY], "").await;
    let rooted = declaring(&gateway, LEGACY, ROOTED).await;
    assert_eq!(rooted.tools().await, ["up__echo", "up__asks_not"]);
    upstream.order(Order::ForgetSessions).await;
    upstream.order(Order::AddToolFor("elicitation".into(), false, "later".into())).await;
    // The loss shows when somebody calls.
    until("it is read in a new session", async || {
        _ = rooted.call("up__echo", "{}").await;
        rooted.tools().await.contains(&"up__later".into()).then_some(())
    })
    .await;
    let headers: Vec<_> = rooted.http().session();
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(exchange(&gateway.url, "DELETE", &headers, "").await.status < 300);
    gateway.stop().await;
    assert_eq!(upstream.sessions(), Vec::<String>::new(), "no session is left behind");
}
