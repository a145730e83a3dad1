//! What every client is sent to do, and what it must have seen.

use serde_json::{Value, json};
use trunkline_tests::peers::Workplace;

type Check = Box<dyn Fn(&Value) -> bool + Send + Sync>;

/// Steps with a check each, and the tools that must be listed before them.
pub(crate) struct Errand {
    /// The tools that must be listed.
    pub(crate) until: Vec<String>,
    steps: Vec<(Value, Check)>,
}

impl Errand {
    /// An errand without steps yet.
    pub(crate) fn of(until: &[&str]) -> Self {
        Self { until: until.iter().map(|name| (*name).to_owned()).collect(), steps: Vec::new() }
    }

    /// Adds a step.
    pub(crate) fn step(mut self, ask: Value, check: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.steps.push((ask, Box::new(check)));
        self
    }

    /// Adds a plain call of a tool.
    pub(crate) fn call(
        self,
        name: &str,
        arguments: Value,
        check: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.step(json!({ "do": "call", "name": name, "arguments": arguments }), check)
    }

    /// Takes over the steps of another errand.
    fn and(mut self, other: Self) -> Self {
        self.until.extend(other.until);
        self.steps.extend(other.steps);
        self
    }

    /// The steps as the plan wants them.
    pub(crate) fn asks(&self) -> Vec<Value> {
        self.steps.iter().map(|(ask, _)| ask.clone()).collect()
    }

    /// A line for each step that was not seen as it should be.
    pub(crate) fn faults(&self, seen: &[Value]) -> Vec<String> {
        let nothing = Value::Null;
        let steps = self.steps.iter().enumerate();
        let pairs = steps.map(|(at, (ask, check))| (ask, check, seen.get(at).unwrap_or(&nothing)));
        pairs
            .filter(|(_, check, seen)| !check(seen))
            .map(|(ask, _, seen)| format!("asked {ask}\n  saw {seen}"))
            .collect()
    }
}

fn text(seen: &Value) -> &str {
    seen["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

fn holds(list: &Value, key: &str, wanted: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|item| item[key] == wanted))
}

