//! Calls by name: whose they are, and what nobody owns.

use super::*;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_call_reaches_its_owner_in_the_owners_words() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&["x"]));
    b.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let reply = stage.ask(Method::ToolsCall, r#"{"arguments":{"n":-0}, "name": "b__x"}"#);
    assert_eq!(reply.owner(), Some(&b.name));
    assert_eq!(told(reply).await, r#"{"own":{"arguments":{"n":-0}, "name": "x"}}"#);
    assert_eq!(a.heard(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn unknown_and_forbidden_names_answer_alike() {
    let a = Scripted::new("a", "a");
    a.offer(inventory(&["echo", "secret"]));
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let caller = Caller { grants: tools_alone(&["a__echo"]), ..(*call(Method::Ping, "{}").caller).clone() };
    let ask = |name: &str| {
        let asked = call(Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}"));
        told(stage.router.handle(Call { caller: Arc::new(caller.clone()), ..asked }))
    };
    assert_eq!(ask("a__secret").await, "InvalidParams: Unknown tool: a__secret");
    assert_eq!(ask("a__sacred").await, "InvalidParams: Unknown tool: a__sacred");
    assert_eq!(ask("echo").await, "InvalidParams: Unknown tool: echo (did you mean a__echo?)");
    assert_eq!(ask("a__ehco").await, "InvalidParams: Unknown tool: a__ehco (did you mean a__echo?)");
    assert_eq!(a.heard(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_an_upstream_that_was_never_seen_waits_for_it() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let began = Instant::now();
    // Nobody else waits behind it, and names that cannot be its own do not wait at all.
    let waiting = stage.ask(Method::ToolsCall, r#"{"name":"b__x"}"#);
    assert_eq!(told(stage.ask(Method::ToolsCall, r#"{"name":"a__x"}"#)).await, r#"{"own":{"name":"x"}}"#);
    assert!(told(stage.ask(Method::ToolsCall, r#"{"name":"a__y"}"#)).await.starts_with("InvalidParams"));
    b.offer(inventory(&["x"]));
    assert_eq!(told(waiting).await, r#"{"own":{"name":"x"}}"#);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_name_ends() {
    let hung = Scripted::new("hung", "hung");
    let stage = Stage::new(Strategy::Prefix, &[&hung]);
    let began = Instant::now();
    let why = told(stage.ask(Method::ToolsCall, r#"{"name":"hung__x"}"#)).await;
    let begins = "Unavailable: `tools/call` of `hung__x` was not sent: upstream `hung`, which may have it,";
    assert_eq!(why, format!("{begins} is still starting; try again"));
    assert_eq!(began.elapsed().as_secs(), 5);
    *hung.cause.lock().unwrap() = Some("no answer yet (npx may still be downloading)".into());
    let why = told(stage.ask(Method::ToolsCall, r#"{"name":"hung__x"}"#)).await;
    assert_eq!(why, format!("{begins} is still starting (no answer yet (npx may still be downloading)); try again"));
    *hung.cause.lock().unwrap() = None;
    let began = Instant::now();
    *hung.state.lock().unwrap() = State::Failed;
    let why = told(stage.ask(Method::ToolsCall, r#"{"name":"hung__x"}"#)).await;
    assert_eq!(why, format!("{begins} is not available: its state is failed"));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_only_a_broken_upstream_that_was_never_seen_can_own_is_refused_at_once_as_unavailable() {
    let (well, broken, bare) = (Scripted::new("well", "well"), Scripted::new("broken", "b"), Scripted::new("bare", ""));
    well.offer(inventory(&["x"]));
    bare.offer(inventory(&[]));
    let stage = Stage::new(Strategy::Prefix, &[&well, &broken, &bare]);
    broken.stands(State::BackingOff);
    *broken.retry.lock().unwrap() = Some(Duration::from_millis(2_300));
    let began = Instant::now();
    let told = async |method: Method, params: &str| refusal(stage.ask(method, params)).await;
    for (method, params, name) in [
        (Method::ToolsCall, r#"{"name":"b__x"}"#, "b__x"),
        (Method::PromptsGet, r#"{"name":"b__x"}"#, "b__x"),
        (Method::Complete, r#"{"ref":{"type":"ref/prompt","name":"b__x"}}"#, "b__x"),
    ] {
        let what = method.as_str().to_owned();
        let refused = told(method, params).await;
        assert_eq!(
            (refused.reason.clone(), refused.is_retriable(), refused.upstream.as_deref()),
            (Reason::Unavailable, true, Some("broken"))
        );
        assert_eq!(
            refused.message,
            format!(
                "`{what}` of `{name}` was not sent: upstream `broken`, which may have it, is not available: its state is backing_off; next try in 3 s"
            )
        );
    }
    // What cannot be its own is as unknown as ever.
    assert_eq!(told(Method::ToolsCall, r#"{"name":"well__y"}"#).await.reason, Reason::InvalidParams);
    // Nobody knows whose of two a name is.
    bare.offers.send_replace(None);
    bare.stands(State::Failed);
    settle().await;
    let stage = Stage::new(Strategy::Flat, &[&well, &broken, &bare]);
    let refused = refusal(stage.ask(Method::ToolsCall, r#"{"name":"y"}"#)).await;
    assert_eq!((refused.reason.clone(), refused.is_retriable(), refused.upstream), (Reason::Unavailable, true, None));
    assert!(
        refused.message.contains("`broken` (backing_off), `bare` (failed); next try in 3 s"),
        "{}",
        refused.message
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_uri_that_a_broken_upstream_may_have_is_not_said_to_be_nowhere() {
    let (well, broken) = (Scripted::new("well", "well"), Scripted::new("broken", "b"));
    well.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&well, &broken]);
    let began = Instant::now();
    let ask = async || refusal(stage.ask(Method::ResourcesRead, r#"{"uri":"m:1"}"#)).await;
    broken.stands(State::Failed);
    let refused = ask().await;
    assert_eq!((refused.reason, refused.upstream.as_deref()), (Reason::Unavailable, Some("broken")));
    broken.stands(State::Stopped);
    assert_eq!(ask().await.reason, Reason::ResourceNotFound("m:1".into()), "it is not to run");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_a_list_which_could_not_be_read_may_have_is_refused_with_that() {
    let partial = Scripted::new("partial", "partial");
    partial.offer(inventory(&[]));
    let stage = Stage::new(Strategy::Prefix, &[&partial]);
    let ask = async || told(stage.ask(Method::ToolsCall, r#"{"name":"partial__x"}"#)).await;
    assert_eq!(ask().await, "InvalidParams: Unknown tool: partial__x");
    partial.stands(State::Degraded);
    partial.is_partial.store(true, Ordering::Relaxed);
    let why = "InvalidParams: Unknown tool: partial__x (upstream partial may have it, but is degraded: `tools/list` could not be read)";
    assert_eq!(ask().await, why);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_an_upstream_that_has_failed_is_refused_with_that_and_no_other_upstream_is_suggested() {
    let (well, sick) = (Scripted::new("well", "well"), Scripted::new("sick", "sick"));
    well.offer(inventory(&["sick__find"]));
    sick.offer(inventory(&[]));
    sick.stands(State::Ready);
    let stage = Stage::new(Strategy::Prefix, &[&well, &sick]);
    let ask = async |stage: &Stage| refusal(stage.ask(Method::ToolsCall, r#"{"name":"sick__find"}"#)).await;
    let unknown = ask(&stage).await;
    assert_eq!(unknown.reason, Reason::InvalidParams, "{}", unknown.message);
    sick.stands(State::Failed);
    let refused = ask(&stage).await;
    assert_eq!((&refused.reason, refused.upstream.as_deref()), (&Reason::Unavailable, Some("sick")));
    let why = "upstream `sick`, which may have it, is not available";
    assert!(refused.message.contains(why) && !refused.message.contains("did you mean"), "{}", refused.message);
    // What it offered before it failed is known to be all.
    sick.offer(inventory(&["finds"]));
    sick.stands(State::Failed);
    let refused = ask(&Stage::new(Strategy::Prefix, &[&well, &sick])).await;
    assert_eq!((&refused.reason, refused.upstream.as_deref()), (&Reason::InvalidParams, Some("sick")));
    let why = "Unknown tool: sick__find (did you mean sick__finds?) (upstream sick may have it, but is failed)";
    assert_eq!(refused.message, why);
}

#[tokio::test(start_paused = true)]
async fn headers_that_disagree_with_arguments_are_refused() {
    let a = Scripted::new("a", "a");
    let mut tool = item("name", "x");
    let schema = br#"{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}"#;
    tool.headers = crate::protocol::http::param_headers::ParamHeaders::compile(schema).unwrap().map(Arc::new);
    a.offer(Inventory { tools: vec![tool].into(), ..inventory(&[]) });
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let ask = |header: Option<&'static str>| {
        let headers = header.map(|value| {
            let name = http::HeaderName::from_static("mcp-param-r");
            [(name, http::HeaderValue::from_static(value))].into()
        });
        let asked = call(Method::ToolsCall, r#"{"name":"a__x","arguments":{"r":"eu"}}"#);
        told(stage.router.handle(Call { param_headers: headers, ..asked }))
    };
    assert!(ask(Some("eu")).await.starts_with("{\"own\""));
    assert!(ask(None).await.starts_with("{\"own\""), "other transports have no headers");
    assert!(ask(Some("us")).await.starts_with("HeaderMismatch"));
}

#[tokio::test(start_paused = true)]
async fn the_only_upstream_of_a_flat_gateway_gets_what_no_list_names() {
    let a = Scripted::new("a", "a");
    a.offer(inventory(&["a name/with everything"]));
    let stage = Stage::new(Strategy::Flat, &[&a]);
    for (method, params) in [
        (Method::ToolsCall, r#"{"name":"hidden"}"#),
        (Method::ToolsCall, r#"{"name":"a name/with everything"}"#),
        (Method::PromptsGet, r#"{"name":"hidden"}"#),
        (Method::ResourcesRead, r#"{"uri":"x:hidden"}"#),
        (Method::Other("experimental/x".into()), r#"{"name":1}"#),
    ] {
        let text = method.as_str().to_owned();
        assert_eq!(told(stage.ask(method, params)).await, format!("{{\"own\":{params}}}"));
        assert_eq!(a.heard(), [format!("{text} {params}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_methods_and_notifications_end_here_among_many() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let unknown = Method::Other("x/y".into());
    assert_eq!(told(stage.ask(unknown.clone(), "{}")).await, "UnknownMethod: Method not found: x/y");
    let notice = Call { is_notification: true, ..call(unknown, "{}") };
    assert_eq!(told(stage.router.handle(notice)).await, "{}");
    assert_eq!(told(stage.ask(Method::Ping, "{}")).await, "{}");
    let mut ping = call(Method::Ping, "{}");
    ping.caller = Arc::new(Caller { revision: Revision::V2026_07_28, ..(*ping.caller).clone() });
    assert!(told(stage.router.handle(ping)).await.starts_with("UnknownMethod"));
    assert_eq!((a.heard(), b.heard()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn completions_are_asked_of_whoever_has_the_prompt_or_template() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&[]));
    b.offer(Inventory {
        prompts: vec![item("name", "p")].into(),
        templates: vec![item("uriTemplate", "m:{x}")].into(),
        ..inventory(&[])
    });
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let asked = r#"{"ref":{"type":"ref/prompt","name":"b__p"},"argument":{"name":"q","value":""}}"#;
    let own = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"q","value":""}}"#;
    assert_eq!(told(stage.ask(Method::Complete, asked)).await, format!("{{\"own\":{own}}}"));
    for uri in ["m:{x}", "m:1"] {
        let asked = format!(r#"{{"ref":{{"type":"ref/resource","uri":"{uri}"}}}}"#);
        assert_eq!(told(stage.ask(Method::Complete, &asked)).await, format!("{{\"own\":{asked}}}"));
    }
    let asked = r#"{"ref":{"type":"ref/prompt","name":"b__q"}}"#;
    assert!(told(stage.ask(Method::Complete, asked)).await.starts_with("InvalidParams: Unknown prompt"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_bears_the_state_of_another_upstream_goes_nowhere() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&["x"]));
    b.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let bound = |upstream: &str| {
        let asked = call(Method::ToolsCall, r#"{"name":"b__x","requestState":"s"}"#);
        told(stage.router.handle(Call { bound_to: Some(upstream.into()), ..asked }))
    };
    assert!(bound("a").await.starts_with("InvalidParams: `requestState` is unknown"));
    assert!(b.heard().is_empty());
    assert_eq!(bound("b").await, r#"{"own":{"name":"x","requestState":"s"}}"#);
}

#[tokio::test(start_paused = true)]
async fn whose_a_call_is_that_waited_is_known_with_its_answer() {
    let a = Scripted::new("a", "a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let mut reply = stage.ask(Method::ToolsCall, r#"{"name":"a__x"}"#);
    assert_eq!(reply.owner(), None);
    a.offer(inventory(&["x"]));
    reply.next().await;
    assert_eq!(reply.owner(), Some(&a.name));
}

#[tokio::test(start_paused = true)]
async fn one_clients_calls_for_what_was_never_seen_leave_room_for_anothers() {
    let hung = Scripted::new("hung", "hung");
    let stage = Stage::new(Strategy::Prefix, &[&hung]);
    let of = |name: &str| {
        let asked = call(Method::ToolsCall, r#"{"name":"hung__x"}"#);
        let caller = Caller { principal: Principal::named(name), ..(*asked.caller).clone() };
        stage.router.handle(Call { caller: Arc::new(caller), ..asked })
    };
    let is_answered = |reply: &mut Reply| {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        reply.poll_step(&mut cx).is_ready()
    };
    let mut flood: Vec<_> = (0..1025).map(|_| of("loud")).collect();
    assert!(!is_answered(&mut flood[1023]) && is_answered(&mut flood[1024]), "it has its part");
    assert!(!is_answered(&mut of("other")));
}
