//! Stdio upstreams that write arrays of millions of elements: what the gateway makes of them is counted.

use super::*;

/// What the shell does to write so many MiB of numbers that are a digit and a comma each, between two texts.
fn array(begin: &str, mib: usize, end: &str) -> String {
    format!("printf '{begin}' \"$id\"; yes 1, | tr -d '\\n' | head -c {}; printf '1{end}\\n'", mib << 20)
}

#[tokio::test]
async fn wide_arrays_take_no_more_than_the_limit() {
    let _part = crate::part().await;
    let content = array(r#"{"jsonrpc":"2.0","id":%s,"result":{"content":["#, 30, "]}}");
    let structured = array(r#"{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"x":["#, 30, "]}}}");
    let alone = array("[%.0s", 30, "]");
    let program = shell::upstream(&[
        ("content", &content),
        ("structured", &structured),
        ("alone", &format!("{alone}; {}", reply(0, END))),
    ]);
    let config = tokens().section("[defaults]\nmax_response = \"64MiB\"");
    let stage = stage(&program, config).await;
    let cases = [(Revision::MODERN, "alone"), (REVISION, "content"), (Revision::R2025_03_26, "structured")];
    for (revision, name) in cases {
        // To hold millions of elements against a schema takes minutes.
        let client = stage.client_with(revision, Desk::closed().unjudging()).await;
        let call = client.start(tool(&format!("up__{name}"), "{}").token("\"p\"")).await;
        let answer = within("the call ends", call.answer()).await;
        // In older words a structured result is there three times: that is more than the limit.
        assert_eq!(answer.frame().error.is_none(), name != "structured", "{name} in {revision:?}");
        stage.has_had_less_than(LIMIT);
    }
}
