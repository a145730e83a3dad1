//! What the gateway sends on is read by everybody as the gateway has judged it, over generated requests: by models of readers, and
//! by Python's, Node's and Go's, each in one process.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use serde_json::Value;
use trunkline::protocol::frame::message;
use trunkline::protocol::frame::message::Frame;
use trunkline::protocol::json;
use trunkline::protocol::json::Members;
use trunkline::protocol::meta;
use trunkline::protocol::meta::Meta;
use trunkline::protocol::value::Edit;
use trunkline::protocol::value::Key;
use trunkline::protocol::value::spelling::RELATED_TASK;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::seed::Seed;

/// So many requests are generated.
const REQUESTS: usize = 20_000;
/// At least so many of them are taken: the others are refused, since they say two things.
const TAKEN_MIN: usize = 4_000;
/// What the gateway puts in the place of a name, a URI and a task id, as it does for each upstream.
const OWN: &[u8] = b"\"own\"";
const TOKEN: &[u8] = b"77";

/// What the gateway acts on, below `params`.
const PATHS: [&[&str]; 16] = [
    &["name"],
    &["uri"],
    &["taskId"],
    &["cursor"],
    &["level"],
    &["requestState"],
    &["task"],
    &["ref", "type"],
    &["ref", "name"],
    &["ref", "uri"],
    &["task", "taskId"],
    &["_meta", "progressToken"],
    &["_meta", RELATED_TASK, "taskId"],
    &["_meta", "io.modelcontextprotocol/protocolVersion"],
    &["_meta", "io.modelcontextprotocol/clientCapabilities"],
    &["_meta", "io.modelcontextprotocol/logLevel"],
];

const PYTHON: &str = r#"
import json, sys
paths = json.loads(sys.argv[1])
for line in sys.stdin.buffer:
    told = []
    for path in paths:
        value = json.loads(line)["params"]
        for key in path:
            value = value.get(key, "absent") if isinstance(value, dict) else "absent"
        told.append("nested" if isinstance(value, (dict, list)) else value)
    print(json.dumps(told))
"#;

const NODE: &str = r#"
const paths = JSON.parse(process.argv[2]);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
for (const line of require("fs").readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const told = paths.map((path) => {
    let value = JSON.parse(line).params;
    for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : "absent";
    return typeof value === "object" && value !== null ? "nested" : value;
  });
  console.log(JSON.stringify(told));
}
"#;

/// Into structs, as programs in Go do it: a field takes every key that folds into its name.
const GO: &str = r#"
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

type Raw = json.RawMessage
type Frame struct{ Params Params `json:"params"` }
type Params struct {
	Name         Raw `json:"name"`
	URI          Raw `json:"uri"`
	TaskID       Raw `json:"taskId"`
	Cursor       Raw `json:"cursor"`
	Level        Raw `json:"level"`
	RequestState Raw `json:"requestState"`
	Ref          Raw `json:"ref"`
	Task         Raw `json:"task"`
	Meta         Raw `json:"_meta"`
}
type Ref struct {
	Type Raw `json:"type"`
	Name Raw `json:"name"`
	URI  Raw `json:"uri"`
}
type Task struct{ TaskID Raw `json:"taskId"` }
type Meta struct {
	Token   Raw `json:"progressToken"`
	Related Raw `json:"io.modelcontextprotocol/related-task"`
	Version Raw `json:"io.modelcontextprotocol/protocolVersion"`
	Can     Raw `json:"io.modelcontextprotocol/clientCapabilities"`
	Level   Raw `json:"io.modelcontextprotocol/logLevel"`
}

func into(raw Raw, to any) {
	if bytes.HasPrefix(raw, []byte("{")) {
		if err := json.Unmarshal(raw, to); err != nil {
			panic(err)
		}
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var frame Frame
		if err := json.Unmarshal(lines.Bytes(), &frame); err != nil {
			panic(err)
		}
		p := frame.Params
		var ref Ref
		var task, related Task
		var meta Meta
		into(p.Ref, &ref)
		into(p.Task, &task)
		into(p.Meta, &meta)
		into(meta.Related, &related)
		told := []Raw{p.Name, p.URI, p.TaskID, p.Cursor, p.Level, p.RequestState, p.Task, ref.Type, ref.Name,
			ref.URI, task.TaskID, meta.Token, related.TaskID, meta.Version, meta.Can, meta.Level}
		for at, raw := range told {
			if raw == nil {
				told[at] = Raw(`"absent"`)
			} else if raw[0] == '{' || raw[0] == '[' {
				told[at] = Raw(`"nested"`)
			}
		}
		out, _ := json.Marshal(told)
		fmt.Println(string(out))
	}
}
"#;

