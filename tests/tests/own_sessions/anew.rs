//! An upstream that was started again and counts the ids of its sessions anew: an id that it gives is one that a lost session had.

use super::told::lost;
use super::*;
use serde_json::Value;

/// How often a call with this nonce arrived, in whatever session.
fn arrivals(upstream: &Upstream, nonce: &str) -> usize {
    let nonce = format!("\"{nonce}\"");
    let is_it = |event: &&Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains(&nonce));
    upstream.events.all().iter().filter(is_it).count()
}

/// The how manieth session of the upstream this is.
fn number(session: &str) -> u64 {
    session.trim_start_matches("session-").parse().expect("ids are counted")
}

async fn echoed(client: &Client, nonce: &str) -> Answer {
    let answer = client.call("up__echo", &format!("{{\"nonce\":\"{nonce}\"}}")).await;
    assert!(answer.text().contains(nonce), "{answer:?}");
    answer
}

#[tokio::test]
async fn a_session_whose_id_is_given_anew_is_lost_and_its_client_is_told_and_nothing_is_sent_in_it() {
    // Without streams that end, nothing but a call shows that the upstream was started again.
    let (upstream, gateway) = stage(|script| script.http.get_stream = false, "", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let (first, second) = (session_of(&upstream, &one, "a").await, session_of(&upstream, &two, "b").await);
    let third = connected(&gateway, LEGACY).await;
    // What reads lists for the gateway has had sessions, too: the next ones have the ids of these two.
    assert_eq!(number(&second), number(&first) + 1, "nothing else is opened now");
    upstream.order(Order::CountAnew(number(&first))).await;
    assert_eq!(lost(&echoed(&third, "c").await), Value::Null, "it had none");
    assert_eq!(lost(&echoed(&one, "d").await)["reason"], "upstream");
    assert_eq!(lost(&echoed(&two, "e").await)["reason"], "upstream");
    let mut now = Vec::new();
    for nonce in ["c", "d", "e"] {
        assert_eq!(arrivals(&upstream, nonce), 1, "{nonce}: in no session that was lost");
        now.push(arrived(&upstream, nonce).await);
    }
    assert!(now.contains(&first) || now.contains(&second), "ids were given anew: {now:?}");
    let all = now.len();
    now.sort();
    now.dedup();
    assert_eq!(now.len(), all, "each has its own: {now:?}");
    gateway.says(&["gives ids of sessions anew", "up"]).await;
    assert!(visited(&upstream, "DELETE", &first), "what was opened twice is ended");
    for (client, nonce) in [(&third, "f"), (&one, "g"), (&two, "h")] {
        assert_eq!(lost(&echoed(client, nonce).await), Value::Null, "it is said once");
    }
    // Each is ended with its client, and none for another.
    leave(&gateway, &one).await;
    let ended = arrived(&upstream, "g").await;
    until("it is ended", async || visited(&upstream, "DELETE", &ended).then_some(())).await;
    session_of(&upstream, &two, "i").await;
    session_of(&upstream, &third, "j").await;
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn clients_that_share_sessions_by_what_they_declare_are_served_as_well() {
    let (upstream, gateway) = stage(|script| script.http.get_stream = false, "sharing = \"shared\"", "").await;
    let able = async |gateway: &Gateway| {
        let client = Client::connect_with(&gateway.reach(), LEGACY, Desk::willing("Ada")).await;
        ready(&client).await;
        client
    };
    let (plain, asked) = (connected(&gateway, LEGACY).await, able(&gateway).await);
    let before = (session_of(&upstream, &plain, "a").await, session_of(&upstream, &asked, "b").await);
    upstream.order(Order::CountAnew(number(&before.0).min(number(&before.1)))).await;
    for nonce in ["c", "d"] {
        for client in [&asked, &plain] {
            echoed(client, nonce).await;
        }
    }
    let after = (session_of(&upstream, &plain, "e").await, session_of(&upstream, &asked, "f").await);
    assert!(before.0 != before.1 && after.0 != after.1, "{before:?} {after:?}");
}
