//! Secrets in texts: taken out both ways where that is configured, counted, and from a reload on.

use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
/// An access key as documentation shows one.
const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
const REDACT: &str = "[redact]\nkeys = true\npatterns = ['ACME-[0-9]{4}']\n";

/// An upstream whose tool `wait` answers with secrets, in a text, in structured content, and in a name.
async fn upstream(way: Way, revision: Revision) -> Upstream {
    let kind = if revision.is_modern() { "\"resultType\":\"complete\"," } else { "" };
    let answer = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{{kind}\"content\":[{{\"type\":\"text\",\"text\":\"a {KEY}\"}}],\
         \"structuredContent\":{{\"ACME-1234\":\"ACME-1234\"}}}}}}"
    );
    Upstream::start(way, Script::new("up", revision).rule(Rule::on_tool("wait", vec![Act::Frame(answer)]))).await
}

async fn client(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    client
}

#[tokio::test]
async fn secrets_in_texts_are_taken_out_both_ways_and_counted() {
    for (way, revision) in [(Way::Stdio, LEGACY), (Way::Http, MODERN), (Way::WebSocket, LEGACY)] {
        let up = upstream(way, revision).await;
        let gateway = Gateway::serve(&Config::new().upstream(&up).section(REDACT)).await;
        for of in [LEGACY, MODERN] {
            let client = client(&gateway, of).await;
            let mark = up.events.mark();
            let echoed =
                client.call("up__echo", &format!("{{\"x\":\"{KEY}\",\"ACME-1234\":[\"an ACME-1234\"]}}")).await;
            // It comes back as a text, in which the key is one of the words.
            assert_eq!(echoed.text(), "{\"x\":\"[redacted]\",\"[redacted]\":[\"an [redacted]\"]}", "{way:?} {of}");
            let seen = format!("{:?}", up.seen().await.split_off(mark)).replace('\\', "");
            let shown = "{\"x\":\"[redacted]\",\"ACME-1234\":[\"an [redacted]\"]}";
            assert!(seen.contains(shown) && !seen.contains(KEY), "the upstream was shown it: {seen}");
            let result = client.call("up__wait", "{}").await;
            let (text, structured) = (result.text(), &result.value()["structuredContent"]);
            assert_eq!((&text[..], structured.to_string()), ("a [redacted]", "{\"ACME-1234\":\"[redacted]\"}".into()));
        }
        let of = |of: &str| format!("trunkline_redactions_total{{upstream=\"up\",of=\"{of}\"}}");
        gateway.look_until("/metrics", "calls are counted", |page| page.contains(&format!("{} 4", of("call")))).await;
        gateway
            .look_until("/metrics", "results are counted", |page| page.contains(&format!("{} 6", of("result"))))
            .await;
    }
}

/// Reads the configuration anew, until it says so.
async fn reads(gateway: &Gateway, config: &Config, says: &str) {
    let mark = gateway.stderr.mark();
    gateway.configure(config);
    gateway.stderr.wait_from(mark, says, |line| line.contains(says).then_some(())).await;
}

#[tokio::test]
async fn nothing_is_taken_out_unless_it_is_configured_and_a_reload_says_otherwise() {
    let up = upstream(Way::Http, LEGACY).await;
    let config = |section: &str| Config::new().upstream(&up).section(section);
    let gateway = Gateway::serve(&config("")).await;
    let client = client(&gateway, LEGACY).await;
    assert_eq!(client.call("up__wait", "{}").await.text(), format!("a {KEY}"));
    reads(&gateway, &config(REDACT), "configuration reloaded").await;
    assert_eq!(client.call("up__wait", "{}").await.text(), "a [redacted]");
    reads(&gateway, &config("[redact]\npatterns = ['ACME-[0-9]{4}', '(x']\n"), "unclosed group").await;
    assert_eq!(client.call("up__wait", "{}").await.text(), "a [redacted]", "what is wrong changes nothing");
    reads(&gateway, &config(""), "configuration reloaded").await;
    assert_eq!(client.call("up__wait", "{}").await.text(), format!("a {KEY}"));
}
