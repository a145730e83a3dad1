//! What everything costs that a peer can grow: its size, depth or count is doubled, and the steps are counted, not the time.

use bytes::Bytes;
use trunkline::call::ListenFilter;
use trunkline::fuzzing::config::{self, Format};
use trunkline::fuzzing::downstream;
use trunkline::fuzzing::router;
use trunkline::fuzzing::steps;
use trunkline::fuzzing::upstream;
use trunkline::protocol::capabilities::beyond::Declared;
use trunkline::protocol::frame::Method;
use trunkline::protocol::frame::message::Frame;
use trunkline::protocol::framing::lines::Lines;
use trunkline::protocol::framing::sse::Decoder;
use trunkline::protocol::http::param_headers::ParamHeaders;
use trunkline::protocol::meta;
use trunkline::protocol::payload::input;
use trunkline::protocol::revision::Revision;
use trunkline::protocol::translate;
use trunkline::protocol::value::Object;
use trunkline::protocol::value::canonical;
use trunkline::router::config::Strategy;

/// One thing that grows.
#[derive(Clone, Copy)]
pub struct Growth {
    /// Its name.
    pub name: &'static str,
    /// How large it is before it is doubled.
    pub size: usize,
    /// Makes it so large; what is returned is measured.
    pub work: fn(usize) -> Work,
}

/// What is measured.
pub type Work = Box<dyn FnOnce()>;

impl Growth {
    /// The steps at its size and at twice that; `None` where none are counted.
    #[must_use]
    pub fn steps(&self) -> Option<(u64, u64)> {
        let of = |size| steps::of((self.work)(size));
        Some((of(self.size)?, of(2 * self.size)?))
    }
}

/// Everything that grows.
#[must_use]
pub fn all() -> Vec<Growth> {
    [FRAMES, VALUES, PAYLOADS, ROUTES, FILES]
        .concat()
        .into_iter()
        .map(|(name, size, work)| Growth { name, size, work })
        .collect()
}

