//! Progress and cancellation across eras, where the matrix does not look: raw values, odd tokens, calls that were not sent yet.

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;

/// Values as they are written, and what must not be told again.
const VALUES: [&str; 5] = ["0.10", "0.1", "0.05", "2.5e-1", "1E+2"];
const TOLD: [&str; 3] = ["0.10", "2.5e-1", "1E+2"];

fn telling(way: Way) -> Rule {
    let end = if way == Way::Http { "\n\n" } else { "\n" };
    let notice = |value: &&str| {
        Act::Write(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\
             \"params\":{{\"progressToken\":$ID,\"progress\":{value},\"total\":1.00e2}}}}{end}"
        ))
    };
    Rule::on_tool("echo", VALUES.iter().map(notice).collect())
}

#[tokio::test]
async fn values_are_told_as_they_were_written_and_only_forwards() {
    for way in [Way::Stdio, Way::Http] {
        for upstream in [LEGACY, MODERN] {
            let upstream = Upstream::start(way, Script::new("up", upstream).rule(telling(way))).await;
            let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
            for (revision, token) in [(LEGACY, "0"), (LEGACY, "\"a\""), (MODERN, "0"), (MODERN, "\"a\"")] {
                let client = Client::connect(&gateway.reach(), revision).await;
                client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
                let call = client.start(tool("up__echo", "{\"n\":1}").token(token)).await;
                let notices = call.notices.clone();
                assert_eq!(call.answer().await.text(), "{\"n\":1}");
                let said = |key: &str| {
                    let all = notices.all().into_iter();
                    all.map(|notice| notice.param(key).expect("it is said").get().to_owned()).collect::<Vec<_>>()
                };
                assert_eq!(said("progress"), TOLD, "{way:?} {revision} {token}");
                assert_eq!(said("progressToken"), [token; 3], "{way:?} {revision}");
                assert_eq!(said("total"), ["1.00e2"; 3], "{way:?} {revision}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_its_upstream_is_there_is_never_sent() {
    for way in [Way::Stdio, Way::Http] {
        for revision in [LEGACY, MODERN] {
            let script = Script::new("up", LEGACY).rule(Rule::on("initialize", vec![Act::Gate("start".into())]).once());
            let upstream = Upstream::start(way, script).await;
            let stdio = StdioGateway::prepare(&Config::new().upstream(&upstream));
            let client = Client::connect(&stdio.reach(), revision).await;
            let goes = client.start(tool("up__echo", "{\"nonce\":\"goes\"}")).await;
            upstream.waiting_at("start").await;
            goes.cancel().await;
            // Frames of a host are taken in their order: with this answer the cancel was.
            client.request(trunkline_tests::client::Request::new("tools/call", "{}")).await;
            upstream.order(Order::Open("start".into())).await;
            client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
            client.call("up__echo", "{\"nonce\":\"stays\"}").await.text();
            upstream.ran("stays").await;
            assert_eq!(upstream.executed().await, ["stays"], "{way:?} {revision}");
        }
    }
}

#[tokio::test]
async fn clients_with_the_same_token_and_id_hear_each_their_own() {
    for way in [Way::Stdio, Way::Http] {
        for asked in [LEGACY, MODERN] {
            let upstream = Upstream::start(way, Script::new("up", asked)).await;
            let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
            let mut clients = Vec::new();
            for revision in [LEGACY, LEGACY, MODERN, MODERN] {
                let client = Client::connect(&gateway.reach(), revision).await;
                client.tools_until("the upstream is there", |tools| tools.contains(&"up__progress".into())).await;
                clients.push(client);
            }
            // Each has a number of steps of its own, by which its progress is known.
            let mut calls = Vec::new();
            for (number, client) in clients.iter().enumerate() {
                let arguments = format!("{{\"steps\":{},\"gate\":\"step\"}}", number + 2);
                let mark = upstream.events.mark();
                calls.push(client.start(tool("up__progress", &arguments).id("\"1\"").token("\"same\"")).await);
                upstream.waiting_at_from(mark, "step").await;
            }
            upstream.order(Order::Open("step".into())).await;
            for (number, call) in calls.into_iter().enumerate() {
                let (notices, steps) = (call.notices.clone(), number + 2);
                assert_eq!(call.answer().await.text(), "progressed");
                let said: Vec<String> = notices.all().iter().map(told).collect();
                let wanted: Vec<String> = (1..=steps).map(|step| format!("\"same\" {step}/{steps}")).collect();
                assert_eq!(said, wanted, "{way:?} {asked}, client {number}");
            }
        }
    }
}

/// A notice of progress in short.
fn told(notice: &trunkline_tests::frame::Frame) -> String {
    let raw = |key: &str| notice.param(key).map_or_else(String::new, |raw| raw.get().to_owned());
    format!("{} {}/{}", raw("progressToken"), raw("progress"), raw("total"))
}
