//! The stage: ten upstreams, the gateway, and the clients that call through it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use hyper::Method;

use crate::cable::Cable;
use crate::client::{Client, Desk, Reach};
use crate::gateway::{Config, Gateway, StdioGateway};
use crate::judge::history::{Census, History, Kept};
use crate::machine::fault::MESSAGE_MAX_MIB;
use crate::machine::lines;
use crate::machine::look;
use crate::machine::place::Place;
use crate::revision::Revision;
use crate::scratch::Scratch;
use crate::script::Script;
use crate::seed::Seed;
use crate::tape::Tape;
use crate::upstream::{Upstream, Way};
use crate::within::{until_within, within_limit};

/// How many upstreams there are.
pub const UPSTREAMS: usize = 10;
/// Which client reaches the gateway over a cable.
pub const ON_WIRE: usize = 2;
/// The tools of each; those that can ask have one more.
const TOOLS: [&str; 2] = ["echo", "wait"];
/// How long a question waits for its answer: nobody answers.
const QUESTION: &str = "2s";
/// How long the stage may take to stand, or to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the clients reach the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Four clients by Streamable HTTP, one of them over a slow wire.
    Http,
    /// One host by stdio.
    Stdio,
}

/// What a client takes for ids.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// This one, for each of its calls.
    Always(&'static str),
    /// Texts that count.
    Texts,
    /// Numbers that count, below zero and beyond what a float holds.
    Numbers,
}

/// One that calls.
pub struct Caller {
    /// The client.
    pub client: Client,
    /// What it takes for ids.
    pub ids: Ids,
}

/// All of it.
pub struct Stage {
    /// The upstreams, `u0` to `u9`.
    pub places: Vec<Place>,
    /// The clients.
    pub callers: Vec<Caller>,
    /// How long a call may take; nothing stands for as long as it will.
    pub deadline: Option<Duration>,
    gateway: Option<Gateway>,
    begun: Instant,
    stderr: Mutex<Vec<(Duration, String)>>,
    /// Between the gateway and the client [`ON_WIRE`].
    cable: Option<Cable>,
    _host: Option<StdioGateway>,
    _scratch: Scratch,
}

/// The revision that an upstream speaks: each is among them, on either transport.
fn revision(number: usize) -> Revision {
    Revision::ALL[(number / 2) % Revision::ALL.len()]
}

/// Whether an upstream asks in a way that has the gateway park a stateless client's call. Those on HTTP would open one more
/// session for it.
fn can_ask(number: usize) -> bool {
    number.is_multiple_of(2) && matches!(revision(number), Revision::R2025_06_18 | Revision::R2025_11_25)
}

async fn place(number: usize, seed: &Seed) -> Place {
    let name = format!("u{number}");
    let quiet = |script: &mut Script| {
        (script.journal_frames, script.journal_calls) = (false, true);
        if can_ask(number) {
            script.asks = true;
            script.tools.push("ask".into());
        }
    };
    let script = Script::new(&name, revision(number)).only_tools(&TOOLS).with(quiet);
    let way = if number.is_multiple_of(2) { Way::Stdio } else { Way::Http };
    let upstream = Upstream::start(way, script).await;
    let cable = match way {
        Way::Stdio => None,
        Way::Http => Some(Cable::to(upstream.address(), seed.part(&name)).await),
    };
    Place::new(upstream, cable)
}

fn configuration(places: &[Place], deadline: Option<Duration>, scratch: &Scratch) -> Config {
    let call_timeout = deadline.map_or("0".into(), |deadline| format!("\"{}ms\"", deadline.as_millis()));
    let defaults = format!(
        "[questions]\ntimeout = \"{QUESTION}\"\n[defaults]\ncall_timeout = {call_timeout}\nrequest_timeout = \"10s\"\nstartup_timeout = \"20s\"\n\
         max_response = \"{MESSAGE_MAX_MIB}MiB\"\nbreaker = {{ failures = 5, open_for = \"1s\" }}\n\
         health = {{ interval = \"3s\", timeout = \"2s\", unhealthy_after = 2 }}\n\
         [defaults.restart]\nbackoff_min = \"100ms\"\nbackoff_max = \"500ms\"\nhealthy_after = \"1s\"\n\
         max_restarts = 100000\nstop_timeout = \"2s\"\n"
    );
    let folder = |name: &str| scratch.path().join(name).display().to_string();
    let mut config = Config::new()
        .section(&defaults)
        .env("XDG_CACHE_HOME", &folder("cache"))
        .env("XDG_STATE_HOME", &folder("state"));
    for place in places {
        config = match &place.cable {
            None => config.upstream(&place.upstream),
            Some(cable) => {
                config.section(&format!("[upstreams.{}]\nurl = \"http://{}/mcp\"", place.upstream.name, cable.address))
            }
        };
    }
    config
}