type Row = (&'static str, usize, fn(usize) -> Work);

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn object(text: String) -> Object {
    Object::parse(text.into()).expect("it is an object")
}

fn framed(params: String) -> Work {
    let text = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#));
    Box::new(move || _ = Frame::parse(&text).expect("it is a frame"))
}

fn in_pieces(text: String, take: fn(&[&[u8]])) -> Work {
    Box::new(move || take(&text.as_bytes().chunks(512).collect::<Vec<_>>()))
}

fn split(chunks: &[&[u8]]) {
    let mut lines = Lines::new(1 << 20, Vec::new());
    for chunk in chunks {
        steps::add(chunk.len());
        lines.buffer().extend_from_slice(chunk);
        while lines.next_line().is_some() {}
    }
}

fn decode(chunks: &[&[u8]]) {
    let mut decoder = Decoder::new(1 << 20, Vec::new());
    for chunk in chunks {
        steps::add(chunk.len());
        decoder.push(chunk);
        while decoder.next_event().is_some() {}
    }
}

/// An answer that begins with this part, and goes on with so many others.
fn joined(first: String, count: usize, part: &'static str) -> Work {
    let event = |name: &'static str, data: Bytes| (Bytes::from_static(name.as_bytes()), data);
    let mut events = vec![event("result", first.into())];
    events.extend((0..count).map(|_| event("result", Bytes::from_static(part.as_bytes()))));
    events.push(event("complete", Bytes::from_static(b"{}")));
    Box::new(move || _ = upstream::joined(events, 1 << 20).expect("it is whole"))
}

const FRAMES: &[Row] = &[
    ("members of params", 2_000, |n| framed(format!("{{{}}}", list(n, |at| format!("\"k{at}\":[{at}]"))))),
    ("depth of params", 60, |n| framed(format!("{{\"arguments\":{}{}}}", "[".repeat(n), "]".repeat(n)))),
    ("bytes of a text", 50_000, |n| framed(format!("{{\"arguments\":\"{}\"}}", "\\n".repeat(n)))),
    ("frames of a batch", 1_000, |n| {
        let text = Bytes::from(format!(
            "[{}]",
            list(n, |at| format!("{{\"jsonrpc\":\"2.0\",\"id\":{at},\"method\":\"ping\"}}"))
        ));
        Box::new(move || _ = downstream::batch(&text))
    }),
    ("lines", 2_000, |n| in_pieces("{\"a\":1}\n".repeat(n), split)),
    ("a line in pieces", 100_000, |n| in_pieces("x".repeat(n), split)),
    ("events", 2_000, |n| in_pieces("data: {}\nid: 7\n\n".repeat(n), decode)),
    ("lines of an event", 2_000, |n| in_pieces("data: {}\nevent: e\n".repeat(n) + "\n", decode)),
    ("a cut answer", 20_000, |n| {
        let text = format!("{{\"jsonrpc\":\"2.0\",\"result\":[{}", "7,".repeat(n));
        Box::new(move || _ = upstream::answered_id(text.as_bytes(), text.as_bytes()))
    }),
    ("parts of an answer", 500, |n| {
        joined(format!("{{\"content\":[1],\"structuredContent\":\"{}\"}}", "x".repeat(50 * n)), n, "[1]")
    }),
    ("what parts say besides", 500, |n| {
        joined(format!("{{\"isError\":true,\"x\":\"{}\"}}", "x".repeat(50 * n)), n, "{\"y\":1}")
    }),
    ("a bare answer", 2_000, |n| {
        let text = Bytes::from(format!("{{\"id\":7,\"content\":[{}]}}", list(n, |_| "{\"type\":\"text\"}".to_owned())));
        Box::new(move || _ = upstream::bare(&text))
    }),
    ("chunks of a result", 500, |n| {
        let chunk = |at| object(format!("{{\"streamId\":\"s{}\",\"chunk\":{{\"content\":\"x{at}\"}}}}", at % 3));
        let all: Vec<_> = (0..n).map(chunk).collect();
        Box::new(move || _ = upstream::chunks(&all))
    }),
];

const VALUES: &[Row] = &[
    ("members in one form", 2_000, |n| {
        let text = format!("{{{}}}", list(n, |at| format!("\"k{:06}\":{{\"b\":1,\"a\":2}}", n - at)));
        Box::new(move || _ = canonical::digest(text.as_bytes()))
    }),
    ("depth in one form", 50, |n| {
        let text = format!("{}\"{}\"{}", "{\"b\":0,\"a\":".repeat(n), "x".repeat(1_000 * n), "}".repeat(n));
        Box::new(move || _ = canonical::digest(text.as_bytes()))
    }),
    ("members of _meta", 1_000, |n| {
        let raw = Bytes::from(format!("{{{}}}", list(n, |at| format!("\"x/{at}\":{at}"))));
        Box::new(move || {
            let read = meta::Meta::parse(&raw).expect("it is an object");
            _ = meta::write(None, None, &read.rest);
        })
    }),
    ("annotations of a schema", 60, |n| {
        let schema = annotated(n);
        Box::new(move || _ = ParamHeaders::compile(schema.as_bytes()))
    }),
    ("arguments beside annotated ones", 2_000, |n| {
        let compiled = ParamHeaders::compile(annotated(64).as_bytes()).expect("it is sound").expect("it has some");
        let text = format!("{{{}}}", list(n, |at| format!("\"k{at}\":\"v\"")));
        Box::new(move || _ = compiled.check(Some(text.as_bytes()), Some(&compiled.make(Some(text.as_bytes())))))
    }),
    ("declared extensions", 500, |n| {
        let raw = format!("{{\"extensions\":{{{}}}}}", list(n, |at| format!("\"a/{at}\":{{}}")));
        Box::new(move || _ = Declared::parse(raw.as_bytes(), Revision::NEWEST_MODERN))
    }),
];

fn annotated(count: usize) -> String {
    let one = |at| format!("\"a{at}\":{{\"type\":\"string\",\"x-mcp-header\":\"H{at}\"}}");
    format!("{{\"properties\":{{{}}}}}", list(count, one))
}

/// The result of a tool in the words of the oldest revision.
fn told(result: String) -> Work {
    let (result, from, to) = (object(result), Revision::V2026_07_28, Revision::V2024_11_05);
    Box::new(move || {
        let told = translate::result(&Method::ToolsCall, &result, from, to);
        let result = told.as_ref().unwrap_or(&result);
        translate::write_result(&Method::ToolsCall, result, (from, to), b"{}", &mut Vec::new());
    })
}

const PAYLOADS: &[Row] = &[
    ("blocks of a result", 500, |n| {
        told(format!(
            "{{\"content\":[{}]}}",
            list(n, |_| "{\"type\":\"audio\",\"data\":\"x\",\"_meta\":{}}".to_owned())
        ))
    }),
    ("texts beside a structured result", 400, |n| {
        let texts = list(n, |at| format!("{{\"type\":\"text\",\"text\":\"{at}\"}}"));
        told(format!("{{\"structuredContent\":\"{}\",\"content\":[{texts}]}}", "x".repeat(n * 20)))
    }),
    ("choices of a form", 300, |n| {
        let choices = list(n, |at| format!("{{\"const\":\"{at}\",\"title\":\"t\"}}"));
        let form =
            format!("{{\"message\":\"m\",\"requestedSchema\":{{\"properties\":{{\"a\":{{\"oneOf\":[{choices}]}}}}}}}}");
        let form = object(form);
        Box::new(move || {
            _ = translate::question(&Method::Elicitation, &form, Revision::V2025_11_25, Revision::V2025_06_18)
        })
    }),
    ("messages of a question", 300, |n| {
        let message = |_| "{\"role\":\"user\",\"content\":{\"type\":\"audio\",\"data\":\"x\"}}".to_owned();
        let params = object(format!("{{\"messages\":[{}]}}", list(n, message)));
        Box::new(move || {
            _ = translate::question(&Method::Sampling, &params, Revision::V2025_11_25, Revision::V2024_11_05)
        })
    }),
    ("questions of a result", 30, |n| {
        let question = |at| format!("\"q{at}\":{{\"method\":\"elicitation/create\",\"params\":{{\"message\":\"m\"}}}}");
        let result =
            object(format!("{{\"resultType\":\"input_required\",\"inputRequests\":{{{}}}}}", list(n, question)));
        Box::new(move || {
            _ = input::questions(&result);
            _ = downstream::label("up", &Method::Elicitation, &result);
        })
    }),
];

const ROUTES: &[Row] = &[
    ("names of an upstream", 500, |n| named(n, |at| format!("tool{at}"))),
    ("names that conflict", 500, |n| named(n, |at| format!("t{at:012b}").replace('0', ".").replace('1', "!"))),
    ("long names", 500, |n| {
        let (one, other) = ("n".repeat(n * 10), "m".repeat(n * 10));
        Box::new(move || _ = router::names(Strategy::Prefix, 50, &[("a", "a", vec![&one, &other])]))
    }),
    ("links of a result", 500, |n| {
        let link = |at| format!("{{\"type\":\"resource_link\",\"uri\":\"a:{at}\"}}");
        let result = object(format!("{{\"content\":[{}]}}", list(n, link)));
        Box::new(move || _ = router::publish("b", &["a:1", "a:{x}"], &Method::ToolsCall, result))
    }),
    ("a URI", 2_000, |n| {
        let (template, uri) = ("{+a}x".repeat(20), "x".repeat(n));
        Box::new(move || _ = router::matches(&template, &uri))
    }),
    ("parts of a template", 30, |n| {
        let (template, uri) = ("{+a}".repeat(n), "x".repeat(2_000));
        Box::new(move || _ = router::matches(&template, &uri))
    }),
    ("resources that are listened to", 500, |n| {
        let params = object(format!(
            "{{\"notifications\":{{\"resourceSubscriptions\":[{}]}}}}",
            list(n, |at| format!("\"a:{at}\""))
        ));
        Box::new(move || _ = ListenFilter::parse(&params))
    }),
    ("changes of resources", 300, |n| {
        let uris: Vec<_> = (0..n).map(|at| format!("file:///a/{at}")).collect();
        let parts: Vec<_> = uris.iter().map(|uri| format!("{uri}/part")).collect();
        Box::new(move || {
            let (uris, parts): (Vec<&str>, Vec<&str>) =
                (uris.iter().map(String::as_str).collect(), parts.iter().map(String::as_str).collect());
            upstream::told(&uris, &parts);
        })
    }),
    ("subscriptions of a handshake upstream", 500, |n| Box::new(move || upstream::subscriptions(n))),
    ("subscriptions of a stateless upstream", 1_000, |n| Box::new(move || upstream::streams(n))),
    ("a path into an object", 1_000, |n| {
        let text = format!("{{\"a\":{{{},\"b\":1}}}}", list(n, |at| format!("\"k{at}\":{at}")));
        Box::new(move || _ = router::find(text.as_bytes(), &["a", "b"]))
    }),
];

fn named(count: usize, name: impl Fn(usize) -> String) -> Work {
    let names: Vec<_> = (0..count).map(name).collect();
    Box::new(move || {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        _ = router::names(Strategy::Prefix, 24, &[("a", "a", names.clone()), ("b", "b", names)]);
    })
}

fn file(text: String, format: Format) -> Work {
    Box::new(move || _ = config::faults(&text, format))
}

const FILES: &[Row] = &[
    ("depth of a host's file", 20_000, |n| {
        file(format!("{{\"mcpServers\":{}{}}}", "[".repeat(n), "]".repeat(n)), Format::Json)
    }),
    ("a host's file of one line", 40_000, |n| {
        file(format!("{{\"mcpServers\":{{\"a\":{{\"x\":\"{}\",}},1}}}}", "x".repeat(n)), Format::Json)
    }),
    ("comments of a host's file", 5_000, |n| {
        file(format!("{{{}\"mcpServers\":{{}}}}", "/* x */ // y\n".repeat(n)), Format::Json)
    }),
    ("values of one key of a host's file", 800, |n| {
        file(
            format!(
                "{{\"mcpServers\":{{\"a\":{{\"command\":\"x\",\"args\":[{}]}}}}}}",
                list(n, |at| format!("\"{at}\""))
            ),
            Format::Json,
        )
    }),
    // As in JSON: of the servers there are so few that each may be looked for among all.
    ("values of one key of a host's file in YAML", 800, |n| {
        let values: String = (0..n).map(|at| format!("    - v{at}\n")).collect();
        file(format!("extensions:\n  a:\n    type: stdio\n    cmd: x\n    args:\n{values}"), Format::Yaml)
    }),
    ("depth of a host's file in YAML", 20_000, |n| file(format!("extensions: {}", "- ".repeat(n)), Format::Yaml)),
    ("references in a text", 2_000, |n| {
        let text = "${A:-b} $$ x ".repeat(n);
        Box::new(move || _ = config::expanded(&text))
    }),
    ("depth of our own file", 20_000, |n| file(format!("a = {}{}", "[".repeat(n), "]".repeat(n)), Format::Toml)),
    ("a text of our own file", 40_000, |n| file(format!("[server]\nlisten = \"{}\"\n", "x".repeat(n)), Format::Toml)),
    ("what an upstream says to people", 20_000, |n| {
        let text = "\u{1b}[31m".repeat(n);
        Box::new(move || _ = upstream::printable(&text))
    }),
];
