//! MCP Apps: the pages that tools name reach their owner, whatever they are called outside, in either era.

use serde_json::Value;
use trunkline_tests::client::{Client, Request};
use trunkline_tests::frame::quote;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const EXTENSION: &str = "io.modelcontextprotocol/ui";
const PAGE: &str = "text/html;profile=mcp-app";

/// An upstream whose tools name pages; only the first of them is listed.
fn clock(name: &str, revision: Revision) -> Script {
    let shown = |tool: &str, meta: &str| format!("{{\"name\":\"{tool}\",\"inputSchema\":{{}},\"_meta\":{{{meta}}}}}");
    let listed = format!(
        "{{\"resources\":[{{\"uri\":\"ui://clock/main\",\"name\":\"of {name}\",\"mimeType\":\"{PAGE}\"}}]{}}}",
        if revision.is_modern() { ",\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\"" } else { "" }
    );
    let read = |uri: &str| {
        let kind = if revision.is_modern() {
            ",\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\""
        } else {
            ""
        };
        format!(
            "{{\"contents\":[{{\"uri\":\"{uri}\",\"mimeType\":\"{PAGE}\",\"text\":\"<p>{name}</p>\",\
             \"_meta\":{{\"ui\":{{\"csp\":{{\"connectDomains\":[\"https://a\"]}},\"resourceUri\":\"{uri}\"}}}}}}]{kind}}}"
        )
    };
    let reads = |uri: &str| Rule { name: Some(uri.into()), ..Rule::on("resources/read", vec![Act::Result(read(uri))]) };
    Script::new(name, revision)
        .with(|script| {
            script.tools.clear();
            script.raw_tools = vec![
                shown("nested", "\"ui\":{\"visibility\":[\"model\"],\"resourceUri\":\"ui://clock/main\"}"),
                shown("flat", "\"ui/resourceUri\":\"ui://clock/unlisted\""),
            ];
            script.capabilities = format!(
                "{{\"tools\":{{}},\"resources\":{{}},\"extensions\":{{\"{EXTENSION}\":{{\"mimeTypes\":[\"{PAGE}\"]}}}}}}"
            );
        })
        .rule(Rule::on("resources/list", vec![Act::Result(listed)]))
        .rule(reads("ui://clock/main"))
        .rule(reads("ui://clock/unlisted"))
}

/// The pages that the tools of an upstream name, as the client sees them.
async fn pages(client: &Client, upstream: &str) -> [String; 2] {
    let list = client.request(Request::new("tools/list", "{}")).await.value();
    let meta = |tool: &str| {
        let name = format!("{upstream}__{tool}");
        let tools = list["tools"].as_array().expect("tools").iter();
        tools.clone().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name} in {list}"))["_meta"].clone()
    };
    let text = |value: &Value| value.as_str().expect("a page").to_owned();
    assert_eq!(meta("nested")["ui"]["visibility"][0], "model", "the rest stays");
    [text(&meta("nested")["ui"]["resourceUri"]), text(&meta("flat")["ui/resourceUri"])]
}

async fn read(client: &Client, uri: &str) -> Value {
    let asked = Request::new("resources/read", &format!("{{\"uri\":{}}}", quote(uri)));
    client.request(asked).await.value()["contents"][0].clone()
}

async fn check(client_revision: Revision, upstream_revision: Revision, way: Way) {
    let first = Upstream::start(way, clock("one", upstream_revision)).await;
    let second = Upstream::start(way, clock("two", upstream_revision)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&first).upstream(&second)).await;
    let client = Client::connect(&gateway.reach(), client_revision).await;
    client.tools_until("both are there", |tools| tools.len() == 4).await;
    let seen = format!("{client_revision} to {upstream_revision}, {way:?}");
    assert_eq!(pages(&client, "one").await, ["ui://clock/main", "ui://clock/unlisted"], "{seen}");
    assert_eq!(pages(&client, "two").await, ["ui://two.clock/main", "ui://two.clock/unlisted"], "{seen}");
    for (upstream, authority) in [("one", "clock"), ("two", "two.clock")] {
        for path in ["main", "unlisted"] {
            let uri = format!("ui://{authority}/{path}");
            let content = read(&client, &uri).await;
            assert_eq!(
                (&content["uri"], &content["text"]),
                (&Value::from(uri), &Value::from(format!("<p>{upstream}</p>")))
            );
            assert_eq!(content["mimeType"], PAGE);
            assert_eq!(
                content["_meta"]["ui"]["resourceUri"],
                format!("ui://clock/{path}"),
                "`_meta` of results is theirs"
            );
        }
    }
    let asked = Request::new("resources/read", "{\"uri\":\"ui://elsewhere/main\"}");
    assert_ne!(client.request(asked).await.code(), 0, "{seen}");
}

#[tokio::test]
async fn contested_pages_are_told_apart_for_stateless_clients() {
    check(Revision::MODERN, Revision::MODERN, Way::Http).await;
    check(Revision::MODERN, Revision::R2025_11_25, Way::Stdio).await;
}

#[tokio::test]
async fn contested_pages_are_told_apart_for_sessions() {
    check(Revision::R2025_11_25, Revision::R2025_11_25, Way::Http).await;
    check(Revision::R2025_11_25, Revision::MODERN, Way::Stdio).await;
}

#[tokio::test]
async fn the_extension_is_advertised_where_an_upstream_declares_it_and_nowhere_else() {
    for declares in [true, false] {
        let plain = Upstream::http(Script::new("plain", Revision::R2025_11_25)).await;
        let apps = Upstream::http(clock("apps", Revision::MODERN)).await;
        let config = Config::new().upstream(&plain);
        let gateway = Gateway::serve(&if declares { config.upstream(&apps) } else { config }).await;
        let client = Client::connect(&gateway.reach(), Revision::MODERN).await;
        let name = if declares { "apps__flat" } else { "plain__echo" };
        client.tools_until("the upstream is there", |tools| tools.iter().any(|tool| tool == name)).await;
        let discovered = client.request(Request::new("server/discover", "{}")).await.value();
        let said = &discovered["capabilities"]["extensions"][EXTENSION];
        assert_eq!(said["mimeTypes"][0] == PAGE, declares, "{discovered}");
        assert_eq!(said.is_null(), !declares, "{discovered}");
    }
}
