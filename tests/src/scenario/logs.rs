//! Log messages: of the level that a client wants, and no other.

use serde_json::Value;

use crate::client::{Request, tool};
use crate::scenario::Case;
use crate::within::within;

/// The messages of a call come to its client, from the level on that it set; a stateless client sets it for each call.
pub(crate) async fn levels(case: &Case) {
    for (level, expected) in [("error", 4), ("info", 7)] {
        heard(case, level, expected).await;
    }
    if case.client.revision.is_modern() {
        let open = case.client.start(tool(&case.name("chatter"), "{\"who\":\"ada\"}")).await;
        let notices = open.notices.clone();
        open.answer().await;
        assert!(notices.all().is_empty(), "whoever names no level hears nothing: {:?}", notices.all());
    }
}

async fn heard(case: &Case, level: &str, expected: usize) {
    let client = &case.client;
    let who = format!("ada-{level}");
    let mut call = tool(&case.name("chatter"), &format!("{{\"who\":\"{who}\"}}"));
    if client.revision.is_modern() {
        call = call.meta("io.modelcontextprotocol/logLevel", &format!("\"{level}\""));
    } else {
        let set = Request::new("logging/setLevel", &format!("{{\"level\":\"{level}\"}}"));
        assert_eq!(client.request(set).await.result(), "{}");
    }
    let open = client.start(call).await;
    let own = open.notices.clone();
    assert_eq!(open.answer().await.text(), "said");
    // Over a pipe they come beside the call.
    let all = || {
        let frames = own.all().into_iter().chain(client.notices.all());
        let params = frames.filter(|frame| frame.is_notice("notifications/message")).filter_map(|frame| frame.params);
        let said = params.filter_map(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        said.filter(|params| params["data"].to_string().contains(&who)).collect::<Vec<_>>()
    };
    within("the messages come", async {
        while all().len() < expected {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(all().len(), expected, "from {level} on: {:?}", all());
}
