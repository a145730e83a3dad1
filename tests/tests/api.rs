//! Everything as JSON, under `/api/v1`: held against its own description, with orders, and without what is secret.

use serde_json::Value;
use tokio::time::Instant;
use trunkline_tests::client::{Client, http, tool};
use trunkline_tests::gateway::{ADMIN_TOKEN, Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;

/// What is wrong with a value by a schema of the description.
fn faults(whole: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.trim_start_matches('#');
        let Some(schema) = whole.pointer(pointer) else { return found.push(format!("{at}: no schema {name}")) };
        return faults(whole, schema, value, at, found);
    }
    let is_kind = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    let is_one = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    if !is_kind || !is_one {
        found.push(format!("{at}: {value} is not {schema}"));
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        let (known, others) = (&schema["properties"][key], &schema["additionalProperties"]);
        match (known.is_null(), others) {
            (false, _) => faults(whole, known, inner, &format!("{at}.{key}"), found),
            (true, Value::Object(_)) => faults(whole, others, inner, &format!("{at}.{key}"), found),
            (true, Value::Bool(false)) => found.push(format!("{at}: {key} is not described")),
            _ => {}
        }
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(key).is_none() {
            found.push(format!("{at}: no {key}"));
        }
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        faults(whole, &schema["items"], item, &format!("{at}[{number}]"), found);
    }
}

/// The answer of a path, which is as the description of its template says.
async fn read(gateway: &Gateway, whole: &Value, path: &str, template: &str) -> Value {
    let answer = gateway.look(path).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{path}: {text}");
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
    hold(whole, "get", template, &value);
    value
}

/// The answer is as the description says.
fn hold(whole: &Value, method: &str, template: &str, value: &Value) {
    let schema = &whole["paths"][template][method]["responses"]["200"]["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{template} is not described");
    let mut found = Vec::new();
    faults(whole, schema, value, template, &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

async fn described(gateway: &Gateway) -> Value {
    serde_json::from_slice(&gateway.look("/api/v1/openapi.json").await.body).expect("it is JSON")
}

#[tokio::test]
async fn every_answer_is_as_the_description_says_and_shows_no_arguments_and_no_secrets() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let keys = "env = { API_TOKEN = \"a-long-secret-of-the-upstream\" }";
    let gateway = Gateway::serve(&Config::new().upstream_with(&up, keys)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    client.call("up__echo", "{\"a\":\"argument\"}").await.text();
    let open = client.start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    up.waiting_at("g").await;
    let whole = described(&gateway).await;
    let mut pages = Vec::new();
    for name in ["status", "upstreams", "tools", "calls", "sessions", "config", "history"] {
        let path = format!("/api/v1/{name}");
        pages.push(read(&gateway, &whole, &path, &path).await);
    }
    let one = read(&gateway, &whole, "/api/v1/upstreams/up", "/api/v1/upstreams/{name}").await;
    assert_eq!(one["state"], "ready");
    let defined = read(&gateway, &whole, "/api/v1/tools/up__echo", "/api/v1/tools/{name}").await;
    assert_eq!(defined["definition"]["name"], "up__echo");
    let [status, upstreams, tools, calls, sessions, config, _] = pages.try_into().expect("seven pages");
    assert_eq!((&status["ready"], &status["upstreams"]["up"]), (&true.into(), &1.into()));
    assert_eq!(upstreams["upstreams"][0]["name"], "up");
    let echo = tools["tools"].as_array().and_then(|all| all.iter().find(|tool| tool["name"] == "up__echo"));
    let echo = echo.expect("the tool is listed");
    assert_eq!((&echo["upstream"], &echo["own_name"]), (&"up".into(), &"echo".into()));
    let size = defined["definition"].to_string().len() as u64 - "up__".len() as u64;
    assert_eq!((echo["definition_bytes"].as_u64(), echo["tokens"].as_u64()), (Some(size), Some(size.div_ceil(4))));
    let waits = calls["open"].as_array().and_then(|all| all.iter().find(|call| call["name"] == "up__wait"));
    assert_eq!(waits.expect("the call under way is shown")["upstream"], "up");
    let ended = calls["ended"].as_array().and_then(|all| all.iter().find(|call| call["name"] == "up__echo"));
    let ended = ended.expect("the call that ended is shown");
    assert_eq!((&ended["outcome"], &ended["method"]), (&"ok".into(), &"tools/call".into()));
    let seconds = |key: &str| ended[key].as_f64().unwrap_or_default();
    assert!(seconds("upstream_seconds") > 0.0 && seconds("gateway_seconds") <= seconds("duration_seconds"), "{ended}");
    assert_eq!(
        (sessions["sessions"].as_array().map(Vec::len), &sessions["sessions"][0]["revision"]),
        (Some(1), &"2025-11-25".into())
    );
    let settings = config["settings"].as_array().expect("settings");
    let secret = settings.iter().find(|one| one["key"] == "upstreams.up.env.API_TOKEN").expect("it is set");
    assert_eq!(secret["value"], "[secret]");
    let file = gateway.file.display().to_string();
    assert!(secret["source"].as_str().is_some_and(|source| source.starts_with(&format!("{file}:"))), "{secret}");
    for query in ["after=zz", "wait=soon"] {
        let refused = gateway.look(&format!("/api/v1/calls?{query}")).await;
        assert_eq!(refused.status, 400, "{query}: {}", String::from_utf8_lossy(&refused.body));
    }
    let all = format!("{status}{upstreams}{tools}{calls}{sessions}{config}");
    assert!(!all.contains("a-long-secret-of-the-upstream") && !all.contains("argument\""), "{all}");
    up.order(Order::Open("g".into())).await;
    open.answer().await.text();
}

#[tokio::test]
async fn the_time_of_a_call_is_split_between_the_queue_the_upstream_and_the_gateway() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&up, "max_concurrency = 1")).await;
    // Its tools may be listed a moment before it takes calls, which wait until then.
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let first = client.start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    up.waiting_at("g").await;
    let upstream_has_it = Instant::now();
    let second = client.start(tool("up__echo", "{}")).await;
    let queued = |page: &str| page.contains("trunkline_upstream_queued_calls{upstream=\"up\"} 1");
    gateway.look_until("/metrics", "the second waits", queued).await;
    let had = upstream_has_it.elapsed().as_secs_f64();
    up.order(Order::Open("g".into())).await;
    first.answer().await.text();
    second.answer().await.text();
    let whole = described(&gateway).await;
    let calls = read(&gateway, &whole, "/api/v1/calls", "/api/v1/calls").await;
    let of = |name: &str| {
        let ended = calls["ended"].as_array().and_then(|all| all.iter().find(|call| call["name"] == name));
        let ended = ended.expect("it has ended");
        ["queue", "upstream", "gateway", "duration"]
            .map(|part| ended[format!("{part}_seconds")].as_f64().expect("known"))
    };
    let [queue, upstream, own, duration] = of("up__wait");
    let first_own = own;
    assert_eq!(queue, 0.0, "the first waited for nobody: {upstream} + {own} = {duration}");
    assert!(upstream >= had, "the upstream had the first for at least {had}: {upstream} of {duration}");
    let [queue, upstream, own, duration] = of("up__echo");
    assert!(queue > 0.0 && upstream > 0.0 && own >= 0.0, "{queue} {upstream} {own}");
    assert!((queue + upstream + own - duration).abs() < 1e-6, "{queue} + {upstream} + {own} = {duration}");
    // The metrics split it so, too: what waits for a place is no work of the gateway.
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    let value = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {page}"));
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number")
    };
    assert_eq!(value("trunkline_upstream_queue_wait_seconds_count{upstream=\"up\"}"), 1.0);
    assert!((value("trunkline_upstream_queue_wait_seconds_sum{upstream=\"up\"}") - queue).abs() < 1e-6);
    let overhead = value("trunkline_overhead_seconds_sum{method=\"tools/call\"}");
    assert!((overhead - first_own - own).abs() < 1e-5, "{overhead} is {first_own} + {own}");
}

