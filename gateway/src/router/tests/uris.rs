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
        let uri = call.params.text(crate::protocol::object::Key::Uri)?;
        let text = format!(r#"{{"contents":[{{"uri":{}}}]}}"#, json::quote(&uri));
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
    let array = json::get(list.as_bytes(), "resources").unwrap();
    let uri = |place: std::ops::Range<usize>| json::unquote(json::get(&array[place], "uri").unwrap()).unwrap();
    let listed: Vec<_> = json::elements(array).unwrap().into_iter().map(uri).collect();
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
