//! Arguments and results pass byte for byte, whatever stands in them.

use trunkline_tests::client::{Client, Reach, Request, tool};
use trunkline_tests::frame::{quote, shorten};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Answers, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;

/// Objects that a careless relay would change.
fn objects() -> Vec<String> {
    let mut objects: Vec<String> = [
        r#"{}"#,
        r#"{"big":18446744073709551616,"huge":1e400,"tiny":1e-400,"long":3.14159265358979323846264338327950288}"#,
        r#"{"zero":-0,"float":-0.0,"exp":1E+2,"int":1.0,"max":9007199254740993}"#,
        r#"{"a":1,"a":2,"A":3,"\u0061":4}"#,
        r#"{"lone":"\ud800","pair":"\ud83d\ude00","reversed":"\ude00\ud83d","nul":"\u0000","low":"\udfff"}"#,
        r#"{"z":1,"y":{"b":1,"a":2},"x":[],"w":{}}"#,
        r#"{ "spaces" : [ 1 , 2 ,	3 ] , "s" : "a  b" }"#,
        r#"{"slash":"\/","solidus":"/","quote":"\"","escape":"\u00e9é","line":"  "}"#,
        r#"{"id":1,"method":"tools/call","jsonrpc":"1.0","params":{"name":"other"},"result":{},"error":{}}"#,
        r#"{"_meta":{"progressToken":1},"name":"other","arguments":{},"uri":"x","cursor":""}"#,
        r#"{"__proto__":{"a":1},"constructor":null,"":"empty key"}"#,
        r#"{"text":"data: x\n\nevent: y\r\n","emoji":"😀","nonchar":"￾"}"#,
    ]
    .map(String::from)
    .to_vec();
    objects.push(format!("{{\"deep\":{}1{}}}", "[".repeat(100), "]".repeat(100)));
    objects.push(format!("{{\"long\":{}}}", quote(&"ä😀\n".repeat(100_000))));
    objects.push(format!("{{\"many\":[{}0]}}", "1e400,".repeat(50_000)));
    objects
}

async fn client_over(way: Way, revision: Revision, upstream: &Upstream) -> (Client, Box<dyn std::any::Any>) {
    let config = Config::new().upstream(upstream);
    let (client, keep): (Client, Box<dyn std::any::Any>) = match way {
        Way::Http => {
            let gateway = Gateway::serve(&config).await;
            (Client::connect(&gateway.reach(), revision).await, Box::new(gateway))
        }
        _ => {
            let gateway = StdioGateway::prepare(&config);
            (Client::connect(&gateway.reach(), revision).await, Box::new(gateway))
        }
    };
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    (client, keep)
}

/// There and back: the echo says which bytes arrived, and gives them back as a part of its result.
async fn echo(client_way: Way, client: Revision, upstream_way: Way, upstream: Revision, answers: Answers) {
    let script = Script::new("up", upstream).with(|script| script.http.answers = answers);
    let upstream = Upstream::start(upstream_way, script).await;
    let (client, _keep) = client_over(client_way, client, &upstream).await;
    for arguments in objects() {
        let answer = client.call("up__echo", &arguments).await;
        assert!(answer.text() == arguments, "there: {}", shorten(&arguments));
        let wanted = format!("\"structuredContent\":{arguments}");
        assert!(answer.result().contains(&wanted), "back: {}", shorten(&arguments));
    }
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn directly() {
    for (way, revision) in [(Way::Stdio, LEGACY), (Way::Http, LEGACY), (Way::Http, MODERN)] {
        let upstream = Upstream::start(way, Script::new("up", revision)).await;
        let reach = match way {
            Way::Stdio => Reach::Child(upstream.program()),
            _ => Reach::Url(upstream.url()),
        };
        let client = Client::connect(&reach, revision).await;
        for arguments in objects() {
            let answer = client.call("echo", &arguments).await;
            assert!(answer.text() == arguments && answer.result().contains(&arguments), "{}", shorten(&arguments));
        }
    }
}

macro_rules! echoes {
    ($($name:ident: $client_way:ident $client:ident, $upstream_way:ident $upstream:ident $answers:ident;)*) => {$(
        #[tokio::test]
        async fn $name() {
            echo(Way::$client_way, $client, Way::$upstream_way, $upstream, Answers::$answers).await;
        }
    )*};
}

echoes! {
    stdio_legacy_to_stdio_legacy: Stdio LEGACY, Stdio LEGACY Auto;
    stdio_legacy_to_http_modern: Stdio LEGACY, Http MODERN Sse;
    stdio_modern_to_http_legacy: Stdio MODERN, Http LEGACY Auto;
    http_modern_to_stdio_legacy: Http MODERN, Stdio LEGACY Auto;
    http_modern_to_http_modern: Http MODERN, Http MODERN Auto;
    http_modern_to_http_legacy_in_streams: Http MODERN, Http LEGACY Sse;
    http_legacy_to_stdio_modern: Http LEGACY, Stdio MODERN Auto;
    http_legacy_to_http_legacy: Http LEGACY, Http LEGACY Sse;
}

const RESULT: &str = concat!(
    r#"{ "content" : [ {"type":"text","text":"\u00e9","vendor":-0} ],"unknown":{"n":1e400,"n":2},"isError":false,"#,
    r#""structuredContent":{"b":18446744073709551616,"a":"\ud800"},"_meta":{"vendor.example/x":[1.0,  2]}}"#
);

/// A result of the client's own revision passes untouched; one of another era keeps all its parts.
async fn result(client: Revision, upstream_revision: Revision) {
    let script = Script::new("up", upstream_revision).rule(Rule::on_tool("echo", vec![Act::Result(RESULT.into())]));
    let upstream = Upstream::start(Way::Stdio, script).await;
    let (client, _keep) = client_over(Way::Http, client, &upstream).await;
    let answer = client.call("up__echo", "{}").await;
    let parts = [
        r#"[ {"type":"text","text":"\u00e9","vendor":-0} ]"#,
        r#"{"n":1e400,"n":2}"#,
        r#"{"b":18446744073709551616,"a":"\ud800"}"#,
        r#"[1.0,  2]"#,
    ];
    for part in parts {
        assert!(answer.result().contains(part), "{part} in {}", answer.result());
    }
    if client.revision == upstream_revision && !client.revision.is_modern() {
        assert_eq!(answer.result(), RESULT);
    }
}

#[tokio::test]
async fn a_result_for_a_client_of_the_same_revision_is_untouched() {
    result(LEGACY, LEGACY).await;
}

#[tokio::test]
async fn a_result_for_a_client_of_the_other_era_keeps_all_its_parts() {
    result(MODERN, LEGACY).await;
    result(LEGACY, MODERN).await;
}

/// What the upstream received for the last call of `echo`.
async fn received(upstream: &Upstream) -> String {
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, .. } if raw.contains("tools/call") => Some(raw.clone()),
        _ => None,
    };
    upstream.events.wait("the call arrives", pick).await
}

