//! Where there are no more sessions to be had: by our limit, or the upstream's.

use super::*;

#[tokio::test]
async fn at_the_limit_an_idle_session_makes_room_and_is_opened_anew() {
    let (upstream, gateway) = stage(|_| {}, "max_sessions = 1\ninstance_idle = \"300ms\"", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let first = session_of(&upstream, &one, "a").await;
    let call = async |client: &Client, nonce: &str| {
        let arguments = format!("{{\"nonce\":\"{nonce}\"}}");
        let room =
            async || Some(client.call("up__echo", &arguments).await).filter(|answer| answer.frame().error.is_none());
        until("there is room", room).await;
        arrived(&upstream, nonce).await
    };
    let second = call(&two, "b").await;
    assert_ne!(first, second);
    until("it was ended", async || visited(&upstream, "DELETE", &first).then_some(())).await;
    gateway.says(&["session ended to make room", "roots, log level, tools"]).await;
    let third = call(&one, "c").await;
    assert!(third != first && third != second, "{third} is nobody else's");
}

#[tokio::test]
async fn sessions_that_an_upstream_opens_no_more_of_harm_those_that_are_open_and_are_shown() {
    for status in [503, 403, 404] {
        let refuses = Act::Status { status, kind: "text/plain".into(), body: "no more sessions".into() };
        let mut rule = Rule::on("initialize", vec![refuses]);
        // After the gateway's own, the one that reads the lists of such clients, and the first client's.
        rule.from = 4;
        let (upstream, gateway) = stage(|script| script.rules.push(rule), "", TOKENS).await;
        let ann = bearing(&gateway, "ann", LEGACY).await;
        session_of(&upstream, &ann, "a").await;
        for _ in 0..8 {
            let refused = bearing(&gateway, "bob", LEGACY).await.call("up__echo", "{}").await.message();
            assert!(refused.contains("no session of its own"), "{status}: {refused}");
        }
        session_of(&upstream, &ann, "b").await;
        gateway.says(&["up", "no session could be opened for a client", &status.to_string()]).await;
        let shown = gateway.command(&["status", "up"]).output().await.expect("it runs");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("no session could be opened for a client"), "{shown}");
    }
}

#[tokio::test]
async fn one_clients_sessions_that_are_never_opened_leave_connections_for_others() {
    // The gateway's own is opened, the one that reads the lists of such clients, and the first client's.
    let mut rule = Rule::on("initialize", vec![Act::Hang]);
    rule.from = 4;
    let (upstream, gateway) = stage(|script| script.rules.push(rule), "startup_timeout = \"1h\"", TOKENS).await;
    let ann = bearing(&gateway, "ann", LEGACY).await;
    session_of(&upstream, &ann, "a").await;
    // More than there are connections to one upstream.
    let mut crowd = Vec::new();
    for _ in 0..560 {
        let mut bob = Client::open(&gateway.reach(), LEGACY).await;
        bob.http().always("authorization", "Bearer bob-has-a-long-token");
        bob.greet().await;
        crowd.push(bob);
    }
    let mut open = Vec::new();
    for bob in &crowd {
        open.push(bob.start(tool("up__echo", "{}")).await);
    }
    let opens = |event: &Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains("\"initialize\""));
    let many = async || (upstream.events.all().iter().filter(|event| opens(event)).count() > 200).then_some(());
    until("many sessions are being opened", many).await;
    session_of(&upstream, &ann, "b").await;
}

#[tokio::test]
async fn one_id_for_all_sessions_is_one_session_which_no_client_ends_for_another_and_two_principals_do_not_share() {
    let same = |script: &mut Script| script.http.one_session = Some("the-same".into());
    let (upstream, gateway) = stage(same, "", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    assert_eq!(session_of(&upstream, &one, "a").await, session_of(&upstream, &two, "b").await);
    gateway.says(&["the id of another session", "all clients share one"]).await;
    leave(&gateway, &one).await;
    session_of(&upstream, &two, "c").await;
    assert!(!visited(&upstream, "DELETE", "the-same"), "it goes on for the other one");
    let (upstream, gateway) = stage(same, "", TOKENS).await;
    let refused = bearing(&gateway, "ann", LEGACY).await.call("up__echo", "{}").await.message();
    assert!(refused.contains("no session of its own"), "{refused}");
    gateway.says(&["no session could be opened for a client", "the id of another session"]).await;
    assert!(!visited(&upstream, "DELETE", "the-same"));
    let (upstream, gateway) = stage(same, "sharing = \"shared\"", TOKENS).await;
    session_of(&upstream, &bearing(&gateway, "ann", LEGACY).await, "d").await;
}

#[tokio::test]
async fn a_session_that_could_not_be_opened_makes_room_at_once() {
    let refuses = Act::Status { status: 503, kind: "text/plain".into(), body: "not now".into() };
    // After the gateway's own, and the one that reads the lists of such clients.
    let mut rule = Rule::on("initialize", vec![refuses]);
    (rule.from, rule.times) = (3, 1);
    let (upstream, gateway) =
        stage(|script| script.rules.push(rule), "max_sessions = 1\ninstance_idle = \"1h\"", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let refused = one.call_once("up__echo", "{}").await.message();
    assert!(refused.contains("no session of its own"), "{refused}");
    session_of(&upstream, &two, "a").await;
}

#[tokio::test]
async fn where_none_is_idle_a_call_is_refused_as_busy() {
    let (upstream, gateway) = stage(|_| {}, "max_sessions = 1\ninstance_idle = \"1h\"", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let first = session_of(&upstream, &one, "a").await;
    let refused = two.call("up__echo", "{\"nonce\":\"b\"}").await;
    let said = refused.message();
    assert!(said.contains("busy") && said.contains("max_sessions"), "{said}");
    assert_eq!(refused.error_value()["data"]["retriable"], true);
    assert_eq!(upstream.sessions().len(), 2);
    leave(&gateway, &one).await;
    until("it is ended with its client", async || visited(&upstream, "DELETE", &first).then_some(())).await;
    assert_ne!(session_of(&upstream, &two, "c").await, first);
}

#[tokio::test]
async fn an_upstream_that_bears_one_session_is_shared_and_said_to_be() {
    let (upstream, gateway) = stage(|script| script.http.sessions_max = 1, "", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    assert_eq!(session_of(&upstream, &one, "a").await, session_of(&upstream, &two, "b").await);
    gateway.says(&["refuses a second session"]).await;
    // Of two principals neither is given the session of the other.
    let (upstream, gateway) = stage(|script| script.http.sessions_max = 1, "", TOKENS).await;
    let client = bearing(&gateway, "ann", LEGACY).await;
    let refused: Answer = client.call("up__echo", "{}").await;
    assert!(refused.message().contains("no session of its own"), "{refused:?}");
    assert_eq!(upstream.sessions().len(), 1);
}
