//! The health board in words.

use super::*;
use crate::health::{CauseCode, StatusBoard};
use crate::telemetry::reloads::Reloads;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn the_sick_are_named_with_their_cause() {
    let board = StatusBoard::default();
    board.add(&"well".into(), "stdio").update(|health| {
        (health.state, health.items, health.revision) = (State::Ready, Some([3, 0, 0, 1]), Some("2025-11-25"));
        health.pid = Some(71);
        health.remarks = [("tools", "its list is cut".to_owned())].into();
        let ends = Some(Instant::now() + Duration::from_secs(100));
        let (principal, issuer) = (Some("token:ada".to_owned()), "https://as.example".to_owned());
        health.login = Some(row::Login { principal, issuer, ends, is_refreshed: true, wanted: Vec::new() });
    });
    let refused = Cause::new(CauseCode::HttpStatus(503), "refused\u{1b}[2J").advise("wait");
    let ill = board.add(&"ill".into(), "http");
    ill.update(|health| {
        (health.state, health.restarts) = (State::Degraded, 2);
        (health.cause, health.restarted_for) = (Some(refused.clone()), Some("lost"));
        health.stderr = vec!["first".into(), "last".into()];
    });
    let again = board.add(&"again".into(), "stdio");
    again.update(|health| (health.state, health.cause) = (State::BackingOff, Some("it exited".into())));
    let many = board.add(&"many".into(), "stdio");
    (0..3).for_each(|_| many.traffic().began());
    many.traffic().queue(1);
    many.instance(&"session 1".into(), 1).update(|health| health.state = State::Ready);
    many.instance(&"laptop".into(), 2).traffic().began();
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    pass(3).await;
    ill.update(|health| health.state = State::BackingOff);
    ill.update(|health| health.retry_at = Some(Instant::now() + Duration::from_millis(4_200)));
    again.update(|health| (health.state, health.cause, health.restarts) = (State::Ready, None, 1));
    pass(4).await;
    assert_eq!(
        text(true, &board.snapshot()),
        "ready\nwell   stdio  ready             7 s  3 tools  2025-11-25  pid 71  its list is cut\n\
         ill    http   backing_off       4 s  2 restarts (the last for lost)  refused\\u{1b}[2J; wait  next try in 1 s  (stderr: last)\n\
         again  stdio  ready             4 s  1 restart  last error 7 s ago: it exited\n\
         many   stdio  starting          7 s  2 instances  3 in flight  1 queued\n  \
           1 session 1  stdio  ready             7 s\n  2 laptop  stdio  starting          7 s  1 in flight\n"
    );
    let json: serde_json::Value = serde_json::from_str(&json(
        false,
        &board.snapshot(),
        (&Budget::new(1 << 20), &Refusals::default()),
        &Reloads::default().now(),
    ))
    .unwrap();
    assert_eq!(json["ready"], false);
    assert_eq!(json["limits"]["memory"], serde_json::json!({ "used_bytes": 0, "limit_bytes": 1 << 20, "dropped": 0 }));
    assert_eq!(json["upstreams"][0]["items"]["tools"], 3);
    assert_eq!(json["upstreams"][0]["remarks"][0], "its list is cut");
    let login = serde_json::json!({ "principal": "token:ada", "issuer": "https://as.example", "expires_in_seconds": 93,
        "refreshed": true });
    assert_eq!(json["upstreams"][0]["login"], login);
    assert_eq!(json["upstreams"][1]["stderr"][0], "first");
    assert_eq!(json["upstreams"][1]["since_seconds"], 4);
    let why = ["cause", "code", "code_number", "advice"].map(|key| json["upstreams"][1][key].to_string());
    assert_eq!(why, ["\"refused\\u001b[2J; wait\"", "\"http_status\"", "503", "\"wait\""]);
    let of_ill = ["downtime_seconds", "retry_in_seconds", "restarted_for"].map(|key| &json["upstreams"][1][key]);
    assert_eq!(of_ill, [&serde_json::json!(4), &serde_json::json!(1), &serde_json::json!("lost")]);
    let error = serde_json::json!({ "cause": "it exited", "code": "unknown", "ago_seconds": 7 });
    assert_eq!((&json["upstreams"][2]["last_error"], &json["upstreams"][2]["uptime_seconds"]), (&error, &4.into()));
    assert_eq!(json["upstreams"][0]["era"], "handshake");
    assert_eq!(json["upstreams"][3]["calls"], serde_json::json!({ "in_flight": 3, "queued": 1 }));
    assert_eq!(json["upstreams"][3]["instances"][1]["name"], "laptop");
}
