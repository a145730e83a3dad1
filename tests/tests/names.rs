//! Names and URIs of many upstreams as one set: prefixes, conflicts, limits, and none of it with `flat`.

use trunkline_tests::client::{Answer, Client, Request};
use trunkline_tests::frame::quote;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const REVISION: Revision = Revision::R2025_11_25;

async fn two(naming: &str, keys: [&str; 2], scripts: [Script; 2]) -> (Vec<Upstream>, Gateway, Client) {
    let mut config = Config::new().section(naming);
    let mut upstreams = Vec::new();
    for (script, keys) in scripts.into_iter().zip(keys) {
        let upstream = Upstream::http(script).await;
        config = config.upstream_with(&upstream, keys);
        upstreams.push(upstream);
    }
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    (upstreams, gateway, client)
}

fn script(name: &str) -> Script {
    Script::new(name, REVISION)
}

/// Calls a tool and checks that it ran at that upstream.
async fn runs_at(client: &Client, name: &str, upstream: &Upstream) {
    let nonce = trunkline_tests::judge::nonce();
    let answer = client.call(name, &trunkline_tests::judge::arguments(&nonce)).await;
    assert!(answer.text().contains(&nonce), "{}", answer.result());
    upstream.ran(&nonce).await;
}

async fn read(client: &Client, uri: &str) -> serde_json::Value {
    client.request(Request::new("resources/read", &format!("{{\"uri\":{}}}", quote(uri)))).await.value()
}

#[tokio::test]
async fn every_name_has_its_upstreams_prefix() {
    let (upstreams, _gateway, client) = two("", ["", ""], [script("one"), script("two")]).await;
    let tools = client.tools_until("both are listed", |tools| tools.len() == 12).await;
    assert!(tools[..6].iter().all(|name| name.starts_with("one__")), "in the order of the configuration: {tools:?}");
    assert!(tools[6..].iter().all(|name| name.starts_with("two__")), "{tools:?}");
    runs_at(&client, "one__echo", &upstreams[0]).await;
    runs_at(&client, "two__echo", &upstreams[1]).await;
    for wrong in ["echo", "one__nothing", "three__echo", "one__two__echo", "ONE__echo", "one_echo", ""] {
        assert_eq!(client.call(wrong, "{}").await.code(), -32602, "{wrong}");
    }
    let prompts = client.list("prompts/list", "prompts", "name").await;
    assert_eq!(prompts, ["one__greet", "two__greet"]);
}

#[tokio::test]
async fn a_separator_in_a_name_misleads_nobody() {
    let scripts = [
        Script::new("a", REVISION).only_tools(&["b__echo", "echo"]),
        Script::new("a-b", REVISION).only_tools(&["echo"]),
    ];
    let (upstreams, _gateway, client) = two("", ["", "prefix = \"a__b\""], scripts).await;
    let tools = client.tools_until("both are listed", |tools| tools.len() == 3).await;
    runs_at(&client, "a__echo", &upstreams[0]).await;
    runs_at(&client, "a__b__echo", &upstreams[0]).await;
    let other = tools.iter().find(|name| !["a__echo", "a__b__echo"].contains(&name.as_str())).expect("a third name");
    runs_at(&client, other, &upstreams[1]).await;
}

#[tokio::test]
async fn prefixes_and_separators_are_configured() {
    let keys = ["prefix = \"x\"", "prefix = \"\""];
    let scripts = [script("one").only_tools(&["echo"]), script("two").only_tools(&["echo"])];
    let (upstreams, _gateway, client) = two("[naming]\nseparator = \"-\"", keys, scripts).await;
    let tools = client.tools_until("both are listed", |tools| tools.len() == 2).await;
    assert_eq!(tools, ["x-echo", "echo"]);
    runs_at(&client, "x-echo", &upstreams[0]).await;
    runs_at(&client, "echo", &upstreams[1]).await;
}

#[tokio::test]
async fn prefix_on_conflict_touches_only_what_is_contested() {
    let scripts = [script("one").only_tools(&["echo", "alone"]), script("two").only_tools(&["echo", "other"])];
    let (upstreams, _gateway, client) = two("[naming]\nstrategy = \"prefix_on_conflict\"", ["", ""], scripts).await;
    let tools = client.tools_until("both are listed", |tools| tools.len() == 4).await;
    assert!(tools.contains(&"alone".into()) && tools.contains(&"other".into()), "{tools:?}");
    assert!(tools.contains(&"two__echo".into()), "the later one gives way: {tools:?}");
    runs_at(&client, "alone", &upstreams[0]).await;
    runs_at(&client, "two__echo", &upstreams[1]).await;
    let first = if tools.contains(&"echo".into()) { "echo" } else { "one__echo" };
    runs_at(&client, first, &upstreams[0]).await;
}

