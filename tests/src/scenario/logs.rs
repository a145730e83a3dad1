//! Log messages: of the level that a client wants, and no other.

use crate::client::{Request, tool};
use crate::judge;
use crate::scenario::Case;

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
    if !client.revision.is_modern() {
        let set = Request::new("logging/setLevel", &format!("{{\"level\":\"{level}\"}}"));
        assert_eq!(client.request(set).await.result(), "{}");
    }
    assert_eq!(said(case, level).await, expected, "messages of {level} and above");
}

/// The number of messages that a call brings.
async fn said(case: &Case, level: &str) -> usize {
    let client = &case.client;
    let who = judge::nonce();
    let mut call = tool(&case.name("chatter"), &format!("{{\"who\":\"{who}\"}}"));
    if client.revision.is_modern() {
        call = call.meta("io.modelcontextprotocol/logLevel", &format!("\"{level}\""));
    }
    let open = client.start(call).await;
    let own = open.notices.clone();
    assert_eq!(open.answer().await.text(), "said");
    // What was said before the answer is here by now, over a pipe beside the call.
    let frames = own.all().into_iter().chain(client.notices.all());
    let messages = frames.filter(|frame| frame.is_notice("notifications/message"));
    messages
        .filter(|frame| frame.params.as_ref().is_some_and(|raw| raw.get().contains(&format!(" for {who}\""))))
        .count()
}
