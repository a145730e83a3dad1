//! A person with a client of its own, which does what the test says.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use trunkline_tests::conformance::Suite;
use trunkline_tests::within::within;

/// One of them.
pub(crate) struct Person {
    pub(crate) name: &'static str,
    /// How often each tool or prompt has answered it.
    pub(crate) answered: BTreeMap<String, usize>,
    /// How many pages it was sent to.
    pub(crate) pages: usize,
    words: usize,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

/// What a person has come by in all.
#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    /// All that its client and its browser were told.
    pub(crate) heard: String,
    /// What of it is for it alone: tokens, codes, states, cookies, sessions and pages.
    pub(crate) own: Vec<String>,
    /// The tokens among that which its client was given.
    pub(crate) tokens: Vec<String>,
    pub(crate) pages: usize,
    /// How often it logged in at the gateway.
    pub(crate) visits: usize,
    /// How often its client was told that other tools are there.
    pub(crate) changes: usize,
}

impl Person {
    /// With a client on one of the SDKs.
    pub(crate) fn with(name: &'static str, sdk: &str, suite: &Suite, url: &str) -> Person {
        let (program, arguments) = match sdk {
            "python" => (&suite.python, vec![suite.python_script("person.py")]),
            sdk => (&suite.node, vec![suite.script("person.mjs"), sdk.to_owned()]),
        };
        let mut command = Command::new(program);
        command.args(arguments).args([url, name]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let lines = BufReader::new(stdout).lines();
        Person { name, answered: BTreeMap::new(), pages: 0, words: 0, stdin, lines, _child: child }
    }

    /// What came of a step, or why nothing did.
    pub(crate) async fn tries(&mut self, step: Value) -> Value {
        let what = format!("{} has done {step}", self.name);
        self.stdin.write_all(format!("{step}\n").as_bytes()).await.expect("it reads");
        let line = within(&what, self.lines.next_line()).await.expect("it writes").expect("it goes on");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{what}: {error}: {line}"))
    }

    async fn does(&mut self, step: Value) -> Value {
        let said = self.tries(step.clone()).await;
        assert!(said["error"].is_null(), "{} {step}: {said}", self.name);
        said
    }

    /// What it may see.
    pub(crate) async fn tools(&mut self) -> Vec<String> {
        sorted(&self.does(json!({ "do": "tools" })).await)
    }

    /// The same, once this is among it.
    pub(crate) async fn tools_with(&mut self, tool: &str) -> Vec<String> {
        sorted(&self.does(json!({ "do": "until", "tool": tool })).await)
    }

    /// Arguments that say whose they are, with words that nobody else may hear.
    pub(crate) fn words(&mut self) -> Value {
        self.words += 1;
        json!({ "of": self.name, "word": format!("{}-says-{}", self.name, self.words) })
    }

    fn was_answered(&mut self, name: &str, times: usize) {
        *self.answered.entry(name.to_owned()).or_default() += times;
    }

    /// Calls a tool that says what it was told.
    pub(crate) async fn calls(&mut self, name: &str) {
        let words = self.words();
        let said = self.does(json!({ "do": "call", "name": name, "arguments": words })).await;
        let text = said["text"].as_str().unwrap_or_default();
        assert_eq!((said["isError"].as_bool(), text), (Some(false), &*words.to_string()), "{} {name}", self.name);
        self.was_answered(name, 1);
    }

    /// Calls what it is offered where it has yet to log in, logs in at the page that this leads to, and sees what is there then.
    pub(crate) async fn logs_in(&mut self, upstream: &str) {
        let name = format!("{upstream}__trunkline_login");
        let said = self.does(json!({ "do": "call", "name": name, "arguments": {} })).await;
        let text = said["text"].as_str().unwrap_or_default();
        assert!(text.contains(&format!("You are logged in to `{upstream}`")), "{}: {said}", self.name);
        self.was_answered(&name, 1);
        self.pages += 1;
        self.tools_with(&format!("{upstream}__echo")).await;
    }

    /// Has a greeting.
    pub(crate) async fn is_greeted(&mut self, prompt: &str) {
        let said = self.does(json!({ "do": "prompt", "name": prompt, "arguments": { "who": self.name } })).await;
        assert!(said["text"].as_str().is_some_and(|text| text.contains(self.name)), "{said}");
        self.was_answered(prompt, 1);
    }

    /// Calls a tool until its client has another access token.
    pub(crate) async fn spends(&mut self, name: &str) {
        let words = self.words();
        let said = self.does(json!({ "do": "spend", "name": name, "arguments": words })).await;
        let calls = said["calls"].as_u64().expect("a number");
        assert!(calls > 0, "{}: {said}", self.name);
        self.was_answered(name, usize::try_from(calls).expect("it fits"));
    }

    /// Has its refresh token revoked, and calls a tool until that is refused: what with.
    pub(crate) async fn is_revoked(&mut self, name: &str) -> String {
        self.does(json!({ "do": "revoke" })).await;
        let words = self.words();
        let said = self.does(json!({ "do": "refused", "name": name, "arguments": words })).await;
        self.was_answered(name, usize::try_from(said["calls"].as_u64().expect("a number")).expect("it fits"));
        said["end"].as_str().expect("a name").to_owned()
    }

    /// All that it was told.
    pub(crate) async fn tells(&mut self) -> Told {
        serde_json::from_value(self.does(json!({ "do": "tell" })).await).expect("all of it")
    }
}

fn sorted(said: &Value) -> Vec<String> {
    let mut tools: Vec<String> = serde_json::from_value(said["tools"].clone()).expect("names");
    tools.sort();
    tools
}
