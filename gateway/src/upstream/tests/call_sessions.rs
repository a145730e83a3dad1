//! Sessions for the sets of what callers can be asked, over loopback.

use super::super::config::Config;
use super::super::*;
use super::host::{Host, Seen, empty, events, json};
use super::http::{is, legacy};
use super::rig::call;
use super::{bounded, known, stop};
use crate::call::Call;
use crate::call::caller::Caller;
use crate::call::refusal::Reason;
use crate::call::reply::{Failure, Outcome};
use crate::health::{Order, StatusBoard};
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const FORM: &str = r#"{"elicitation":{"form":{}}}"#;
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{},"extensions":{"io.modelcontextprotocol/ui":{}}}"#;

/// A call of somebody who can be asked this; its result names the session that it was made in.
fn of(capabilities: &str) -> Call {
    let plain = call(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"t"}"#);
    let caller =
        Caller { capabilities: capabilities.to_owned().into(), can: Default::default(), ..(*plain.caller).clone() };
    Call { caller: Arc::new(caller), ..plain }
}

/// An upstream that numbers its sessions; `extra` answers first.
async fn numbered(extra: impl Fn(&Seen, usize) -> Option<String> + Send + Sync + 'static) -> Host {
    let opened = AtomicUsize::new(0);
    Host::start(move |seen| {
        let number = match seen.method().as_str() {
            "initialize" => opened.fetch_add(1, Ordering::SeqCst) + 1,
            _ => seen.header("mcp-session-id").parse().unwrap_or_default(),
        };
        let answer = extra(&seen, number).unwrap_or_else(|| match (seen.verb.as_str(), seen.method().as_str()) {
            (_, "server/discover") => empty(400),
            (_, "initialize") => {
                let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
                let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, seen.id());
                json(200, &format!("Mcp-Session-Id: {number}\r\n"), &body)
            }
            ("GET", _) => empty(405),
            (_, "tools/list") => seen.result(r#"{"tools":[{"name":"t"}]}"#),
            (_, "tools/call") => seen.result(&format!(r#"{{"session":{number}}}"#)),
            _ => empty(202),
        });
        Box::pin(async move { answer })
    })
    .await
}

async fn up(host: &Host) -> (Upstream, StatusBoard, Tasks) {
    let (upstream, board, tasks) = super::start(host.config());
    bounded(known(&mut upstream.inventory())).await;
    (upstream, board, tasks)
}

/// The session that a call was made in.
async fn made_in(upstream: &Upstream, capabilities: &str) -> String {
    match bounded(upstream.call(of(capabilities)).outcome()).await.1 {
        Outcome::Complete(result) => String::from_utf8(result.find("session").unwrap().to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// What was declared, in the order in which sessions were opened.
fn declared(host: &Host) -> Vec<String> {
    let opened = host.all().into_iter().filter(|seen| seen.method() == "initialize");
    let declared = opened.map(|seen| {
        let params = crate::protocol::json::get(seen.body.as_bytes(), "params").unwrap();
        String::from_utf8(crate::protocol::json::get(params, "capabilities").unwrap().to_vec()).unwrap()
    });
    declared.collect()
}

#[tokio::test]
async fn each_set_of_capabilities_has_a_session_that_declares_it() {
    let host = numbered(|_, _| None).await;
    let (upstream, _board, tasks) = up(&host).await;
    let mut sessions = Vec::new();
    for capabilities in [FORM, "{}", FORM, ALL, r#"{"elicitation":{}}"#, r#"{"roots":{"listChanged":true},"x":{}}"#] {
        sessions.push(made_in(&upstream, capabilities).await);
    }
    assert_eq!(sessions, ["2", "3", "2", "1", "2", "4"]);
    let declared = declared(&host);
    assert!(declared[0].contains("\"url\":{}") && declared[0].contains("\"context\":{}"), "{declared:?}");
    assert_eq!(declared[1..], [FORM, "{}", r#"{"roots":{"listChanged":true}}"#]);
    stop(&upstream, &tasks).await;
    let mut ended: Vec<_> = host.all().into_iter().filter(|seen| seen.verb == "DELETE").collect();
    ended.sort_by_key(|seen| seen.header("mcp-session-id").to_owned());
    assert_eq!(ended.iter().map(|seen| seen.header("mcp-session-id")).collect::<Vec<_>>(), ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn what_a_client_declares_beyond_the_protocol_is_told_in_a_session_of_those_who_declare_the_same() {
    const BEYOND: &str = r#"{"elicitation":{"form":{}},"experimental":{"x":{"a":1}},"extensions":{"a/b":{}}}"#;
    let host = numbered(|_, _| None).await;
    let (upstream, _board, tasks) = up(&host).await;
    let all = ALL.replacen('{', r#"{"experimental":{"x":{}},"#, 1);
    let mut sessions = Vec::new();
    for capabilities in [FORM, BEYOND, BEYOND, ALL, &all] {
        sessions.push(made_in(&upstream, capabilities).await);
    }
    assert_eq!(sessions, ["2", "3", "3", "1", "4"]);
    let declared = declared(&host);
    assert!(!declared[0].contains("experimental") && declared[1] == FORM, "{declared:?}");
    let told = r#"{"experimental":{"x":{"a":1}},"elicitation":{"form":{}},"extensions":{"a/b":{}}}"#;
    assert_eq!(declared[2], told);
    assert!(declared[3].starts_with(r#"{"experimental":{"x":{}},"elicitation":{"#), "{declared:?}");
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn an_upstream_that_refuses_a_second_session_is_called_in_the_first_by_all() {
    let host = numbered(|seen, number| {
        (seen.method() == "initialize" && number > 1).then(|| {
            json(
                400,
                "",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Server already initialized"}}"#,
            )
        })
    })
    .await;
    let (upstream, _board, tasks) = up(&host).await;
    let replies: Vec<_> = ["{}", FORM, "{}", FORM].map(|set| upstream.call(of(set))).into();
    for reply in replies {
        let answer = bounded(reply.outcome()).await.1;
        assert!(matches!(&answer, Outcome::Complete(result) if result.find("session") == Some(b"1")), "{answer:?}");
    }
    let asked = host.count("POST initialize");
    assert!(asked <= 3, "once for the primary, at most once for each set that came before it was known: {asked}");
    assert_eq!((made_in(&upstream, "{}").await.as_str(), host.count("POST initialize")), ("1", asked));
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn the_ninth_set_of_one_client_is_served_by_the_primary_and_anothers_is_not() {
    let host = numbered(|_, _| None).await;
    let (upstream, _board, tasks) = up(&host).await;
    let parts = [
        r#""roots":{}"#,
        r#""sampling":{}"#,
        r#""elicitation":{}"#,
        r#""extensions":{"io.modelcontextprotocol/ui":{}}"#,
    ];
    let mut sessions = Vec::new();
    for bits in 0..9 {
        let chosen: Vec<_> =
            parts.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, part)| *part).collect();
        sessions.push(made_in(&upstream, &format!("{{{}}}", chosen.join(","))).await);
    }
    assert_eq!(sessions, ["2", "3", "4", "5", "6", "7", "8", "9", "1"]);
    let others = of(r#"{"roots":{},"extensions":{"io.modelcontextprotocol/ui":{}}}"#);
    let caller = Caller { principal: crate::call::caller::Principal::named("other"), ..(*others.caller).clone() };
    let answer = bounded(upstream.call(Call { caller: Arc::new(caller), ..others }).outcome()).await.1;
    assert!(matches!(&answer, Outcome::Complete(result) if result.find("session") == Some(b"10")), "{answer:?}");
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_session_without_calls_is_closed_and_opened_again_when_it_is_needed() {
    let host = numbered(|_, _| None).await;
    let (upstream, _board, tasks) = up(&host).await;
    assert_eq!(made_in(&upstream, FORM).await, "2");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5 * 60)).await;
    tokio::time::resume();
    assert_eq!(host.saw("DELETE").await.header("mcp-session-id"), "2");
    assert_eq!(made_in(&upstream, FORM).await, "3");
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_list_that_changed_there_is_read_in_the_primary() {
    const CHANGED: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let host = numbered(|seen, number| (seen.verb == "GET" && number == 2).then(|| events(CHANGED))).await;
    let (upstream, _board, tasks) = up(&host).await;
    let lists = host.count("POST tools/list");
    assert_eq!(made_in(&upstream, FORM).await, "2");
    bounded(async {
        while host.count("POST tools/list") == lists {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let all = host.all();
    let lists = all.iter().filter(|seen| seen.method() == "tools/list");
    assert!(lists.map(|seen| seen.header("mcp-session-id")).all(|session| session == "1"));
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn an_order_ends_the_calls_and_the_sessions_of_all() {
    let hangs = Arc::new(AtomicUsize::new(1));
    let hanging = hangs.clone();
    let opened = Arc::new(AtomicUsize::new(0));
    let host = Host::start(move |seen| {
        let (hanging, opened) = (hanging.clone(), opened.clone());
        Box::pin(async move {
            let session = match seen.method().as_str() {
                "initialize" => format!("{}", opened.fetch_add(1, Ordering::SeqCst) + 1),
                _ => seen.header("mcp-session-id").to_owned(),
            };
            match legacy(&seen, &session) {
                Some(answer) => answer,
                None if hanging.load(Ordering::SeqCst) == 1 => {
                    if session == "1" {
                        // One answer has begun, and could be asked for again.
                        seen.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: e\ndata:\n\n");
                    }
                    std::future::pending().await
                }
                None => seen.result(&format!(r#"{{"session":{session}}}"#)),
            }
        })
    })
    .await;
    let (upstream, board, tasks) = up(&host).await;
    for (order, word) in [(Order::Stop, "stopped on request"), (Order::RestartNow, "restarted on request")] {
        hangs.store(1, Ordering::SeqCst);
        let begun = host.count("POST tools/call");
        let (one, other) = (upstream.call(of(ALL)), upstream.call(of(FORM)));
        let calls = async { tokio::join!(one.outcome(), other.outcome()) };
        let ordering = async {
            while host.count("POST tools/call") < begun + 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            board.order("a", order).unwrap().await.unwrap();
        };
        let (((_, one), (_, other)), ()) = bounded(async { tokio::join!(calls, ordering) }).await;
        for end in [one, other] {
            let Outcome::Error(Failure::Refused(refusal)) = end else { panic!("{end:?}") };
            assert_eq!(refusal.reason, Reason::OutcomeUnknown);
            assert!(refusal.message.contains("`a`") && refusal.message.contains(word), "{}", refusal.message);
        }
        let resumed = host.all().into_iter().find(|seen| !seen.header("last-event-id").is_empty());
        assert!(resumed.is_none(), "what was ended is not asked for again");
        if order == Order::Stop {
            let all = host.all();
            let mut ended: Vec<_> = all.iter().filter(|seen| seen.verb == "DELETE").collect();
            ended.sort_by_key(|seen| seen.header("mcp-session-id").to_owned());
            assert_eq!(ended.iter().map(|seen| seen.header("mcp-session-id")).collect::<Vec<_>>(), ["1", "2"]);
            bounded(board.order("a", Order::Start).unwrap()).await.unwrap();
        }
        hangs.store(0, Ordering::SeqCst);
        // It has not failed: it was told to.
        let sessions = [made_in(&upstream, ALL).await, made_in(&upstream, FORM).await];
        assert_eq!(sessions, if order == Order::Stop { ["3", "4"] } else { ["5", "6"] });
    }
    assert_eq!(upstream.state(), State::Ready);
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn what_rests_has_no_session_left() {
    let host = numbered(|_, _| None).await;
    let config = Config { idle_stop: Some(Duration::from_millis(500)), ..host.config() };
    let (upstream, board, tasks) = super::start(config);
    made_in(&upstream, FORM).await;
    is(&board, State::Idle).await;
    let all = host.all();
    let opened = all.iter().filter(|seen| seen.method() == "initialize").count();
    let ended: HashSet<_> =
        all.iter().filter(|seen| seen.verb == "DELETE").map(|seen| seen.header("mcp-session-id")).collect();
    assert!(opened > 1 && ended.len() == opened, "{:?}", host.story());
    assert_ne!(made_in(&upstream, FORM).await, "2", "its next call opens them anew");
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_session_that_does_not_last_is_given_up() {
    let is_in_session = |seen: &Seen| matches!(seen.method().as_str(), "tools/call" | "ping");
    let host = numbered(move |seen, number| (is_in_session(seen) && number > 1).then(|| empty(404))).await;
    let (upstream, _board, tasks) = up(&host).await;
    // Each call is sent again once; by the third loss in a row the primary serves all.
    let mut last = None;
    for _ in 0..3 {
        last = Some(bounded(upstream.call(of(FORM)).outcome()).await.1);
    }
    assert!(matches!(&last, Some(Outcome::Complete(result)) if result.find("session") == Some(b"1")), "{last:?}");
    assert_eq!(host.count("POST initialize"), 3);
    stop(&upstream, &tasks).await;
}
