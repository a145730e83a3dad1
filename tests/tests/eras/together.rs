//! What holds back an upstream holds back both of its eras: they have one circuit breaker and one budget of starts.

use super::*;
use trunkline_tests::process;
use trunkline_tests::script::{Act, Rule};

/// Two clients of an upstream, one of each era, whose links are both there.
async fn both(gateway: &Gateway) -> [Client; 2] {
    let clients = [listed(gateway, LEGACY).await, listed(gateway, Revision::MODERN).await];
    for client in &clients {
        assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
    }
    clients
}

#[tokio::test]
async fn failures_in_both_eras_open_one_breaker_and_an_answer_in_either_closes_it_for_both() {
    let both_eras = |script: &mut Script| script.revisions.push(Revision::MODERN);
    let fails = Rule::on_tool("touch", vec![Act::status(500, "text/plain", "no")]);
    let upstream = Upstream::start(Way::Http, Script::new("up", LEGACY).with(both_eras).rule(fails)).await;
    let keys = "breaker = { failures = 4, open_for = \"1s\" }";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let clients = both(&gateway).await;
    for (first, second) in [(0, 1), (1, 0)] {
        for client in [first, second, first, second].map(|at| &clients[at]) {
            let failed = client.call("up__touch", "{}").await.message();
            assert!(failed.contains("HTTP 500"), "{failed}");
        }
        let before = count(&upstream, "tools/call").await;
        for client in &clients {
            let refused = client.call("up__echo", "{}").await.message();
            assert!(refused.contains("failed 4 times in a row") && refused.contains("circuit breaker"), "{refused}");
        }
        assert_eq!(count(&upstream, "tools/call").await, before, "nothing was sent in either era");
        // One call tries, of the one era; then those of the other pass, too.
        until("one call tries", async || {
            let answer = clients[first].call("up__echo", "{\"a\":1}").await;
            answer.frame().result.is_some().then_some(())
        })
        .await;
        assert_eq!(clients[second].call("up__echo", "{\"a\":2}").await.text(), "{\"a\":2}");
    }
    assert_eq!((bridged(&gateway, "modern").await, bridged(&gateway, "legacy").await), (0, 0));
}

#[tokio::test]
async fn starts_of_both_children_are_counted_in_one_budget() {
    let upstream = dual(Way::Stdio).await;
    let keys = "eras = \"both\"\nrestart = { backoff_min = \"1ms\", backoff_max = \"2ms\", max_restarts = 4, window = \"10m\" }";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let [handshake, stateless] = both(&gateway).await;
    // Two starts so far, one of each. Each child is lost once and comes back: four.
    let mut pids = vec![upstream.started(0).await.0, upstream.started(1).await.0];
    for (lost, client) in [(0, &handshake), (1, &stateless)] {
        process::signal(pids[lost], "KILL");
        pids.push(upstream.started(lost + 2).await.0);
        until("it takes calls again", async || {
            client.call("up__echo", "{}").await.frame().result.is_some().then_some(())
        })
        .await;
    }
    // One child alone was started twice: by itself it would be started again.
    process::signal(pids[2], "KILL");
    gateway.look_until("/readyz?verbose", "the budget is spent", |page| page.contains("failed")).await;
    assert_eq!(started(&upstream).await, 4, "no start beyond it");
    assert!(process::is_alive(pids[3]), "the other child goes on");
    assert_eq!(stateless.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "and serves its clients");
    assert_eq!(started(&upstream).await, 4);
}

#[tokio::test]
async fn an_order_has_an_era_tried_again_that_was_refused() {
    let upstream = Upstream::http(Script::new("up", Revision::MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = listed(&gateway, LEGACY).await;
    for times in 1..=2 {
        for _ in 0..2 {
            assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
        }
        assert_eq!(count(&upstream, "initialize").await, times, "once, and once more after each order");
        restart(&gateway).await;
    }
}
