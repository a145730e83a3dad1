//! The stage: upstreams of every transport, the gateway, and the clients that call through it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::cable::Cable;
use crate::canary;
use crate::gateway::{ADMIN_TOKEN, Gateway, StdioGateway};
use crate::judge::history::{Census, History, Kept};
use crate::log;
use crate::machine::callers::{self, Caller, Callers};
use crate::machine::guest::Guest;
use crate::machine::place::Place;
use crate::machine::secured::Door;
use crate::machine::setting::{self, ASKER, CEILING_KIB, INNOCENT};
use crate::machine::{lines, look, siege};
use crate::process;
use crate::scratch::{self, Scratch};
use crate::seed::Seed;
use crate::within::{until_within, within_limit};

pub use crate::machine::callers::{Face, Ids};
pub use crate::machine::setting::{ALL, UPSTREAMS};

/// Which client reaches the gateway over a cable.
pub const ON_WIRE: usize = 2;
/// How long the stage may take to stand, or to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of so many looks at what is at rest, one begins with cut connections.
const SEVER_EVERY: u32 = 12;

/// What the gateway writes of what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// As usual.
    Usual,
    /// Everything.
    Trace,
}

/// All of it.
pub struct Stage {
    /// The upstreams, `u0` to `u13`.
    pub places: Vec<Place>,
    /// The clients.
    pub callers: Vec<Caller>,
    /// How long a call may take; nothing stands for as long as it will.
    pub deadline: Option<Duration>,
    gateway: Option<Gateway>,
    begun: Instant,
    /// The most memory that the gateway was seen with, in KiB.
    peak: AtomicU64,
    stderr: Mutex<Vec<(Duration, String)>>,
    /// An upstream that the hostile principal alone calls: it asks.
    hers: Place,
    kept: Vec<std::path::PathBuf>,
    /// Between the gateway and the client [`ON_WIRE`].
    cable: Option<Cable>,
    _host: Option<StdioGateway>,
    _scratch: Scratch,
}

impl Stage {
    /// Sets the stage, and waits until every tool is listed.
    pub async fn set(face: Face, deadline: Option<Duration>, log: Log, seed: &Seed) -> Arc<Stage> {
        let mut places = Vec::new();
        for number in 0..ALL {
            places.push(setting::place(number, seed).await);
        }
        let (scratch, hers, door) = (Scratch::new(), setting::hers(seed).await, Door::new());
        let config = setting::configuration(face, &places, &hers, (deadline, log), (&scratch, &door));
        let Callers { gateway, host, cable, callers } = callers::come(face, &config, &door, seed).await;
        let stage = Stage {
            places,
            callers,
            deadline,
            gateway,
            begun: Instant::now(),
            peak: AtomicU64::new(0),
            stderr: Mutex::default(),
            hers,
            kept: setting::KEPT.map(|name| scratch.path().join(name)).to_vec(),
            cable,
            _host: host,
            _scratch: scratch,
        };
        stage.is_listed().await;
        siege::first(&stage).await;
        Arc::new(stage)
    }

    async fn is_listed(&self) {
        for caller in &self.callers {
            let all = |tools: &[String]| tools.iter().filter(|tool| tool.ends_with("__echo")).count() == ALL;
            let listed = caller.client.tools_until("every upstream's tool is listed", all);
            within_limit(PATIENCE, "every upstream's tool is listed", listed).await;
        }
    }

    /// Whether a question that this upstream asks of this caller would have its call parked.
    pub(crate) fn can_park(&self, caller: usize, at: usize) -> bool {
        self.callers[caller].client.revision.is_modern() && at == ASKER
    }

    /// What lies between the gateway and the client [`ON_WIRE`].
    #[must_use]
    pub fn wire(&self) -> &Cable {
        self.cable.as_ref().expect("one of the clients by HTTP comes over a cable")
    }

    /// Where its endpoint is, where it has one.
    #[must_use]
    pub fn endpoint(&self) -> Option<std::net::SocketAddr> {
        self.gateway.as_ref().map(|gateway| address(&gateway.url))
    }

    /// The gateway stands still for so long.
    pub async fn freezes(&self, time: Duration) {
        process::signal(self.pid(), "STOP");
        tokio::time::sleep(time).await;
        process::signal(self.pid(), "CONT");
    }

    /// Which upstream this client calls in place of one that it must leave alone: a question of a child that several principals
    /// call has nobody to go to.
    pub(crate) fn may_call(&self, caller: usize, at: usize) -> usize {
        let is_others = at == ASKER && self.has_pages() && self.callers[caller].principal != INNOCENT[0];
        if is_others { (at + 2) % UPSTREAMS } else { at }
    }

