//! Lines and answers of every bad shape: what is refused, what is taken all the same, and that no other call feels it.

use super::{LEGACY, tool};
use crate::call::reply::{Failure, Outcome};
use crate::protocol::frame::message::Id;
use crate::upstream::tests::rig::{Rig, config, outcome};

/// How the one open call ends when these bytes come for it; `ID` stands for its number. The next call is served as any.
async fn ends_with(rig: &mut Rig, answer: impl Fn(&str) -> Vec<u8>) -> Outcome {
    let upstream = rig.upstream();
    let mut reply = upstream.call(tool("odd"));
    let (id, _, _) = rig.far.request().await;
    rig.far.write_raw(&answer(&text(&id))).await;
    let ended = outcome(&mut reply).await;
    let mut next = upstream.call(tool("next"));
    let (id, _, _) = rig.far.request().await;
    rig.far.result(&id, r#"{"next":1}"#).await;
    assert!(matches!(outcome(&mut next).await, Outcome::Complete(result) if result.raw() == r#"{"next":1}"#));
    assert!(!rig.pipe.is_closed());
    assert_eq!(rig.pipe.in_flight(), 0);
    ended
}

fn text(id: &Id) -> String {
    String::from_utf8_lossy(id.raw()).into_owned()
}

fn met() -> Rig {
    let rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    rig
}

/// The code and the words that the client reads.
fn refused(outcome: Outcome) -> String {
    match outcome {
        Outcome::Error(Failure::Refused(refusal)) => format!("{:?}: {}", refusal.reason, refusal.message),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_end_their_call_alone() {
    let mut rig = met();
    let broken: [&[u8]; 20] = [
        b"\xff",
        b"\xfe",
        b"\x80",
        b"\xbf",
        b"\xc0\xaf",
        b"\xc1\xbf",
        b"\xe0\x80\xaf",
        b"\xe0\x9f\xbf",
        b"\xf0\x80\x80\xaf",
        b"\xf0\x8f\xbf\xbf",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xed\xa0\x80\xed\xb0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xfc\x84\x80\x80\x80\x80",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"a\xc3(",
    ];
    for bytes in broken {
        let ended = ends_with(&mut rig, |id| {
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"x\":\"");
            [head.as_bytes(), bytes, b"\"}}\n"].concat()
        });
        let said = refused(ended.await);
        assert!(said.contains("BadAnswer") && said.contains("invalid UTF-8"), "{bytes:x?}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_stands_around_a_line_does_not_matter_and_what_stands_in_it_does() {
    let mut rig = met();
    for (before, after) in [("\u{feff}", "\n"), ("", "\r\n"), ("\n\r\n  \n", "\n"), ("  \t", " \t  \r\n")] {
        let ended = ends_with(&mut rig, |id| {
            format!("{before}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}{after}").into_bytes()
        });
        assert!(matches!(ended.await, Outcome::Complete(_)), "{before:?} {after:?}");
    }
    for (before, after) in [("", "\0\n"), ("", " trailing\n"), ("", "}\n")] {
        let ended = ends_with(&mut rig, |id| {
            format!("{before}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}{after}").into_bytes()
        });
        let said = refused(ended.await);
        assert!(said.contains("BadAnswer") && said.contains("JSON"), "{before:?} {after:?}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_limit_is_taken_and_one_byte_more_is_not() {
    let mut config = config();
    config.max_message = 4096;
    let max = config.max_message;
    let mut rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    for (length, end, fits) in [
        (max - 1, "\n", true),
        (max, "\n", true),
        (max, "\r\n", true),
        (max + 1, "\n", false),
        (max + 1, "\r\n", false),
    ] {
        let ended = ends_with(&mut rig, |id| {
            let frame = |fill: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"x\":\"{fill}\"}}}}");
            let fill = "x".repeat(length - frame("").len());
            format!("{}{end}", frame(&fill)).into_bytes()
        });
        match ended.await {
            Outcome::Complete(_) => assert!(fits, "{length} bytes"),
            other => assert!(!fits && refused(other).contains("more than 4096 bytes"), "{length} bytes"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_quite_json_rpc_are_told_apart() {
    let mut rig = met();
    let error = r#""error":{"code":-7,"message":"no"}"#;
    for (members, expected) in [
        (r#""jsonrpc":"2.0","result":{"a":1}"#, "complete"),
        // Whoever names a member that is not there means nothing by it.
        (r#""jsonrpc":"2.0","result":{"a":1},"error":null"#, "complete"),
        (&format!(r#""jsonrpc":"2.0","result":null,{error}"#), "error -7"),
        (&format!(r#""jsonrpc":"2.0",{error}"#), "error -7"),
        (&format!(r#""jsonrpc":"2.0","result":{{}},{error}"#), "and not both"),
        (r#""jsonrpc":"2.0""#, "either a result, or an error that is an object, and not both"),
        (r#""jsonrpc":"2.0","error":null"#, "either a result, or an error that is an object, and not both"),
        (r#""jsonrpc":"2.0","error":"no""#, "either a result, or an error that is an object, and not both"),
        (r#""jsonrpc":"2.0","result":null"#, "not an object"),
        (r#""jsonrpc":"2.0","result":[]"#, "not an object"),
        (r#""jsonrpc":"2.0","result":{},"result":{}"#, "stands twice"),
        (r#""result":{}"#, "`jsonrpc` must be"),
        (r#""jsonrpc":"1.0","result":{}"#, "`jsonrpc` must be"),
        (r#""jsonrpc":2.0,"result":{}"#, "`jsonrpc` must be"),
    ] {
        let ended = ends_with(&mut rig, |id| format!("{{\"id\":{id},{members}}}\n").into_bytes());
        let said = match ended.await {
            Outcome::Complete(_) => "complete".to_owned(),
            Outcome::Error(Failure::Upstream(error)) => format!("error {}", error.code().unwrap_or_default()),
            other => refused(other),
        };
        assert!(said.contains(expected), "{members}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_nobody_end_no_call() {
    let mut rig = met();
    let ended = ends_with(&mut rig, |id| {
        let mut text = String::new();
        for wrong in ["null", "\"x\"", "0", "-1", "987654321", "18446744073709551616", "1e0"] {
            text += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{wrong},\"result\":{{\"wrong\":1}}}}\n");
            text += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{wrong},\"error\":{{\"code\":1,\"message\":\"\"}}}}\n");
        }
        for wrong in [format!("\"{id}\""), format!("{id}.0"), format!("0{id}"), format!("{id}e0"), format!("[{id}]")] {
            text += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{wrong},\"result\":{{\"wrong\":1}}}}\n");
        }
        text += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"right\":1}}}}\n");
        text += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"twice\":1}}}}\n");
        text.into_bytes()
    });
    let Outcome::Complete(result) = ended.await else { panic!("the right one is taken") };
    assert_eq!(result.raw(), r#"{"right":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_framing_is_named_once_and_only_before_anything_was_understood() {
    for (text, named) in [
        ("Content-Length: 42\r\n\r\n{\"jsonrpc\":\"2.0\"}\n", Some("Content-Length")),
        ("content-length: 42\r\n\r\n", Some("Content-Length")),
        ("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1\n}\n", Some("spans several lines")),
        ("[\n  {}\n]\n", Some("spans several lines")),
        ("Listening…\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n{\n}\n", None),
        ("just words\n", None),
    ] {
        let mut rig = Rig::new(config());
        rig.far.write_raw(text.as_bytes()).await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let cause = rig.board.snapshot()[0].cause.clone();
        assert_eq!(cause.is_some(), named.is_some(), "{text:?}: {cause:?}");
        assert!(named.is_none_or(|named| cause.unwrap_or_default().full().contains(named)), "{text:?}");
        assert!(!rig.pipe.is_closed());
    }
}
