//! Resources: whose a URI is, and the public form of contested ones.

use super::*;

fn resources(uris: &[&str], templates: &[&str]) -> Inventory {
    Inventory {
        resources: uris.iter().map(|uri| item("uri", uri)).collect(),
        templates: templates.iter().map(|uri| item("uriTemplate", uri)).collect(),
        ..inventory(&[])
    }
}

fn three() -> (Arc<Scripted>, Arc<Scripted>, Stage) {
    let a = Scripted::new("a", "a");
    let b = Scripted::answering("b", "b", |call| {
        let uri = call.params.text(crate::protocol::value::Key::Uri)?;
        let text = format!(r#"{{"contents":[{{"uri":{}}}]}}"#, crate::protocol::json::quote(&uri));
        Some(Reply::complete(Revision::V2025_11_25, Object::parse(text.into()).unwrap()))
    });
    a.offer(resources(&["m:1", "db://one/x", "https://h/"], &["f:///{p}"]));
    b.offer(resources(&["m:1", "m:2", "db://two/x", "https://h/"], &["f:///{p}"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    (a, b, stage)
}

#[tokio::test(start_paused = true)]
async fn contested_uris_of_a_later_upstream_are_marked_everywhere() {
    let (_a, b, stage) = three();
    let list = told(stage.ask(Method::ResourcesList, "{}")).await;
    let array = crate::protocol::json::get(list.as_bytes(), "resources").unwrap();
    let uri = |place: std::ops::Range<usize>| {
        crate::protocol::json::unquote(crate::protocol::json::get(&array[place], "uri").unwrap()).unwrap()
    };
    let listed: Vec<_> = crate::protocol::json::elements(array).unwrap().into_iter().map(uri).collect();
    assert_eq!(listed, ["m:1", "db://one/x", "https://h/", "b+m:1", "m:2", "db://two/x"]);
    let templates = r#"{"uriTemplate":"f:///{p}","x":1e400},{"uriTemplate":"b+f:///{p}","x":1e400}"#;
    let list = told(stage.ask(Method::TemplatesList, "{}")).await;
    assert_eq!(list, format!("{{\"resourceTemplates\":[{templates}]}}"));
    for (public, own) in
        [("b+m:1", "m:1"), ("m:2", "m:2"), ("b+f:///q", "f:///q"), ("db://two/unlisted", "db://two/unlisted")]
    {
        let read = told(stage.ask(Method::ResourcesRead, &format!("{{\"uri\":\"{public}\"}}"))).await;
        assert_eq!(read, format!(r#"{{"contents":[{{"uri":"{public}"}}]}}"#));
        assert_eq!(b.heard(), [format!("resources/read {{\"uri\":\"{own}\"}}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_for_everything_takes_nothing_that_another_upstream_has_a_better_claim_to() {
    let (greedy, plain, late) = (Scripted::new("a", "a"), Scripted::new("b", "b"), Scripted::new("c", "c"));
    greedy.offer(resources(&[], &["{+any}", "same://{x}/y"]));
    plain.offer(resources(
        &["db://host/1", "file:///a", "odd://h/1", "memo:listed"],
        &["git://{repo}/{+path}", "file:///{+p}"],
    ));
    late.offer(resources(&["odd://h/2"], &["same://{y}/{z}", "same://{x}/{w}"]));
    let stage = Stage::new(Strategy::Prefix, &[&greedy, &plain, &late]);
    settle().await;
    for (uri, owner, why) in [
        ("db://host/1", &plain, "listed"),
        ("memo:listed", &plain, "listed, and of no origin"),
        ("db://host/2", &plain, "of its origin"),
        ("db://elsewhere/2", &greedy, "of nobody else's"),
        ("git://r/a/b", &plain, "the more literal"),
        ("file:///a/b", &plain, "a scheme without an authority goes by its templates"),
        ("odd://h/3", &greedy, "an origin of two is nobody's"),
        ("same://1/y", &greedy, "the more literal, though it stands first anyway"),
        ("same://1/2", &late, "the more literal"),
        ("memo:x", &greedy, "anything"),
    ] {
        told(stage.ask(Method::ResourcesRead, &format!("{{\"uri\":\"{uri}\"}}"))).await;
        assert_eq!(owner.heard(), [format!("resources/read {{\"uri\":\"{uri}\"}}")], "{uri}: {why}");
    }
    let remark = |of: &Arc<Scripted>| of.remark.lock().unwrap().clone().unwrap_or_default();
    assert!(remark(&greedy).contains("`{+any}` with `git://{repo}/{+path}` of upstream `b`"), "{}", remark(&greedy));
    assert!(remark(&greedy).contains(", and ") && remark(&plain).contains("with `{+any}` of upstream `a`"));
    assert!(remark(&late).contains("`same://{x}/{w}` with `same://{x}/y` of upstream `a`"), "{}", remark(&late));
    greedy.offer(resources(&[], &[]));
    settle().await;
    assert_eq!([remark(&greedy), remark(&plain), remark(&late)], ["", "", ""]);
}

#[tokio::test(start_paused = true)]
async fn a_uri_that_is_too_long_is_refused_and_not_echoed() {
    let (a, _b, stage) = three();
    let long = format!("m:{}", "x".repeat(8192));
    let filter = format!(r#"{{"notifications":{{"resourceSubscriptions":["{long}"]}}}}"#);
    // A subscription of a session; a listen call of a stateless client goes on without it.
    let mut subscription = call(Method::Listen, &filter);
    let tenant = Some(Arc::new(crate::call::caller::ClientSession::mute("s")));
    subscription.caller = Arc::new(Caller { tenant, ..(*subscription.caller).clone() });
    let replies = [
        stage.ask(Method::ResourcesRead, &format!(r#"{{"uri":"{long}"}}"#)),
        stage.ask(Method::Complete, &format!(r#"{{"ref":{{"type":"ref/resource","uri":"{long}"}}}}"#)),
        stage.router.handle(subscription),
    ];
    for reply in replies {
        assert_eq!(told(reply).await, "InvalidParams: a URI must not be longer than 8192 bytes");
    }
    assert!(a.heard().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_own_is_not_found() {
    let (a, b, stage) = three();
    for uri in ["m:3", "nobody:x", "https://h/"] {
        let read = told(stage.ask(Method::ResourcesRead, &format!("{{\"uri\":\"{uri}\"}}"))).await;
        match uri {
            "https://h/" => assert_eq!(read, r#"{"own":{"uri":"https://h/"}}"#, "the first upstream has it"),
            _ => assert_eq!(read, format!("ResourceNotFound({uri:?}): Resource not found: {uri}")),
        }
    }
    assert_eq!((a.heard().len(), b.heard().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_upstream_without_a_prefix_gets_unlisted_uris() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", ""));
    a.offer(resources(&["m:1"], &[]));
    b.offer(resources(&[], &[]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    assert_eq!(told(stage.ask(Method::ResourcesRead, r#"{"uri":"m:2"}"#)).await, r#"{"own":{"uri":"m:2"}}"#);
    assert_eq!((a.heard().len(), b.heard().len()), (0, 1));
}