impl Stage {
    /// Sets the stage, and waits until every tool is listed.
    pub async fn set(face: Face, deadline: Option<Duration>, seed: &Seed) -> Arc<Stage> {
        let mut places = Vec::new();
        for number in 0..UPSTREAMS {
            places.push(place(number, seed).await);
        }
        let scratch = Scratch::new();
        let config = configuration(&places, deadline, &scratch);
        let (mut gateway, mut host, mut cable) = (None, None, None);
        let mut callers = Vec::new();
        match face {
            Face::Http => {
                let serving = Gateway::serve(&config).await;
                let wire = Cable::to(address(&serving.url), seed.part("client")).await;
                let over_wire = Reach::Url(format!("http://{}/mcp", wire.address));
                wire.carry(crate::cable::Carries::InPieces);
                let lanes = [
                    (serving.reach(), Revision::MODERN, Ids::Always("1")),
                    (serving.reach(), Revision::R2025_11_25, Ids::Texts),
                    (over_wire, Revision::R2025_06_18, Ids::Always("\"1\"")),
                    (serving.reach(), Revision::R2025_03_26, Ids::Numbers),
                ];
                for (reach, revision, ids) in lanes {
                    let mut client = Client::open_with(&reach, revision, Desk::closed().unjudging()).await;
                    // Over the wire too it is the gateway that is asked for.
                    client.http().always("host", &address(&serving.url).to_string());
                    if !revision.is_modern() {
                        client.greet().await;
                    }
                    callers.push(Caller { client, ids });
                }
                (gateway, cable) = (Some(serving), Some(wire));
            }
            Face::Stdio => {
                let prepared = StdioGateway::prepare(&config);
                let desk = Desk::closed().unjudging();
                let client = Client::connect_with(&prepared.reach(), Revision::R2025_11_25, desk).await;
                client.stdio().keep_lines();
                callers.push(Caller { client, ids: Ids::Texts });
                host = Some(prepared);
            }
        }
        let stage = Stage {
            places,
            callers,
            deadline,
            gateway,
            begun: Instant::now(),
            stderr: Mutex::default(),
            cable,
            _host: host,
            _scratch: scratch,
        };
        stage.is_listed().await;
        Arc::new(stage)
    }

    async fn is_listed(&self) {
        for caller in &self.callers {
            let all = |tools: &[String]| tools.iter().filter(|tool| tool.ends_with("__echo")).count() == UPSTREAMS;
            let listed = caller.client.tools_until("every upstream's tool is listed", all);
            within_limit(PATIENCE, "every upstream's tool is listed", listed).await;
        }
    }

    /// Whether a question that this upstream asks of this caller would have its call parked.
    pub(crate) fn can_park(&self, caller: usize, at: usize) -> bool {
        self.callers[caller].client.revision.is_modern() && can_ask(at)
    }

    /// What lies between the gateway and the client [`ON_WIRE`].
    #[must_use]
    pub fn wire(&self) -> &Cable {
        self.cable.as_ref().expect("one of the clients by HTTP comes over a cable")
    }

    /// One more client comes, lists the tools, and goes.
    pub async fn newcomer(&self) {
        let reach = self.gateway.as_ref().expect("it has an endpoint").reach();
        let client = Client::connect_with(&reach, Revision::R2025_06_18, Desk::closed().unjudging()).await;
        assert!(!client.tools().await.is_empty(), "a new client sees tools");
        let wire = client.http();
        let ended = wire.exchange(Method::DELETE, &wire.session(), Bytes::new(), &Tape::default()).await;
        assert!(ended.is_ok_and(|answer| answer.status < 300), "its session is ended");
    }