/// One key, mostly as the protocol spells it.
fn key(seed: &mut Seed) -> String {
    let known: Vec<_> =
        PATHS.iter().flat_map(|path| path.iter().copied()).chain(["_meta", "ref", "x", "arguments"]).collect();
    let name = *seed.pick(&known);
    let at = seed.below(name.len());
    let (before, letter, after) = (&name[..at], &name[at..=at], &name[at + 1..]);
    match seed.below(24) {
        0 => name.to_uppercase(),
        1 => format!("{before}{}{after}", letter.to_uppercase()),
        2 => format!("{name}\\u0000"),
        3 => name.replacen('s', "\u{17f}", 1),
        4 => name.replacen('k', "\\u212a", 1),
        5..8 => format!("{before}\\u{:04x}{after}", letter.as_bytes()[0]),
        8 => format!("{name}\\ud800"),
        _ => name.to_owned(),
    }
}

fn object(seed: &mut Seed, depth: u32) -> String {
    let members: Vec<_> = (0..seed.below(4))
        .map(|_| {
            let value = match seed.below(6) {
                0 | 1 if depth > 0 => object(seed, depth - 1),
                2 => "null".to_owned(),
                3 => "7".to_owned(),
                4 => "\"\\u0061b\"".to_owned(),
                _ => format!("\"{}\"", seed.below(100)),
            };
            format!("\"{}\":{value}", key(seed))
        })
        .collect();
    format!("{{{}}}", members.join(", "))
}

/// A raw value as the readers tell it.
fn told(raw: Option<&[u8]>) -> Value {
    match raw {
        None => "absent".into(),
        Some([b'{' | b'[', ..]) => "nested".into(),
        Some(raw) => serde_json::from_slice(raw).expect("what was parsed is JSON"),
    }
}

/// The frame that an upstream is sent for a request, and what the gateway takes each path to be, raw; `None` where it refuses.
fn sent(params: &str) -> Option<(Vec<u8>, Vec<Option<Bytes>>)> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let Ok(Frame::Request { method, params, .. }) = Frame::parse(&Bytes::from(text)) else { return None };
    if params.misspelled().is_some() {
        return None;
    }
    let rest = params.share(Key::Meta).map_or(Ok(Meta::default()), |raw| Meta::parse(&raw)).ok()?.rest;
    let written = meta::write(None, Some(TOKEN), &rest);
    let mut edits = vec![(Key::Meta, Edit::Set(&written))];
    let own = [Key::Name, Key::Uri, Key::TaskId].into_iter().filter(|key| params.get(*key).is_some());
    edits.extend(own.map(|key| (key, Edit::Set(OWN))));
    let mut out = Vec::new();
    message::open_request(7, &method, &mut out);
    params.write(&edits, &mut out);
    message::close(&mut out);
    let related = meta::related(&rest).map(|(task, _)| task);
    let inside = |key: Key, name: &str| json::get(params.get(key)?, name);
    let judged = PATHS.map(|path| match path {
        ["name"] => params.get(Key::Name).map(|_| OWN),
        ["uri"] => params.get(Key::Uri).map(|_| OWN),
        ["taskId"] => params.get(Key::TaskId).map(|_| OWN),
        ["cursor"] => params.get(Key::Cursor),
        ["level"] => params.get(Key::Level),
        ["requestState"] => params.get(Key::RequestState),
        ["task"] => params.get(Key::Task),
        ["ref", name] => inside(Key::Reference, name),
        ["task", name] => inside(Key::Task, name),
        ["_meta", "progressToken"] => Some(TOKEN),
        ["_meta", key, name] if *key == RELATED_TASK => related.as_ref().and_then(|task| json::get(task, name)),
        // These are the client's own, and none of the upstream's business.
        _ => None,
    });
    Some((message::one_line(out), judged.map(|raw| raw.map(Bytes::copy_from_slice)).into()))
}

/// What is sent of so many generated requests, and what was judged of it.
fn all_sent() -> Vec<(Vec<u8>, Vec<Option<Bytes>>)> {
    let (_, mut seed) = Seed::of_run("readers");
    let all: Vec<_> = (0..REQUESTS).filter_map(|_| sent(&object(&mut seed, 3))).collect();
    assert!(all.len() >= TAKEN_MIN, "{}", all.len());
    all
}

/// A JSON value as a reader without opinions has it: all members, in order, keys decoded.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Object(Vec<(String, Seen)>),
    Other(Bytes),
}

impl Seen {
    fn of(raw: &[u8]) -> Seen {
        if raw.first() != Some(&b'{') {
            return Seen::Other(Bytes::copy_from_slice(raw));
        }
        let members = Members::of(raw).expect("it is an object").map(|member| {
            let member = member.expect("what was parsed is JSON");
            // Of no concern here: a key with half a character in it is nobody's key.
            let key = serde_json::from_slice(&raw[member.start..member.key_end]).unwrap_or_else(|_| "\u{fffd}".into());
            (key, Seen::of(&raw[member.value..member.end]))
        });
        Seen::Object(members.collect())
    }

    /// What a reader finds along a path.
    fn follow(&self, reader: Reader, path: &[&str]) -> Option<&Seen> {
        path.iter().try_fold(self, |at, key| match at {
            Seen::Object(members) => reader(members, key),
            Seen::Other(_) => None,
        })
    }
}

