//! A client keeps its session, whichever gateway stands behind it.

use super::*;

fn up(ledger: &mut Ledger, line: &str) -> Vec<String> {
    texts(&ledger.up(line.to_owned().into()))
}

fn down(ledger: &mut Ledger, line: &str) -> Vec<String> {
    texts(&ledger.down(line.to_owned().into()))
}

fn texts(frames: &[Bytes]) -> Vec<String> {
    frames.iter().map(|frame| String::from_utf8(frame.to_vec()).expect("frames are text")).collect()
}

fn sorted(frames: &[Bytes]) -> Vec<String> {
    let mut texts = texts(frames);
    texts.sort();
    texts
}

const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
const WELCOME: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// A client that has shaken hands.
fn met() -> Ledger {
    let mut ledger = Ledger::default();
    assert_eq!(up(&mut ledger, HELLO), [HELLO]);
    let welcome = result("\"h\"", WELCOME);
    assert_eq!(down(&mut ledger, &welcome), [welcome]);
    assert_eq!(up(&mut ledger, INITIALIZED), [INITIALIZED]);
    ledger
}

#[test]
fn what_was_open_is_answered_by_what_it_was_and_what_was_cancelled_is_not() {
    let mut ledger = met();
    for (id, method) in [("1", "tools/call"), ("2", "tools/list"), ("3", "own/method"), ("\"c\"", "tools/call")] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"x"}}}}"#);
        assert_eq!(up(&mut ledger, &frame), [frame]);
    }
    up(&mut ledger, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#);
    down(&mut ledger, &result("3", "{}"));
    let told = sorted(&ledger.lost());
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"#)
            && told[0].contains("may or may not have run")
    );
    assert!(!told[0].contains("\"retriable\":true"), "{told:?}");
    assert!(told[1].starts_with(r#"{"jsonrpc":"2.0","id":2,"#) && told[1].contains("\"retriable\":true"), "{told:?}");
    assert!(ledger.lost().is_empty(), "once");
}

#[test]
fn the_next_gateway_is_told_the_handshake_and_what_holds_and_the_client_that_lists_may_have_changed() {
    let mut ledger = met();
    for (id, method, params) in [
        ("1", "logging/setLevel", r#"{"level":"debug"}"#),
        ("2", "resources/subscribe", r#"{"uri":"a:b"}"#),
        ("3", "resources/subscribe", r#"{"uri":"a:gone"}"#),
        ("4", "resources/unsubscribe", r#"{"uri":"a:gone"}"#),
        ("5", "resources/subscribe", r#"{"uri":"a:refused"}"#),
    ] {
        up(&mut ledger, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        let refused = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no"}}}}"#);
        down(&mut ledger, &if params.contains("refused") { refused } else { result(id, "{}") });
    }
    assert!(ledger.lost().is_empty());
    let told = texts(&ledger.greeting());
    let own =
        |number: u64, rest: &str| format!(r#"{{"jsonrpc":"2.0","id":"trunkline-bridge-{number}","method":{rest}}}"#);
    assert_eq!(
        told,
        [
            own(1, r#""initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}"#),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#.to_owned(),
            own(2, r#""logging/setLevel","params":{"level":"debug"}"#),
            own(3, r#""resources/subscribe","params":{"uri":"a:b"}"#),
        ]
    );
    assert_eq!(
        down(&mut ledger, &result("\"trunkline-bridge-1\"", WELCOME)),
        [
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#,
        ]
    );
    assert!(down(&mut ledger, &result("\"trunkline-bridge-3\"", "{}")).is_empty(), "the client has not asked for it");
    assert_ne!(texts(&ledger.greeting()), told, "each gateway gets ids of its own");
}

#[test]
fn a_handshake_that_no_gateway_has_answered_is_answered_by_the_next() {
    let mut ledger = Ledger::default();
    up(&mut ledger, HELLO);
    assert!(ledger.lost().is_empty());
    assert_eq!(texts(&ledger.greeting()), [HELLO]);
    let welcome = result("\"h\"", WELCOME);
    assert_eq!(down(&mut ledger, &welcome), [welcome]);
    assert!(ledger.lost().is_empty() && ledger.has_room());
}

#[test]
fn questions_of_different_gateways_never_have_one_number() {
    let mut ledger = met();
    let question = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{"id":1}}"#;
    assert_eq!(down(&mut ledger, question), [question], "the first of the first gateway");
    let told = texts(&ledger.lost());
    assert!(told.len() == 1 && told[0].contains(r#""requestId":1"#), "{told:?}");
    assert_eq!(down(&mut ledger, question), [question.replacen("\"id\":1", "\"id\":2", 1)]);
    assert!(up(&mut ledger, &result("1", "{\"roots\":[]}")).is_empty(), "too late: it was put by another gateway");
    assert_eq!(up(&mut ledger, &result("2", "{\"roots\":[]}")), [result("1", "{\"roots\":[]}")]);
    // One that is withdrawn is withdrawn by its number here.
    down(&mut ledger, &question.replacen("\"id\":1", "\"id\":\"q\"", 1));
    let withdrawn = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q","reason":"x"}}"#;
    assert_eq!(down(&mut ledger, withdrawn), [withdrawn.replace("\"q\"", "3")]);
    assert!(ledger.lost().is_empty());
}

#[test]
fn an_end_of_a_listen_call_has_the_id_of_the_client() {
    let mut ledger = Ledger::default();
    let farewell = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}"#;
    assert_eq!(down(&mut ledger, farewell), [farewell]);
}

#[test]
fn batches_are_taken_apart_where_the_revision_has_them() {
    let batch = r#"[{"jsonrpc":"2.0","id":7,"method":"tools/call"},{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]"#;
    let mut ledger = met();
    assert_eq!(up(&mut ledger, batch), [batch], "it is refused as a whole");
    assert!(ledger.lost().is_empty());
    let mut ledger = Ledger::default();
    up(&mut ledger, HELLO);
    down(&mut ledger, &result("\"h\"", &WELCOME.replace("2025-11-25", "2025-03-26")));
    down(&mut ledger, r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#);
    let told = up(&mut ledger, batch);
    assert_eq!(
        told,
        [
            result("9", "{}"),
            r#"[{"jsonrpc":"2.0","id":7,"method":"tools/call"},{"jsonrpc":"2.0","method":"x"}]"#.to_owned()
        ]
    );
    let answers = format!("[{}]", result("7", "{}"));
    assert_eq!(down(&mut ledger, &answers), [answers.as_str()]);
    assert!(ledger.lost().is_empty());
}

#[test]
fn what_is_kept_is_bounded() {
    let mut ledger = met();
    for id in 0..OPEN_MAX {
        assert!(ledger.has_room());
        up(&mut ledger, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#));
    }
    assert!(!ledger.has_room());
    down(&mut ledger, &result("0", "{}"));
    assert!(ledger.has_room());
    for id in 0..=QUESTIONS_MAX {
        down(&mut ledger, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#));
    }
    assert_eq!(ledger.questions.len(), QUESTIONS_MAX);
    assert!(up(&mut ledger, &result("1", "{}")).is_empty(), "the oldest");
    // An id that comes twice is refused once and answered once.
    let mut ledger = met();
    for _ in 0..2 {
        up(&mut ledger, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
    }
    down(&mut ledger, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"twice"}}"#);
    assert_eq!(ledger.lost().len(), 1);
}

#[test]
fn without_a_gateway_each_request_is_refused_and_what_it_was_told_holds() {
    let mut ledger = met();
    let refused = texts(&ledger.refuse(&r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#.into(), "gone"));
    assert!(
        refused.len() == 1 && refused[0].contains("gone") && refused[0].contains("\"retriable\":true"),
        "{refused:?}"
    );
    assert!(ledger.refuse(&INITIALIZED.into(), "gone").is_empty());
    assert!(ledger.refuse(&result("1", "{}").into(), "gone").is_empty());
    let head = br#"{"jsonrpc":"2.0","id":"x","result":{"content":"#;
    up(&mut ledger, r#"{"jsonrpc":"2.0","id":"x","method":"tools/call"}"#);
    let untaken = texts(&ledger.untaken(head, "too large"));
    assert!(
        untaken.len() == 1 && untaken[0].contains("\"id\":\"x\"") && untaken[0].contains("too large"),
        "{untaken:?}"
    );
    assert!(ledger.lost().is_empty());
}

#[test]
fn a_client_may_choose_ids_like_those_of_the_bridge() {
    let mut ledger = met();
    let id = format!("{OWN}7\"");
    up(&mut ledger, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#));
    let answer = result(&id, "{}");
    assert_eq!(down(&mut ledger, &answer), [&answer[..]]);
    assert!(down(&mut ledger, &answer).is_empty(), "what nobody of the client has asked is the bridge's");
}
