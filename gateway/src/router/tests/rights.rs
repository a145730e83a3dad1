//! What a caller sees by its roles: all ways to a thing give the same view, and what is not in it is not there.

use super::*;
use crate::call::ListenFilter;
use crate::router::names::MemberId;
use futures_util::FutureExt;

fn role(upstreams: &[&str]) -> Role {
    let upstreams = upstreams.iter().map(|one| Glob::new(one)).collect();
    Role { name: "r".into(), upstreams, tools: None, read_only: false, resources: None, prompts: None }
}

fn asked(grants: &Grants, method: Method, params: &str) -> Call {
    let asked = call(method, params);
    Call { caller: Arc::new(Caller { grants: grants.clone(), ..(*asked.caller).clone() }), ..asked }
}

fn full(tools: &[&str], scheme: &str) -> Inventory {
    let items = |key: &str, all: &[String]| all.iter().map(|one| item(key, one)).collect::<Vec<_>>().into();
    Inventory {
        resources: items("uri", &[format!("{scheme}:pub/1"), format!("{scheme}:secret/1")]),
        templates: items("uriTemplate", &[format!("{scheme}:pub/{{x}}"), format!("{scheme}:{{+x}}")]),
        prompts: items("name", &["plan".to_owned()]),
        instructions: Some(Bytes::from(json::quote(&format!("about {scheme}")))),
        supports: Supports { tools: true, resources: true, prompts: true, ..Supports::default() },
        ..inventory(tools)
    }
}

