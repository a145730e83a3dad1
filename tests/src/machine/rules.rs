//! What the faults have scripted upstreams do.

use std::time::Duration;

use crate::machine::fault::{Kind, MESSAGE_MAX_MIB};
use crate::script::{Act, Quoting, Rule};
use crate::upstream::Way;

/// The answer that a call would have had.
const GOOD: &str = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"$NONCE\"}]}}";
/// An answer that must reach nobody, under an id to be filled in.
const FOREIGN: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"nonce-foreign-0 \"}]}}";
const BOTH: &str = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{},\"error\":{\"code\":1,\"message\":\"both\"}}";
/// An answer that one reader takes for its own, and another one for somebody's.
const DOUBLED: &str = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[]},\
    \"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"nonce-foreign-1 \"}]}}";
/// How deep a deep answer is, and how wide a wide one.
const DEPTH: usize = 20_000;
const WIDTH: usize = 500_000;

/// What an upstream does that has this fault; `late` is when a late answer comes.
pub(super) fn rules(kind: Kind, way: Way, late: Duration) -> Vec<Rule> {
    let echo = |acts: Vec<Act>| vec![Rule::on_tool("echo", acts)];
    // What loses its answer has run all the same: whoever sends it again is found out.
    let ran = |acts: &[Act]| echo([&[Act::Run], acts].concat());
    let few = |acts: Vec<Act>, times: usize| vec![Rule { times, ..Rule::on_tool("echo", acts) }];
    let foreign = |id: &str| FOREIGN.replace('@', id);
    let stream = |frames: &[&str]| {
        let events: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
        Act::status(200, "text/event-stream", &events)
    };
    // On a pipe the strangers come first and then the ordinary answer; in the stream of one answer all of it is one.
    let strangers = |id: &str| match way {
        Way::Stdio | Way::Unix | Way::Tcp => echo(vec![Act::Write(format!("{}\n", foreign(id)))]),
        Way::Sse => echo(vec![Act::Write(format!("event: message\ndata: {}\n\n", foreign(id)))]),
        _ => ran(&[stream(&[&foreign(id), GOOD])]),
    };
    match kind {
        Kind::Exit => ran(&[Act::Exit(42)]),
        Kind::CrashLoop => [ran(&[Act::Exit(3)]), vec![Rule::on("*", vec![Act::Exit(3)])]].concat(),
        Kind::HalfThenExit => ran(&[Act::Write("{\"jsonrpc\":\"2.0\",\"id\":".into()), Act::Exit(0)]),
        Kind::SlowStart => {
            ["initialize", "server/discover"].map(|method| Rule::on(method, vec![Act::Delay(1_500)])).to_vec()
        }
        Kind::Hang => ran(&[Act::Hang]),
        Kind::Late => echo(vec![Act::Late(u64::try_from(late.as_millis()).expect("it is short"))]),
        Kind::Garbage => echo(vec![Act::Write("[INFO] {not json}\n\n\r\n   \nready\n".repeat(50))]),
        Kind::GluedText => ran(&[Act::Frame(format!("Loading...{GOOD}"))]),
        Kind::HugeLine => few(vec![Act::WriteLong(MESSAGE_MAX_MIB << 21)], 1),
        Kind::Flood => few(vec![Act::Flood(5_000)], 3),
        Kind::StderrFlood => few(vec![Act::Stderr(100_000)], 1),
        Kind::Twice if way != Way::Stdio => ran(&[stream(&[GOOD, GOOD])]),
        Kind::Twice => ran(&[Act::Frame(format!("{GOOD}\n{GOOD}"))]),
        Kind::UnknownIds => strangers("987654321987"),
        Kind::IllTypedIds => strangers("\"$ID\""),
        Kind::Both => ran(&[Act::Frame(BOTH.into())]),
        Kind::Doubled => ran(&[Act::Frame(DOUBLED.into())]),
        Kind::Deep => {
            let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
            ran(&[Act::Frame(GOOD.replacen("{\"resultType\"", &format!("{{\"deep\":{deep},\"resultType\""), 1))])
        }
        Kind::Wide => {
            let wide = format!("[1{}]", ",1".repeat(WIDTH));
            let frame = GOOD.replacen("\"resultType\"", &format!("\"wide\":{wide},\"resultType\""), 1);
            few(vec![Act::Run, Act::Frame(frame)], 3)
        }
        Kind::NotText => echo(vec![Act::WriteHex("7b226a736f6e727063223a22322e30ff227d0a".into())]),
        Kind::Status(status) => ran(&[Act::status(status, "text/plain", "not now")]),
        Kind::WrongKind => ran(&[Act::status(200, "text/html", "<html>log in</html>")]),
        Kind::Quotes(how @ (Quoting::Status(500..) | Quoting::Error | Quoting::Exit)) => ran(&[Act::Quote(how)]),
        // A challenge says that the call did not run: it may be sent again.
        Kind::Quotes(how) => echo(vec![Act::Quote(how)]),
        Kind::Empty => ran(&[Act::status(200, "application/json", "")]),
        Kind::Cut => ran(&[Act::Cut]),
        Kind::Half => echo(vec![Act::Half]),
        _ => Vec::new(),
    }
}