    /// One more client comes, lists the tools, and goes.
    pub async fn newcomer(&self) {
        let guest = Guest::of(self, INNOCENT[1]).expect("it has an endpoint");
        assert_eq!(guest.visits(None).await.map(drop), Ok(()), "a new client is served");
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
        self.peak.fetch_max(process::resident_kib(self.pid()).unwrap_or_default(), Ordering::Relaxed);
        let tape =
            self.gateway.as_ref().map_or_else(|| &self.callers[0].client.stdio().stderr, |gateway| &gateway.stderr);
        let mut all = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, now) = (self.begun.elapsed(), SystemTime::now());
        let written = |line: &str| at.saturating_sub(lines::age(line, now).unwrap_or_default());
        // What is below `info` is looked at for secrets alone.
        let is_kept = |line: &String| !is_detail(line) || canary::leak(line).is_some();
        all.extend(tape.take().into_iter().filter(is_kept).map(|line| (written(&line), line)));
        all.clone()
    }

    /// What the gateway shows and keeps: its pages, what its commands say of an upstream, the command lines of its processes, and
    /// its files. Each with where.
    pub async fn shows(&self, upstream: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        if let Some(gateway) = &self.gateway {
            for path in ["/metrics", "/readyz?verbose", "/readyz?verbose&format=json"] {
                all.push((path.to_owned(), self.page(path).await));
            }
            for arguments in [&["ls"][..], &["status", upstream, "--json"]] {
                let said = tokio::time::timeout(PATIENCE, gateway.command(arguments).output()).await;
                let said = said.expect("a command ends").expect("it runs");
                all.push((
                    arguments.join(" "),
                    String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned(),
                ));
            }
        }
        for pid in [vec![self.pid()], process::children(self.pid())].concat() {
            all.push((format!("the command line of {pid}"), process::command_line(pid)));
        }
        all.extend(self.kept.iter().flat_map(|folder| scratch::texts(folder)));
        all
    }

    /// What all secrets of its configuration have in common.
    #[must_use]
    pub fn canaries(&self) -> Vec<String> {
        vec![canary::CORE.into(), ADMIN_TOKEN.into()]
    }

    /// Brings everything to rest that only waits for its next use, and counts what is left when nothing moves any more, or
    /// when it is within what is given.
    pub async fn at_rest(&self, within: Option<&Census>, spare: usize) -> Census {
        siege::calls_each(self).await;
        let begun = Instant::now();
        let mut last = Census::default();
        let mut same = 0;
        for number in 0_u32.. {
            // Now and then: what is kept open for good is opened anew each time, which takes a moment.
            if number % SEVER_EVERY == 0 {
                let places = self.places.iter().filter(|place| place.upstream.way().is_http());
                for place in places.chain([&self.hers]) {
                    place.cable.iter().for_each(Cable::sever);
                }
            }
            for caller in self.callers.iter().filter(|caller| caller.client.is_http()) {
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
                // Of a stateless upstream a request is open for good: that for its changes.
                None => same >= 4 && now.pending <= setting::STATELESS,
            };
            if is_over {
                return last;
            }
            if begun.elapsed() > PATIENCE / 2 {
                eprintln!("no rest at {}: {last:?}, {:?}", self.addresses(), process::what_is_open(self.pid()));
                return last;
            }
        }
        last
    }

    /// Where all of them listen.
    fn addresses(&self) -> String {
        let gateway = self.gateway.as_ref().map(|gateway| format!("{}, {}", gateway.url, gateway.admin));
        let cables = self.places.iter().chain([&self.hers]).filter_map(|place| place.cable.as_ref());
        let cables: Vec<_> = cables.map(|cable| cable.address.to_string()).collect();
        format!("{gateway:?}, {cables:?}")
    }

    /// Until nothing that was given up runs any more, and no longer than that may take: the judge has its word on what is left.
    pub async fn withdrawn(&self) {
        let begun = Instant::now();
        while self.places.iter().any(|place| place.waits() > 0) && begun.elapsed() < PATIENCE / 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
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
        history.canaries = self.canaries();
        history.ran_at = self.places.iter().flat_map(Place::ran).collect();
        history.ran = history.ran_at.iter().map(|(nonce, _)| nonce.clone()).collect();
        history.peak = Some((self.peak.load(Ordering::Relaxed), CEILING_KIB));
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

/// Whether a line of the log says more than is told as a rule.
fn is_detail(line: &str) -> bool {
    matches!(log::level(line), Some("DEBUG" | "TRACE"))
}

pub(super) fn address(url: &str) -> std::net::SocketAddr {
    let rest = url.trim_start_matches("http://");
    rest.split('/').next().and_then(|address| address.parse().ok()).expect("a loopback address")
}