/// Progress in order; the last notice may be lost, since one SDK drops what shares a chunk with the reply.
fn progressed(seen: &Value, steps: usize) -> bool {
    let seen: Vec<f64> = seen["progress"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let wanted: Vec<f64> = (1..=steps).map(|step| step as f64).collect();
    seen.len() + 1 >= steps && wanted.starts_with(&seen)
}

/// The reference server that has something of everything; `p` is put before its names.
pub(crate) fn everything(p: &str) -> Errand {
    let named = |name: &str| format!("{p}{name}");
    let long = named("trigger-long-running-operation");
    Errand::of(&[&named("echo"), &named("get-sum"), &long])
        .step(
            json!({ "do": "together", "steps": [
                { "do": "call", "name": named("echo"), "arguments": { "message": "größer ≠ kleiner 🚆" } },
                { "do": "call", "name": named("get-sum"), "arguments": { "a": 2, "b": 40 } },
                { "do": "call", "name": named("get-structured-content"), "arguments": { "location": "Chicago" } },
            ]}),
            |seen| {
                text(&seen["steps"][0]) == "Echo: größer ≠ kleiner 🚆"
                    && text(&seen["steps"][1]).contains("42")
                    && seen["steps"][2]["result"]["structuredContent"]["temperature"].is_number()
            },
        )
        .step(
            json!({ "do": "call", "name": long, "arguments": { "duration": 0.8, "steps": 4 }, "progress": true }),
            |seen| text(seen).contains("completed") && progressed(seen, 4),
        )
        .step(
            json!({ "do": "call", "name": long, "arguments": { "duration": 60, "steps": 300 }, "cancel": true }),
            |seen| seen["error"]["message"].as_str().is_some_and(|message| message.contains("no longer wanted")),
        )
        .call(&named("echo"), json!({ "message": "after the cancel" }), |seen| text(seen) == "Echo: after the cancel")
        .and(everything_else(p))
}

/// Its resources, prompts and completions.
fn everything_else(p: &str) -> Errand {
    let named = |name: &str| format!("{p}{name}");
    let (simple, completable) = (named("simple-prompt"), named("completable-prompt"));
    let prompt = json!({ "type": "ref/prompt", "name": completable });
    Errand::of(&[])
        .step(json!({ "do": "resources" }), |seen| {
            holds(&seen["result"]["resources"], "uri", "demo://resource/static/document/features.md")
        })
        .step(json!({ "do": "templates" }), |seen| {
            holds(&seen["result"]["resourceTemplates"], "uriTemplate", "demo://resource/dynamic/text/{resourceId}")
        })
        .step(json!({ "do": "prompts" }), move |seen| holds(&seen["result"]["prompts"], "name", &simple))
        .step(json!({ "do": "read", "uri": "demo://resource/static/document/features.md" }), |seen| {
            seen["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.contains("Feature"))
        })
        .step(json!({ "do": "read", "uri": "demo://resource/dynamic/text/7" }), |seen| {
            let text = seen["result"]["contents"][0]["text"].as_str();
            text.is_some_and(|text| text.starts_with("Resource 7"))
        })
        .step(json!({ "do": "prompt", "name": named("args-prompt"), "arguments": { "city": "Ulm" } }), |seen| {
            let text = seen["result"]["messages"][0]["content"]["text"].as_str();
            text.is_some_and(|text| text.contains("Ulm"))
        })
        .step(json!({ "do": "complete", "ref": prompt, "argument": { "name": "department", "value": "E" } }), |seen| {
            seen["result"]["completion"]["values"] == json!(["Engineering"])
        })
        .step(
            json!({ "do": "complete", "ref": prompt, "argument": { "name": "name", "value": "A" },
                    "context": { "arguments": { "department": "Engineering" } } }),
            |seen| seen["result"]["completion"]["values"] == json!(["Alice"]),
        )
        .step(
            json!({ "do": "complete", "argument": { "name": "resourceId", "value": "7" },
                    "ref": { "type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}" } }),
            |seen| seen["result"]["completion"]["values"] == json!(["7"]),
        )
}

/// Reads a folder, and fails politely at a file that is not there.
fn filesystem(p: &str, place: &Workplace) -> Errand {
    let files = place.files();
    let list = format!("{p}list_directory");
    Errand::of(&[&list]).call(&list, json!({ "path": files }), |seen| text(seen) == "[FILE] hello.txt").call(
        &format!("{p}read_text_file"),
        json!({ "path": files.join("missing.txt") }),
        |seen| seen["result"]["isError"] == true,
    )
}

/// Reads a graph, as a tool and as a resource.
fn memory(p: &str) -> Errand {
    let read = format!("{p}read_graph");
    Errand::of(&[&read])
        .call(&read, json!({}), |seen| seen["result"]["structuredContent"]["entities"].is_array())
        .step(json!({ "do": "resources" }), |seen| {
            holds(&seen["result"]["resources"], "uri", "memory://knowledge-graph")
        })
}

/// Writes into the graph: not for two clients at once, since that upstream would lose one of them.
fn memory_written(p: &str) -> Errand {
    let entity = json!({ "name": "Ada", "entityType": "person", "observations": ["counts"] });
    Errand::of(&[])
        .call(&format!("{p}create_entities"), json!({ "entities": [entity] }), |seen| text(seen).contains("Ada"))
        .call(&format!("{p}read_graph"), json!({}), |seen| text(seen).contains("counts"))
        .step(json!({ "do": "read", "uri": "memory://knowledge-graph" }), |seen| {
            let text = seen["result"]["contents"][0]["text"].as_str();
            text.is_some_and(|text| text.contains("Ada"))
        })
}

fn time(p: &str) -> Errand {
    let now = format!("{p}get_current_time");
    Errand::of(&[&now]).call(&now, json!({ "timezone": "Europe/Berlin" }), |seen| {
        text(seen).contains("Europe/Berlin") && text(seen).contains("datetime")
    })
}

fn git(p: &str, place: &Workplace) -> Errand {
    let status = format!("{p}git_status");
    let arguments = json!({ "repo_path": place.repository() });
    Errand::of(&[&status]).call(&status, arguments, |seen| text(seen).contains("untracked.txt"))
}

/// What can be asked of all five at the same time by many clients.
pub(crate) fn reading_only(place: &Workplace) -> Errand {
    everything("everything__")
        .and(filesystem("filesystem__", place))
        .and(memory("memory__"))
        .and(time("time__"))
        .and(git("git__", place))
        .call("everything__no-such-tool", json!({}), |seen| seen["error"]["code"] == -32602)
}

/// The whole errand, through the gateway.
pub(crate) fn five_upstreams(place: &Workplace) -> Errand {
    reading_only(place).and(memory_written("memory__"))
}

/// The same, upstream by upstream, under their own names.
pub(crate) fn directly(place: &Workplace) -> [(&'static str, Errand); 5] {
    [
        ("everything", everything("")),
        ("filesystem", filesystem("", place)),
        ("memory", memory("").and(memory_written(""))),
        ("time", time("")),
        ("git", git("", place)),
    ]
}
