//! What the suite is run against: the fixture itself, or the gateway with the fixture behind it.

use std::fmt;
use std::path::PathBuf;
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

/// What the fixture speaks, and what the gateway makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// Stateless requests and nothing else.
    Stateless,
    /// The handshake and nothing else.
    Handshake,
    /// Both, and each client is served in its own; as a child this takes `eras = "both"`.
    Both,
    /// Both, of which one child has the handshake's alone: stateless clients are bridged.
    OneChild,
    /// Both, and the gateway is told that it speaks stateless requests only: wrong, to see that it is found.
    Mistaken,
}

/// The official SDK that the fixture is written on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// `@modelcontextprotocol/server` 2.x.
    TypeScript,
    /// `mcp` 2.x.
    Python,
    /// `rmcp` 3.x.
    Rust,
}

impl Server {
    /// Those that need not be built.
    pub const SCRIPTS: [Self; 2] = [Self::TypeScript, Self::Python];

    /// The fixture's program.
    fn program(self, suite: &Suite, transport: Transport, era: Era) -> (PathBuf, Vec<String>) {
        let over = match transport {
            Transport::Http => "http",
            Transport::Stdio => "stdio",
        };
        let speaks = match era {
            Era::Stateless => "modern",
            Era::Handshake => "legacy",
            Era::Both | Era::OneChild | Era::Mistaken => "both",
        };
        match self {
            Self::TypeScript => (suite.node.clone(), vec![suite.script("fixture.mjs"), over.into(), speaks.into()]),
            Self::Python => (suite.python.clone(), vec!["-B".into(), suite.python_script("dual"), over.into()]),
            Self::Rust => (suite.rust_program(), vec![over.into()]),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
            Self::Rust => "rust",
        })
    }
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
    /// Speaking one era, so that clients of the other one are bridged.
    pub const BRIDGED: [Self; 4] = [
        Self { transport: Transport::Http, era: Era::Stateless },
        Self { transport: Transport::Http, era: Era::Handshake },
        Self { transport: Transport::Stdio, era: Era::Stateless },
        Self { transport: Transport::Stdio, era: Era::Handshake },
    ];

    /// Speaking both, so that nobody is bridged who need not be.
    pub const BOTH: [Self; 3] = [
        Self { transport: Transport::Http, era: Era::Both },
        Self { transport: Transport::Stdio, era: Era::Both },
        Self { transport: Transport::Stdio, era: Era::OneChild },
    ];

    /// The keys that it takes beside where it is.
    fn keys(self) -> &'static str {
        // One session for everybody: it is told of all kinds of question, or it would not ask some of them.
        macro_rules! offer {
            () => {
                "offer = [\"elicitation\", \"sampling\", \"roots\"]"
            };
        }
        match (self.transport, self.era) {
            (_, Era::Mistaken) => "era = \"modern\"",
            (Transport::Http, _) => "",
            (Transport::Stdio, Era::Both) => concat!("eras = \"both\"\n", offer!()),
            (Transport::Stdio, _) => offer!(),
        }
    }
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Http => "http",
            Transport::Stdio => "stdio",
        };
        let era = match self.era {
            Era::Stateless => "stateless",
            Era::Handshake => "handshake",
            Era::Both => "both",
            Era::OneChild => "one child",
            Era::Mistaken => "mistaken",
        };
        f.pad(&format!("{transport} {era}"))
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
    pub async fn direct(suite: &Suite, server: Server) -> Self {
        let (fixture, url) = fixture(suite, server, Era::Both).await;
        Self { url, _gateway: None, _fixture: Some(fixture) }
    }

    /// A gateway with the fixture as its only upstream, names as they are; returns when all of its tools are listed.
    pub async fn through(suite: &Suite, server: Server, behind: Behind) -> Self {
        let (fixture, place) = match behind.transport {
            Transport::Http => {
                let (fixture, url) = fixture(suite, server, behind.era).await;
                (Some(fixture), format!("url = {}", quote(&url)))
            }
            Transport::Stdio => {
                let (program, args) = server.program(suite, behind.transport, behind.era);
                let args = args.iter().map(|arg| quote(arg)).collect::<Vec<_>>().join(", ");
                (None, format!("command = {}\nargs = [{args}]", quote(&program.display().to_string())))
            }
        };
        let upstream = format!("[upstreams.fixture]\n{place}\n{}", behind.keys());
        let config = Config::new().section("[naming]\nstrategy = \"flat\"").section(&upstream);
        // The suite looks for a stream where a call is silent; the tool that it calls for that answers after two seconds and a half.
        let config = config.server("sse_keepalive = \"2s\"");
        let gateway = Gateway::serve(&config).await;
        within_limit(LIMIT, "the fixture's tools are listed", listed(&gateway)).await;
        if behind.transport == Transport::Stdio && behind.era == Era::Both {
            within_limit(LIMIT, "the second child is up", both_children(&gateway)).await;
        }
        Self { url: gateway.url.clone(), _gateway: Some(gateway), _fixture: fixture }
    }
}

/// Starts the fixture over HTTP.
async fn fixture(suite: &Suite, server: Server, era: Era) -> (Child, String) {
    let (program, args) = server.program(suite, Transport::Http, era);
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the fixture can be started");
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

/// Has the child of stateless clients started by a first call: until it is up they are bridged, and a crowded machine takes its time.
async fn both_children(gateway: &Gateway) {
    let client = Client::open(&gateway.reach(), Revision::MODERN).await;
    let _bridged_or_not = client.call("test_simple_text", "{}").await;
    let is_up = |line: &String| line.contains("upstream ready") && line.contains(Revision::MODERN.text());
    while !gateway.stderr.all().iter().any(is_up) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
