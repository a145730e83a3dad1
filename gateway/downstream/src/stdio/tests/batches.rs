//! Arrays of frames, and ids that stand twice.

use super::*;

/// The answers of an array, by their ids.
fn ids(line: &str) -> Vec<String> {
    let answers: Vec<serde_json::Value> = serde_json::from_str(line).unwrap();
    answers.iter().map(|one| format!("{}:{}", one["id"], one["error"]["code"])).collect()
}

#[tokio::test(start_paused = true)]
async fn each_element_of_an_array_is_answered_for_itself() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    let bad = [
        "7",
        "{\"jsonrpc\":\"2.0\",\"id\":\"none\"}",
        "{\"jsonrpc\":\"1.0\",\"id\":\"old\",\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"twice\",\"method\":\"ping\",\"Method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"first\",\"method\":\"initialize\",\"params\":{}}",
        &modern("\"new\"", "tools/list", ""),
    ];
    host.write(&format!("[{},{},{}]", call("1", "echo"), bad.join(","), call("2", "echo"))).await;
    let both = "\"none\":-32600 \"old\":-32600 \"twice\":-32600 \"first\":-32600 \"new\":-32600";
    assert_eq!(ids(&host.line().await).join(" "), format!("1:null null:-32600 {both} 2:null"));
    // Of bad ones alone.
    host.write(&format!("[{}]", bad[2])).await;
    assert_eq!(ids(&host.line().await), ["\"old\":-32600"]);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_in_flight_is_refused_and_the_first_call_goes_on() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    host.write(&call("1", "x")).await;
    let first = host.hands.next().await;
    // In both eras, and beside others in an array.
    for second in [call("1", "x"), modern("1", "tools/call", ",\"name\":\"x\"")] {
        host.write(&second).await;
        let refused = host.line().await;
        assert!(refused.contains("\"id\":1,\"error\":{\"code\":-32600") && refused.contains("under way"), "{refused}");
    }
    host.write(&format!("[{},{},{}]", call("2", "echo"), call("2", "echo"), call("1", "echo"))).await;
    assert_eq!(ids(&host.line().await), ["2:null", "2:-32600", "1:-32600"]);
    first.complete("{}");
    let answer = host.line().await;
    assert!(answer.contains("\"id\":1,\"result\""), "{answer}");
    host.write(&call("1", "echo")).await;
    assert!(host.line().await.contains("\"id\":1,\"result\""), "the id is free again");
}