/// How some program finds a key.
type Reader = for<'a> fn(&'a [(String, Seen)], &str) -> Option<&'a Seen>;

/// Python's `json`, `JSON.parse` and most others: the last of equal keys.
fn last<'a>(members: &'a [(String, Seen)], key: &str) -> Option<&'a Seen> {
    members.iter().rev().find(|(seen, _)| seen == key).map(|(_, value)| value)
}

/// Streaming readers that stop at what they look for.
fn first<'a>(members: &'a [(String, Seen)], key: &str) -> Option<&'a Seen> {
    members.iter().find(|(seen, _)| seen == key).map(|(_, value)| value)
}

/// Go's `encoding/json` into a struct: every key that folds into the field's name, the last one wins.
fn folding<'a>(members: &'a [(String, Seen)], key: &str) -> Option<&'a Seen> {
    let fold = |text: &str| text.to_uppercase().to_lowercase();
    members.iter().rev().find(|(seen, _)| fold(seen) == fold(key)).map(|(_, value)| value)
}

/// Readers in C whose texts end at the first NUL.
fn ending<'a>(members: &'a [(String, Seen)], key: &str) -> Option<&'a Seen> {
    members.iter().find(|(seen, _)| seen.split('\0').next() == Some(key)).map(|(_, value)| value)
}

#[test]
fn what_was_judged_is_what_everybody_reads() {
    let readers: [(&str, Reader); 4] = [("last", last), ("first", first), ("folding", folding), ("ending", ending)];
    for (frame, judged) in all_sent() {
        let whole = Seen::of(&frame);
        for (name, reader) in readers {
            for (path, judged) in PATHS.iter().zip(&judged) {
                let seen = whole.follow(reader, &[&["params"], *path].concat());
                let judged = judged.as_deref().map(Seen::of);
                assert_eq!(seen, judged.as_ref(), "{name} reads {path:?} of {}", String::from_utf8_lossy(&frame));
            }
        }
    }
}

#[test]
fn what_says_one_thing_is_judged_and_what_says_two_is_refused() {
    let taken = ["{}", r#"{"taskId":"a","x":1}"#, r#"{"_meta":{"progressToken":1},"n\u0061me":"b"}"#];
    assert!(taken.iter().all(|params| sent(params).is_some()));
    let refused = [r#"{"taskId":"a","task\u0049d":"b"}"#, r#"{"ref":{"name":"a","Name":"b"}}"#, r#"{"Cursor":1}"#];
    assert!(refused.iter().all(|params| sent(params).is_none()));
    assert!(all_sent().len() < REQUESTS - TAKEN_MIN, "hardly any say two things");
}

/// What a program says of each frame.
fn read_by(command: &mut Command, frames: &Path) -> Vec<Value> {
    let input = std::fs::File::open(frames).expect("the frames were written");
    let output = command.stdin(input).stderr(Stdio::inherit()).output().expect("the program runs");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("it writes JSON");
    text.lines().map(|line| serde_json::from_str(line).expect("it writes JSON")).collect()
}

#[test]
fn other_programs_read_what_the_gateway_has_judged() {
    let all = all_sent();
    let folder = Scratch::new();
    let frames = folder.path().join("frames");
    let mut file = std::fs::File::create(&frames).expect("the folder is ours");
    for (frame, _) in &all {
        file.write_all(&[frame, &b"\n"[..]].concat()).expect("the folder is ours");
    }
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder is ours");
        path
    };
    let (python, node, go) = (write("read.py", PYTHON), write("read.js", NODE), write("read.go", GO));
    let paths = serde_json::to_string(&PATHS).expect("texts have a JSON form");
    let programs = [("python3", vec![], python), ("node", vec![], node), ("go", vec!["run"], go)];
    let mut readers = 0;
    for (name, first, program) in programs {
        let is_there = Command::new(name).arg(if name == "go" { "version" } else { "--version" }).output();
        if !is_there.is_ok_and(|said| said.status.success()) {
            let is_required = std::env::var_os("TRUNKLINE_REQUIRE_PEERS").is_some_and(|value| value == "1");
            assert!(name == "go" || !is_required, "{name} is not there");
            eprintln!("{name} is not there: its reader is skipped");
            continue;
        }
        readers += 1;
        let mut command = Command::new(name);
        command.args(first).arg(program).arg(&paths).env("GO111MODULE", "off");
        let seen = read_by(&mut command, &frames);
        assert_eq!(seen.len(), all.len(), "{name}");
        for (seen, (frame, judged)) in seen.iter().zip(&all) {
            let judged: Vec<_> = judged.iter().map(|raw| told(raw.as_deref())).collect();
            assert_eq!(seen, &Value::from(judged), "{name} reads {}", String::from_utf8_lossy(frame));
        }
    }
    eprintln!("{} frames, {readers} readers", all.len());
}