#[tokio::test]
async fn long_names_end_in_a_stable_hash() {
    let long = "a_name_that_is_much_longer_than_any_host_will_take_";
    let names = [format!("{long}one"), format!("{long}two")];
    let make = || {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        [script("one").only_tools(&names), script("two").only_tools(&["echo"])]
    };
    let (upstreams, _gateway, client) = two("", ["", ""], make()).await;
    let tools = client.tools_until("both are listed", |tools| tools.len() == 3).await;
    assert!(tools.iter().all(|name| name.len() <= 50), "{tools:?}");
    assert_ne!(tools[0], tools[1]);
    assert!(tools[0].starts_with("one__a_name_that"), "{tools:?}");
    runs_at(&client, &tools[0], &upstreams[0]).await;
    runs_at(&client, &tools[1], &upstreams[0]).await;
    let (_again, _gateway, client) = two("", ["", ""], make()).await;
    assert_eq!(client.tools_until("both are listed", |tools| tools.len() == 3).await, tools, "the same at every start");
}

#[tokio::test]
async fn allowed_and_denied_tools_are_seen_and_called_alike() {
    let keys = ["tools = { allow = [\"e*\", \"tool_*\"], deny = [\"*error\"] }", ""];
    let (_upstreams, gateway, client) = two("", keys, [script("one"), script("two")]).await;
    let tools = client.tools_until("both are listed", |tools| tools.len() == 7).await;
    assert_eq!(tools[0], "one__echo");
    let shown: serde_json::Value =
        serde_json::from_slice(&gateway.look("/api/v1/tools").await.body).expect("it is JSON");
    let why = |name: &str| {
        let hidden = shown["hidden"].as_array().expect("a list").iter();
        let mut hidden = hidden.filter(|one| one["upstream"] == "one" && one["own_name"] == name);
        hidden.next().unwrap_or_else(|| panic!("{name}: {shown}"))["why"].as_str().expect("it is text").to_owned()
    };
    assert_eq!(why("wait"), "no pattern of `tools.allow` of its upstream fits it");
    assert_eq!(why("tool_error"), "a pattern of `tools.deny` of its upstream fits it");
    for hidden in ["one__wait", "one__tool_error"] {
        let refused = client.call(hidden, "{}").await;
        let absent = client.call("one__absent", "{}").await;
        // What may have been meant instead is told to both, and differs with the name.
        let plain = |answer: &Answer, name: &str| {
            let text = answer.error().replace(name, "X");
            text.split_once(" (did you mean").map_or(text.clone(), |(before, _)| format!("{before}\"}}"))
        };
        assert_eq!(plain(&refused, hidden), plain(&absent, "one__absent"), "as if it were not there");
        assert!(!refused.error().contains(&format!("mean {hidden}")), "it is not even hinted at");
    }
}

#[tokio::test]
async fn contested_uris_of_the_later_upstream_are_rewritten_reversibly() {
    let shared = |name: &str| script(name).with(|script| script.authority = "shared".into());
    let (upstreams, _gateway, client) = two("", ["", ""], [shared("one"), shared("two")]).await;
    client.tools_until("both are listed", |tools| tools.len() == 12).await;
    let uris = client.list("resources/list", "resources", "uri").await;
    assert_eq!(uris[..2], ["script://shared/text", "script://shared/changing"]);
    assert_eq!(uris[2..], ["two+script://shared/text", "two+script://shared/changing"]);
    let templates = client.list("resources/templates/list", "resourceTemplates", "uriTemplate").await;
    assert_eq!(templates, ["script://shared/item/{id}", "two+script://shared/item/{id}"]);
    for (uri, text) in [
        ("script://shared/text", "text of one"),
        ("two+script://shared/text", "text of two"),
        ("script://shared/item/5", "item/5 of one"),
        ("two+script://shared/item/5", "item/5 of two"),
    ] {
        let found = read(&client, uri).await;
        assert_eq!(found["contents"][0]["text"], text, "{uri}");
        assert_eq!(found["contents"][0]["uri"], uri, "rewritten wherever it appears");
    }
    let uri = "two+script://shared/changing";
    let changes = client.listen(&[uri]).await;
    upstreams[1].received("resources/subscribe").await;
    let updated =
        Order::Notify("notifications/resources/updated".into(), "{\"uri\":\"script://shared/changing\"}".into());
    let listening = |event: &trunkline_tests::journal::Event| {
        matches!(event.what, trunkline_tests::journal::What::Listening(_)).then_some(())
    };
    upstreams[1].events.wait("the GET stream is open", listening).await;
    upstreams[1].order(updated).await;
    let notice = changes.hears(0, "notifications/resources/updated").await;
    assert_eq!(notice.param_text("uri").as_deref(), Some(uri));
}

