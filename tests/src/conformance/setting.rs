//! What the suite is run against: the fixture itself, or the gateway with the fixture behind it.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::{Client, Request};
use crate::conformance::Suite;
use crate::frame::quote;
use crate::gateway::{Config, Gateway};
use crate::revision::Revision;
use crate::within::within_limit;

/// How long a program may take to start on a crowded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// How the gateway reaches the fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// A child.
    Stdio,
}

/// What the fixture speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// Stateless requests and nothing else.
    Stateless,
    /// The handshake and nothing else.
    Handshake,
}

/// The fixture as an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Behind {
    /// How it is reached.
    pub transport: Transport,
    /// What it speaks.
    pub era: Era,
}

impl Behind {
    /// All four.
    pub const ALL: [Self; 4] = [
        Self { transport: Transport::Http, era: Era::Stateless },
        Self { transport: Transport::Http, era: Era::Handshake },
        Self { transport: Transport::Stdio, era: Era::Stateless },
        Self { transport: Transport::Stdio, era: Era::Handshake },
    ];
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.transport, self.era) {
            (Transport::Http, Era::Stateless) => "http stateless",
            (Transport::Http, Era::Handshake) => "http handshake",
            (Transport::Stdio, Era::Stateless) => "stdio stateless",
            (Transport::Stdio, Era::Handshake) => "stdio handshake",
        })
    }
}

/// Something that the suite can be run against; it ends when this is dropped.
pub struct Setting {
    /// Its endpoint.
    pub url: String,
    _gateway: Option<Gateway>,
    _fixture: Option<Child>,
}

impl Setting {
    /// The fixture itself, which speaks everything.
    pub async fn direct(suite: &Suite) -> Self {
        let (fixture, url) = fixture(suite, "both").await;
        Self { url, _gateway: None, _fixture: Some(fixture) }
    }

    /// A gateway with the fixture as its only upstream, names as they are; returns when all of its tools are listed.
    pub async fn through(suite: &Suite, behind: Behind) -> Self {
        let era = match behind.era {
            Era::Stateless => "modern",
            Era::Handshake => "legacy",
        };
        let (fixture, keys) = match behind.transport {
            Transport::Http => {
                let (fixture, url) = fixture(suite, era).await;
                (Some(fixture), format!("url = {}", quote(&url)))
            }
            Transport::Stdio => {
                let (node, script) = (suite.node.display().to_string(), suite.script("fixture.mjs"));
                let command = quote(&node);
                // One session for everybody: it is told of all kinds of question, or it would not ask some of them.
                let offer = "offer = [\"elicitation\", \"sampling\", \"roots\"]";
                (None, format!("command = {command}\nargs = [{}, \"stdio\", \"{era}\"]\n{offer}", quote(&script)))
            }
        };
        let config =
            Config::new().section("[naming]\nstrategy = \"flat\"").section(&format!("[upstreams.fixture]\n{keys}"));
        // The suite looks for a stream where a call is silent; the tool that it calls for that answers after two seconds and a half.
        let config = config.server("sse_keepalive = \"2s\"");
        let gateway = Gateway::serve(&config).await;
        within_limit(LIMIT, "the fixture's tools are listed", listed(&gateway)).await;
        Self { url: gateway.url.clone(), _gateway: Some(gateway), _fixture: fixture }
    }
}

/// Starts the fixture over HTTP.
async fn fixture(suite: &Suite, era: &str) -> (Child, String) {
    let mut child = Command::new(&suite.node)
        .args([&suite.script("fixture.mjs"), "http", era])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("node can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let url = within_limit(LIMIT, "the fixture prints its endpoint", lines.next_line()).await;
    (child, url.expect("stdout can be read").expect("the fixture prints its endpoint"))
}

async fn listed(gateway: &Gateway) {
    let client = Client::open(&gateway.reach(), Revision::MODERN).await;
    // A first list is answered without an upstream that takes too long to start.
    while !client.request(Request::new("tools/list", "{}")).await.result().contains("test_simple_text") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