#[tokio::test(start_paused = true)]
async fn lists_calls_reads_and_completions_go_through_one_view_and_what_is_beyond_it_is_not_there() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(full(&["echo", "drop"], "m"));
    b.offer(full(&["echo"], "n"));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let grants = granted(Role {
        tools: Some(vec![Glob::new("a__echo")]),
        resources: Some(vec!["m:pub/".into()]),
        prompts: Some(Vec::new()),
        ..role(&["a"])
    });
    let ask = |method: Method, params: &str| told(stage.router.handle(asked(&grants, method, params)));
    let list = async |method: Method| ask(method, "{}").await;
    assert_eq!(list(Method::ToolsList).await, r#"{"tools":[{"name":"a__echo","x":1e400}]}"#);
    assert_eq!(list(Method::ResourcesList).await, r#"{"resources":[{"uri":"m:pub/1","x":1e400}]}"#);
    assert_eq!(list(Method::TemplatesList).await, r#"{"resourceTemplates":[{"uriTemplate":"m:pub/{x}","x":1e400}]}"#);
    assert_eq!(list(Method::PromptsList).await, r#"{"prompts":[]}"#);
    let discovered = list(Method::Discover).await;
    assert!(discovered.contains("about m") && !discovered.contains("about n"), "{discovered}");

    // Each beside one of the same kind that is nowhere.
    for (method, refused, unknown) in [
        (Method::ToolsCall, r#"{"name":"a__drop"}"#, r#"{"name":"a__zzzz"}"#),
        (Method::ToolsCall, r#"{"name":"b__echo"}"#, r#"{"name":"c__echo"}"#),
        (Method::PromptsGet, r#"{"name":"a__plan"}"#, r#"{"name":"a__xxxx"}"#),
        (Method::ResourcesRead, r#"{"uri":"m:secret/1"}"#, r#"{"uri":"o:secret/1"}"#),
        (Method::ResourcesRead, r#"{"uri":"m:pub/../secret/1"}"#, r#"{"uri":"o:pub/../secret/1"}"#),
        (Method::ResourcesRead, r#"{"uri":"n:pub/1"}"#, r#"{"uri":"o:pub/1"}"#),
        (
            Method::Complete,
            r#"{"ref":{"type":"ref/prompt","name":"a__plan"}}"#,
            r#"{"ref":{"type":"ref/prompt","name":"a__xxxx"}}"#,
        ),
        (
            Method::Complete,
            r#"{"ref":{"type":"ref/resource","uri":"m:{+x}"}}"#,
            r#"{"ref":{"type":"ref/resource","uri":"o:{+x}"}}"#,
        ),
    ] {
        let (refused_as, unknown_as) = (ask(method.clone(), refused).await, ask(method.clone(), unknown).await);
        let name = |params: &str| params.split('"').nth_back(1).unwrap().to_owned();
        assert_eq!(refused_as.replace(&name(refused), "X"), unknown_as.replace(&name(unknown), "X"), "{method:?}");
        assert!(unknown_as.contains("Unknown") || unknown_as.contains("not found"), "{unknown_as}");
    }
    assert_eq!((a.heard(), b.heard()), (vec![], vec![]), "nobody was asked");

    assert!(ask(Method::ToolsCall, r#"{"name":"a__echo"}"#).await.contains(r#""name":"echo""#));
    assert!(ask(Method::ResourcesRead, r#"{"uri":"m:pub/2"}"#).await.contains("m:pub/2"));
    assert!(ask(Method::Complete, r#"{"ref":{"type":"ref/resource","uri":"m:pub/{x}"}}"#).await.contains("m:pub/{x}"));
}

#[tokio::test(start_paused = true)]
async fn what_claims_to_change_nothing_is_what_a_reader_sees_and_what_no_list_names_is_nothing_for_it() {
    let a = Scripted::new("a", "");
    let tool = |name: &str, hint: &str| {
        let definition = format!("{{\"name\":\"{name}\",\"annotations\":{{\"readOnlyHint\":{hint}}}}}");
        Item::new(name.into(), Object::parse(definition.into()).unwrap())
    };
    let tools = vec![tool("look", "true"), tool("touch", "false"), tool("odd", "\"true\""), item("name", "bare")];
    a.offer(Inventory { tools: tools.into(), ..inventory(&[]) });
    let stage = Stage::new(Strategy::Flat, &[&a]);
    let grants = granted(Role { read_only: true, ..role(&["*"]) });
    assert_eq!(names(stage.router.handle(asked(&grants, Method::ToolsList, "{}"))).await, ["look"]);
    let ask = |method: Method, params: &str| told(stage.router.handle(asked(&grants, method, params)));
    for name in ["touch", "odd", "bare", "none"] {
        let said = ask(Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}")).await;
        assert!(said.starts_with(&format!("InvalidParams: Unknown tool: {name}")), "{said}");
    }
    let method = || Method::Other("own/method".into());
    assert_eq!(ask(method(), "{}").await, "UnknownMethod: Method not found: own/method");
    assert_eq!(a.heard(), [""; 0]);
    assert!(ask(Method::ToolsCall, r#"{"name":"look"}"#).await.contains("look"));
    let whole = granted(role(&["a"]));
    assert!(told(stage.router.handle(asked(&whole, method(), "{}"))).await.contains("own"));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_was_never_seen_is_awaited_and_named_for_those_alone_who_may_see_it() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let grants = granted(role(&["a"]));
    let began = tokio::time::Instant::now();
    assert_eq!(names(stage.router.handle(asked(&grants, Method::ToolsList, "{}"))).await, ["a__x"]);
    let said = told(stage.router.handle(asked(&grants, Method::ToolsCall, r#"{"name":"b__x"}"#))).await;
    assert_eq!(said, "InvalidParams: Unknown tool: b__x");
    let said = told(stage.router.handle(asked(&grants, Method::ResourcesRead, r#"{"uri":"m:1"}"#))).await;
    assert_eq!(said, "ResourceNotFound(\"m:1\"): Resource not found: m:1");
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing was waited for");
}

#[tokio::test(start_paused = true)]
async fn other_rights_are_told_to_those_alone_whose_view_they_change() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&["x"]));
    b.offer(full(&["y"], "n"));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    settle().await;
    let [one, other] = [granted(role(&["a"])), granted(role(&["a"]))];
    let listen = |grants: &Grants| {
        let params = ListenFilter::lists().to_params();
        stage.router.handle(asked(grants, Method::Listen, std::str::from_utf8(params.raw()).unwrap()))
    };
    let (mut first, mut second) = (listen(&one), listen(&other));
    let heard = async |reply: &mut Reply| {
        let mut heard = Vec::new();
        settle().await;
        while let Some(step) = reply.next().now_or_never() {
            heard.push(format!("{step:?}"));
        }
        heard
    };
    assert_eq!((heard(&mut first).await.len(), heard(&mut second).await.len()), (1, 1), "the acknowledgements");
    let tools_of = |grants: &Grants| names(stage.router.handle(asked(grants, Method::ToolsList, "{}")));
    assert_eq!(tools_of(&one).await, ["a__x"]);
    let before = one.set(Some(Arc::new(Rights::of([Arc::new(role(&["b"]))])))).expect("they differ");
    stage.router.regranted(&one, before.as_ref());
    assert_eq!(tools_of(&one).await, ["b__y"], "at once");
    let told = heard(&mut first).await.join(" ");
    assert!(["Tools", "Prompts", "Resources"].iter().all(|kind| told.contains(kind)), "{told}");
    assert_eq!(heard(&mut second).await, [""; 0]);
    // A list that changes only for others is no news.
    a.offer(inventory(&["x", "z"]));
    settle().await;
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(heard(&mut first).await, [""; 0]);
    assert_eq!(heard(&mut second).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_an_upstream_that_may_be_seen_no_more_is_unknown() {
    let a = Scripted::new("a", "a");
    a.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let catalog = stage.router.current.keep();
    let of = |grants: &Grants| {
        let caller = Caller { revision: Revision::V2025_11_25, ..(*asked(grants, Method::Ping, "{}").caller).clone() };
        let name = catalog.rules.wrap.close("a", &caller.principal, "t");
        crate::router::tasks::routes::find(&catalog, &caller, &name).map(|(_, own): (MemberId, String)| own)
    };
    assert_eq!(of(&Grants::all()), Some("t".to_owned()));
    assert_eq!(of(&granted(role(&["b"]))), None);
}

#[tokio::test(start_paused = true)]
async fn what_an_upstream_has_beyond_the_protocol_is_neither_told_of_nor_contested_for_those_who_may_not_see_it() {
    let [a, b] = ["a", "b"].map(|name| Scripted::new(name, name));
    let beyond = |tasks: bool| Inventory {
        capabilities: Object::parse(r#"{"extensions":{"x/y":{}},"experimental":{"z":{}}}"#.into()).unwrap(),
        supports: Supports { tools: true, tasks, ..Supports::default() },
        revision: Revision::V2025_11_25,
        ..inventory(&["t"])
    };
    a.offer(beyond(false));
    b.offer(beyond(true));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let grants = granted(role(&["a"]));
    let ask = |grants: &Grants, method: Method| told(stage.router.handle(asked(grants, method, "{}")));
    let (theirs, all) = (ask(&grants, Method::Discover).await, ask(&Grants::all(), Method::Discover).await);
    assert!(theirs.contains("x/y") && theirs.contains("\"z\""), "{theirs}");
    assert!(!all.contains("x/y") && !all.contains("\"z\""), "two have it: {all}");
    for method in ["x/y", "experimental/z"] {
        let method = || Method::Other(method.into());
        assert!(
            ask(&grants, method()).await.contains("own") && ask(&Grants::all(), method()).await.contains("not found")
        );
    }
    assert_eq!((a.heard().len(), b.heard().len()), (2, 0));
    // Tasks can be listed with the other one alone.
    let lists = |grants: &Grants| {
        let asked = asked(grants, Method::TasksList, "{}");
        let caller = Caller { revision: Revision::V2025_11_25, ..(*asked.caller).clone() };
        told(stage.router.handle(Call { caller: Arc::new(caller), ..asked }))
    };
    assert_eq!(lists(&grants).await, "UnknownMethod: Method not found: tasks/list");
    assert_eq!(lists(&Grants::all()).await, "{\"tasks\":[]}");
}