#[tokio::test]
async fn unknown_parameters_and_meta_reach_the_upstream() {
    for (client, upstream) in [(LEGACY, LEGACY), (MODERN, LEGACY), (LEGACY, MODERN), (MODERN, MODERN)] {
        let upstream = Upstream::stdio(Script::new("up", upstream)).await;
        let (client, _keep) = client_over(Way::Http, client, &upstream).await;
        let params = r#"{"vendorParam":[1e400,{"x":-0}],"name":"up__echo","arguments":{}}"#;
        let request = Request::new("tools/call", params)
            .meta("vendor.example/note", r#"{"n":1e400}"#)
            .meta("traceparent", "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"");
        assert!(client.request(request).await.result().contains("{}"));
        let raw = received(&upstream).await;
        assert!(raw.contains(r#""vendorParam":[1e400,{"x":-0}]"#), "unknown parameters: {raw}");
        assert!(raw.contains(r#""vendor.example/note":{"n":1e400}"#), "unknown _meta: {raw}");
        assert!(raw.contains("00-0af7651916cd43dd8448eb211c80319c-"), "the trace goes on: {raw}");
        assert!(raw.contains(r#""name":"echo""#), "the upstream's own name: {raw}");
    }
}

#[tokio::test]
async fn line_breaks_between_tokens_become_spaces() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let (client, _keep) = client_over(Way::Http, LEGACY, &upstream).await;
    let answer = client.call("up__echo", "{\n  \"a\": 1,\r\n  \"b\": \"x\\ny\"\n}").await;
    assert_eq!(answer.text(), "{   \"a\": 1,    \"b\": \"x\\ny\" }");
}

#[tokio::test]
async fn ids_come_back_byte_for_byte() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    for way in [Way::Stdio, Way::Http] {
        let (client, _keep) = client_over(way, LEGACY, &upstream).await;
        let long = quote(&"i".repeat(1000));
        let ids =
            ["0", "-1", "\"\"", "\"0\"", "\"\\u0061\"", "9007199254740993", "-9223372036854775808", "\"😀\"", &long];
        for id in ids {
            let answer = client.request(tool("up__echo", "{}").id(id)).await;
            assert_eq!(answer.id(), id);
            assert_eq!(answer.text(), "{}");
        }
    }
}

#[tokio::test]
async fn a_large_result_passes_whole() {
    for upstream_way in [Way::Stdio, Way::Http] {
        let script = Script::new("up", LEGACY).with(|script| script.tools.push("big".into()));
        let upstream = Upstream::start(upstream_way, script).await;
        let (client, _keep) = client_over(Way::Http, MODERN, &upstream).await;
        for bytes in [65_535, 65_536, 1 << 20, 15 << 20] {
            let answer = client.call("up__big", &format!("{{\"bytes\":{bytes}}}")).await;
            assert_eq!(answer.text().len(), bytes);
        }
    }
}