/// With one upstream and `flat`, what a client sees is what the upstream itself says.
#[tokio::test]
async fn flat_with_one_upstream_is_transparent() {
    let script = script("only").with(|script| script.instructions = "Use with care.".into());
    let direct_upstream = Upstream::http(script.clone()).await;
    let direct = Client::connect(&trunkline_tests::client::Reach::Url(direct_upstream.url()), REVISION).await;
    let upstream = Upstream::http(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream).section("[naming]\nstrategy = \"flat\"")).await;
    let through = Client::connect(&gateway.reach(), REVISION).await;
    through.tools_until("it is listed", |tools| tools.contains(&"echo".into())).await;

    let uri = "{\"uri\":\"script://only/text\"}";
    let missing = "{\"uri\":\"other://nowhere/x\"}";
    let requests = [
        ("tools/list", "{}"),
        ("resources/list", "{}"),
        ("resources/templates/list", "{}"),
        ("prompts/list", "{}"),
        ("resources/read", uri),
        ("resources/read", missing),
        ("prompts/get", "{\"name\":\"greet\",\"arguments\":{\"who\":\"Ada\"}}"),
        ("prompts/get", "{\"name\":\"nobody\"}"),
        (
            "completion/complete",
            "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},\"argument\":{\"name\":\"who\",\"value\":\"A\"}}",
        ),
        ("tools/call", "{\"name\":\"echo\",\"arguments\":{\"a\":1e400}}"),
        ("tools/call", "{\"name\":\"fail\",\"arguments\":{\"code\":-32050,\"message\":\"m\",\"data\":[1.0]}}"),
        ("tools/call", "{\"name\":\"no_such\",\"arguments\":{}}"),
        ("vendor/method", "{\"x\":1}"),
    ];
    for (method, params) in requests {
        let wanted = direct.request(Request::new(method, params)).await.frame().clone();
        let given = through.request(Request::new(method, params)).await.frame().clone();
        let raw = |value: &Option<Box<serde_json::value::RawValue>>| value.as_ref().map(|raw| raw.get().to_owned());
        assert_eq!(raw(&given.result), raw(&wanted.result), "{method} {params}");
        assert_eq!(raw(&given.error), raw(&wanted.error), "{method} {params}");
    }
    let again = Client::connect(&gateway.reach(), REVISION).await;
    assert_eq!(again.greeting.as_ref().expect("greeted").value()["instructions"], "Use with care.");
}

#[tokio::test]
async fn instructions_of_all_upstreams_are_joined() {
    let with = |name: &str| script(name).with(|script| script.instructions = format!("Instructions of {name}."));
    let (_upstreams, gateway, client) = two("", ["", ""], [with("one"), with("two")]).await;
    client.tools_until("both are listed", |tools| tools.len() == 12).await;
    let again = Client::connect(&gateway.reach(), REVISION).await;
    let said = again.greeting.as_ref().expect("greeted").value()["instructions"].to_string();
    assert!(said.contains("Instructions of one.") && said.contains("Instructions of two."), "{said}");
}

/// Names that an upstream may give its tools, though nobody else would.
fn odd_names() -> Vec<String> {
    let long = |end: char| format!("{}{end}", "l".repeat(299));
    let mut names = [
        "with spaces",
        "Echo",
        "ECHO",
        "écho",
        "日本語",
        "a/b.c:d",
        "up__echo",
        "__",
        " ",
        "🙂",
        "e\u{301}cho",
        "<&'\"\\>",
    ]
    .map(String::from)
    .to_vec();
    names.extend([long('1'), long('2')]);
    names
}

#[tokio::test]
async fn odd_names_of_one_upstream_each_lead_to_their_own_tool() {
    let odd = odd_names();
    let defined = |name: &str, text: &str| {
        format!("{{\"name\":{},\"description\":{},\"inputSchema\":{{\"type\":\"object\"}}}}", quote(name), quote(text))
    };
    let script = script("up").only_tools(&["echo"]).with(|script| {
        script.raw_tools = odd.iter().map(|name| defined(name, &format!("own {name}"))).collect();
        script.raw_tools.push(defined("echo", "the twin"));
    });
    let upstream = Upstream::stdio(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let public = client.tools_until("all are listed", |tools| tools.len() == odd.len() + 1).await;
    let distinct: std::collections::BTreeSet<_> = public.iter().collect();
    assert_eq!(distinct.len(), public.len(), "no two are alike: {public:?}");
    let is_legal = |name: &&String| {
        name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    assert!(public.iter().all(|name| is_legal(&name)), "{public:?}");
    let listed = client.request(Request::new("tools/list", "{}")).await.value();
    for tool in listed["tools"].as_array().expect("a list") {
        let (name, description) =
            (tool["name"].as_str().expect("a name"), tool["description"].as_str().expect("a text"));
        let own = description.strip_prefix("own ").unwrap_or("echo");
        let nonce = trunkline_tests::judge::nonce();
        client.call(name, &trunkline_tests::judge::arguments(&nonce)).await;
        let (raw, _) = upstream.received(&nonce).await;
        assert!(raw.contains(&format!("\"name\":{}", quote(own))), "{name} leads to {own:?}: {raw}");
    }
    assert_eq!(listed["tools"][0]["description"], "echo of up", "of two twins the first is kept");
    gateway.says(&["item_twice", "echo"]).await;
}