#[tokio::test]
async fn orders_are_given_by_who_has_the_token() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up)).await;
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    let token = format!("Bearer {ADMIN_TOKEN}");
    let post = async |path: &str, token: &str| {
        let headers = [("authorization", token), ("content-type", "application/json")];
        let url = format!("{}/api/v1/{path}", gateway.admin);
        let answer = http::exchange(&url, "POST", &headers, if path.ends_with("/call") { "{}" } else { "" }).await;
        (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap_or_default())
    };
    assert_eq!(post("upstreams/up/restart", "Bearer wrong").await.0, 401);
    for (order, state) in
        [("disable", "stopped"), ("enable", "ready"), ("restart", "ready"), ("stop", "stopped"), ("start", "ready")]
    {
        let (status, page) = post(&format!("upstreams/up/{order}"), &token).await;
        assert_eq!(status, 200, "{order}: {page}");
        let stands = |page: &str| page.contains(&format!("\"state\":\"{state}\""));
        gateway.look_until("/api/v1/upstreams", "it is done", stands).await;
    }
    assert_eq!(post("upstreams/up/fly", &token).await.0, 404);
    assert_eq!(post("upstreams/nobody/stop", &token).await.0, 404);
    assert_eq!(post("reload", &token).await, (200, serde_json::json!({ "outcome": "unchanged", "needs_restart": [] })));
    let whole = described(&gateway).await;
    for (path, template) in [("tools/up__echo/call", "tools/{name}/call"), ("link", "link")] {
        let (status, answer) = post(path, &token).await;
        assert_eq!(status, 200, "{path}: {answer}");
        hold(&whole, "post", &format!("/api/v1/{template}"), &answer);
    }
    let itself = ("/api/v1/openapi.json".to_owned(), serde_json::json!({ "get": {} }));
    let paths = whole["paths"].as_object().expect("they are described").clone();
    for (path, methods) in paths.into_iter().chain([itself]) {
        let path = path.replace("{name}", "up").replace("{order}", "restart");
        for method in methods.as_object().expect("methods").keys().filter(|name| ["get", "post"].contains(&&***name)) {
            let headers = [("content-type", "application/json")];
            let url = format!("{}{path}", gateway.admin);
            let answer = http::exchange(&url, &method.to_uppercase(), &headers, "").await;
            assert_eq!(answer.status, 401, "{method} {path}");
        }
    }
}