    /// The gateway's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.gateway.as_ref().map_or_else(|| self.callers[0].client.stdio().pid, |gateway| gateway.pid)
    }

    /// A page of the administration address; empty where there is none.
    pub async fn page(&self, path: &str) -> String {
        match &self.gateway {
            Some(gateway) => String::from_utf8_lossy(&gateway.look(path).await.body).into_owned(),
            None => String::new(),
        }
    }

    /// Whether it has an administration address.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        self.gateway.is_some()
    }

    /// An upstream's row on the page of all.
    pub async fn row(&self, upstream: &str) -> look::Row {
        look::row(&self.page("/readyz?verbose&format=json").await, upstream).unwrap_or_default()
    }

    /// What the gateway holds now.
    pub async fn census(&self) -> Census {
        look::census(self.pid(), &self.page("/metrics").await)
    }

    /// The lines of the log up to now, each with when it was written, or else read.
    pub fn log(&self) -> Vec<(Duration, String)> {
        let tape =
            self.gateway.as_ref().map_or_else(|| &self.callers[0].client.stdio().stderr, |gateway| &gateway.stderr);
        let mut all = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, now) = (self.begun.elapsed(), SystemTime::now());
        let written = |line: &str| at.saturating_sub(lines::age(line, now).unwrap_or_default());
        all.extend(tape.take().into_iter().map(|line| (written(&line), line)));
        all.clone()
    }

    /// Brings everything to rest that only waits for its next use, and counts what is left when nothing moves any more, or
    /// when it is within what is given.
    pub async fn at_rest(&self, within: Option<&Census>, spare: usize) -> Census {
        let begun = Instant::now();
        let mut last = Census::default();
        let mut same = 0;
        loop {
            for place in &self.places {
                place.cable.iter().for_each(Cable::sever);
            }
            for caller in self.callers.iter().filter(|_| self.has_pages()) {
                caller.client.http().rest();
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
            self.log();
            let now = self.census().await;
            let moves = Census { resident_kib: 0, ..now } != Census { resident_kib: 0, ..last };
            same = if moves { 0 } else { same + 1 };
            last = now;
            let is_over = match within {
                Some(before) => now.is_within(before, spare) && self.places.iter().all(|place| place.waits() == 0),
                None => same >= 4 && now.pending == 0,
            };
            if is_over || begun.elapsed() > PATIENCE / 4 {
                return last;
            }
        }
    }

    /// What the upstreams are known by, those of these numbers aside.
    #[must_use]
    pub fn identities(&self, aside: &[usize]) -> Vec<(String, Vec<String>)> {
        let well = self.places.iter().enumerate().filter(|(number, _)| !aside.contains(number));
        well.map(|(_, place)| (place.upstream.name.clone(), place.identity())).collect()
    }

    /// What became of those who were known by this.
    #[must_use]
    pub fn kept(&self, before: Vec<(String, Vec<String>)>) -> Vec<Kept> {
        let after = self.identities(&[]);
        let now = |name: &str| after.iter().find(|(other, _)| other == name).map(|(_, ids)| ids.clone());
        let kept = |(upstream, before): (String, Vec<String>)| Kept {
            after: now(&upstream).unwrap_or_default(),
            upstream,
            before,
        };
        before.into_iter().map(kept).collect()
    }

    /// What is told by others than the callers of a load: log, side effects, stdout, complaints.
    pub fn tell(&self, history: &mut History) {
        history.stderr = self.log();
        history.ran = self.places.iter().flat_map(Place::ran).collect();
        for place in &self.places {
            let (name, waits) = (&place.upstream.name, place.waits());
            let says = || format!("{waits} calls that were given up still run at {name}");
            history.unwithdrawn.extend((waits > 0).then(says));
        }
        for caller in &self.callers {
            history.complaints.extend(caller.client.complaints.take());
            if !self.has_pages() {
                history.stdout.extend(caller.client.stdio().lines.take());
            }
        }
    }

    /// Waits until an upstream is well again by its row and by the metrics; where there are no pages a call says so.
    pub async fn is_well(&self, upstream: &str) -> bool {
        if !self.has_pages() {
            return true;
        }
        let check = || async {
            let is_up = look::is_up(&self.page("/metrics").await, upstream);
            (is_up && self.row(upstream).await.is_well).then_some(())
        };
        tokio::time::timeout(PATIENCE / 4, until_within(PATIENCE, "it is well again", check)).await.is_ok()
    }
}

fn address(url: &str) -> std::net::SocketAddr {
    let rest = url.trim_start_matches("http://");
    rest.split('/').next().and_then(|address| address.parse().ok()).expect("a loopback address")
}
