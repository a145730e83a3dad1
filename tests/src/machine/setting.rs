//! What stands around the gateway: the upstreams, and the configuration, full of secrets that nobody may be told.

use std::time::Duration;

use crate::cable::Cable;
use crate::canary::{Canary, percent};
use crate::frame::quote;
use crate::gateway::Config;
use crate::gateway::config::tls_of;
use crate::machine::fault::MESSAGE_MAX_MIB;
use crate::machine::place::Place;
use crate::machine::secured::Door;
use crate::machine::stage::{Face, Log};
use crate::revision::Revision;
use crate::scratch::Scratch;
use crate::script::Script;
use crate::seed::Seed;
use crate::upstream::{Upstream, Way};

/// How many upstreams there are that are reached by stdio and by Streamable HTTP, in turn.
pub const UPSTREAMS: usize = 10;
/// Those beside them, each reached another way.
const OTHERS: [(Way, Revision); 4] = [
    (Way::Sse, Revision::R2024_11_05),
    (Way::WebSocket, Revision::R2025_06_18),
    (Way::Unix, Revision::R2025_11_25),
    (Way::Secured, Revision::R2025_11_25),
];
/// How many upstreams there are in all.
pub const ALL: usize = UPSTREAMS + OTHERS.len();
/// How many of them are stateless.
pub(crate) const STATELESS: usize = UPSTREAMS / Revision::ALL.len();
/// Which of them asks, in a way that has the gateway park a stateless client's call. The first principal alone calls it: a
/// question of a child that several call has nobody to go to.
pub(crate) const ASKER: usize = 4;
/// For whom clients call as they should, and for whom one takes all that it can get.
pub(crate) const INNOCENT: [&str; 2] = ["ann", "bob"];
pub(crate) const HOSTILE: &str = "eve";
/// The upstream that the hostile one alone calls.
pub(crate) const HERS: &str = "hers";
/// What the gateway keeps its files in.
pub(crate) const KEPT: [&str; 2] = ["cache", "state"];
/// The tools of each; the one that can ask has one more.
const TOOLS: [&str; 2] = ["echo", "wait"];
/// How long a question waits for its answer: nobody answers.
const QUESTION: &str = "2s";
/// How many sessions and parked calls there may be, few enough that one client can take its share of them.
const SESSIONS: usize = 60;
const PARKED: usize = 48;
const PARKED_OF_ONE: usize = 24;
/// What all peers together may have the gateway keep, and what it may take with all else that it needs.
const MEMORY_MIB: u64 = 256;
pub(crate) const CEILING_KIB: u64 = (MEMORY_MIB + 128) * 1024;

/// What a principal presents.
pub(crate) fn bearer(principal: &str) -> String {
    format!("Bearer {}", token(principal))
}

fn token(principal: &str) -> String {
    format!("{}-is-the-token-of-{principal}", crate::canary::CORE)
}

/// How an upstream is reached, and the revision that it speaks: each is among those by stdio, and among those by Streamable HTTP.
fn kind(number: usize) -> (Way, Revision) {
    match number.checked_sub(UPSTREAMS) {
        Some(other) => OTHERS[other],
        None => {
            let way = if number.is_multiple_of(2) { Way::Stdio } else { Way::Http };
            (way, Revision::ALL[(number / 2) % Revision::ALL.len()])
        }
    }
}

/// An upstream of that number.
pub(crate) async fn place(number: usize, seed: &Seed) -> Place {
    let name = format!("u{number}");
    let quiet = |script: &mut Script| {
        (script.journal_frames, script.journal_calls) = (false, true);
        if number == ASKER {
            script.asks = true;
            script.tools.push("ask".into());
        }
    };
    let (way, revision) = kind(number);
    let script = Script::new(&name, revision).only_tools(&TOOLS).with(quiet);
    let upstream = Upstream::start(way, script).await;
    let cable = match way {
        Way::Stdio | Way::Unix => None,
        _ => Some(Cable::to(upstream.address(), seed.part(&name)).await),
    };
    Place::new(upstream, cable)
}

/// The upstream that the hostile one alone calls: all that it does is ask.
pub(crate) async fn hers(seed: &Seed) -> Place {
    let quiet = |script: &mut Script| (script.journal_frames, script.asks) = (false, true);
    let upstream = Upstream::http(Script::new(HERS, Revision::R2025_11_25).only_tools(&["ask"]).with(quiet)).await;
    let cable = Cable::to(upstream.address(), seed.part(HERS)).await;
    Place::new(upstream, Some(cable))
}

/// The gateway's configuration.
pub(crate) fn configuration(
    face: Face,
    places: &[Place],
    hers: &Place,
    (deadline, log): (Option<Duration>, Log),
    (scratch, door): (&Scratch, &Door),
) -> Config {
    let call_timeout = deadline.map_or("0".into(), |deadline| format!("\"{}ms\"", deadline.as_millis()));
    let mut secrets = Secrets { scratch, made: 0 };
    let key = secrets.next();
    // The judge wants the sessions of a well upstream to stay: none is to end in a long run for want of calls.
    let defaults = format!(
        "[server.session]\nmax = {SESSIONS}\nsigning_key = {}\n\
         [questions]\ntimeout = \"{QUESTION}\"\nmax_open = {PARKED}\nmax_per_principal = {PARKED_OF_ONE}\n\
         [defaults]\ninstance_idle = \"24h\"\ncall_timeout = {call_timeout}\nrequest_timeout = \"10s\"\nstartup_timeout = \"20s\"\n\
         max_response = \"{MESSAGE_MAX_MIB}MiB\"\nbreaker = {{ failures = 5, open_for = \"1s\" }}\n\
         health = {{ interval = \"3s\", timeout = \"2s\", unhealthy_after = 2 }}\n\
         [defaults.restart]\nbackoff_min = \"100ms\"\nbackoff_max = \"500ms\"\nhealthy_after = \"1s\"\n\
         max_restarts = 100000\nstop_timeout = \"2s\"\n",
        quote(&format!("{key}{key}"))
    );
    let folder = |name: &str| scratch.path().join(name).display().to_string();
    let variable = secrets.next();
    let mut config = Config::new()
        .server(&format!("memory_limit = \"{MEMORY_MIB}MiB\""))
        .section(&defaults)
        .env("XDG_CACHE_HOME", &folder(KEPT[0]))
        .env("XDG_STATE_HOME", &folder(KEPT[1]))
        .env("OF_THE_MACHINE", &variable);
    if log == Log::Trace {
        config = config.section("[log]\nlevel = \"trace\"");
    }
    if matches!(face, Face::Connections | Face::Every) {
        config = config.with_socket();
    }
    if matches!(face, Face::Secured | Face::Every) {
        config = config.listed("").section(&door.section(scratch));
    }
    if face != Face::Stdio {
        for name in [INNOCENT[0], INNOCENT[1], HOSTILE] {
            config = config.section(&format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = {}", quote(&token(name))));
        }
    }
    for (number, place) in places.iter().enumerate() {
        let asks = if number == ASKER { "offer = [\"elicitation\"]\n" } else { "" };
        config = match (&place.cable, place.upstream.way()) {
            (None, Way::Stdio) => config.upstream_with(&place.upstream, &format!("{asks}{}", secrets.env())),
            (None, _) => config.upstream(&place.upstream),
            (Some(cable), Way::Sse | Way::WebSocket) => {
                let (name, at, keys) = (&place.upstream.name, cable.address, secrets.headers());
                let url = place.upstream.url().replace(&place.upstream.address().to_string(), &at.to_string());
                let transport = if place.upstream.way() == Way::Sse { "transport = \"sse\"\n" } else { "" };
                config.section(&format!("[upstreams.{name}]\nurl = \"{url}\"\n{transport}{keys}"))
            }
            (Some(cable), Way::Secured) => {
                let (name, at, keys) = (&place.upstream.name, cable.address, secrets.headers());
                let tls = tls_of(&place.upstream);
                config.section(&format!("[upstreams.{name}]\nurl = \"https://{at}/mcp\"\n{tls}\n{keys}"))
            }
            (Some(cable), _) => {
                let (name, at, query) = (&place.upstream.name, cable.address, percent(&secrets.next(), true));
                let keys = secrets.headers();
                config.section(&format!("[upstreams.{name}]\nurl = \"http://{at}/mcp?api_key={query}\"\n{keys}"))
            }
        };
    }
    let at = hers.cable.as_ref().map(|cable| cable.address).unwrap_or_else(|| hers.upstream.address());
    config.section(&format!("[upstreams.{HERS}]\nurl = \"http://{at}/mcp\""))
}

/// Secrets in the making, each another one.
struct Secrets<'a> {
    scratch: &'a Scratch,
    made: usize,
}

impl Secrets<'_> {
    fn next(&mut self) -> String {
        self.made += 1;
        Canary::new(self.made).text
    }

    /// A secret in a file.
    fn file(&mut self) -> String {
        let text = self.next();
        format!("${{file:{}}}", self.scratch.file(&format!("secret-{}", self.made), &text).display())
    }

    /// The environment of a child.
    fn env(&mut self) -> String {
        let (key, other) = (quote(&self.next()), self.file());
        let database = format!("postgres://me:{}@db.example/x", percent(&self.next(), true));
        format!(
            "env = {{ API_KEY = {key}, OTHER = \"{other}\", DATABASE = \"{database}\", THIRD = \"${{OF_THE_MACHINE}}\" }}\n"
        )
    }

    /// The headers of an upstream over HTTP.
    fn headers(&mut self) -> String {
        let bearer = quote(&format!("Bearer {}", self.next()));
        let cookie = quote(&format!("theme=dark; sid={}", self.next()));
        let key = self.file();
        format!(
            "headers = {{ Authorization = {bearer}, Cookie = {cookie}, X-Api-Key = \"{key}\", X-Part-Token = \"${{OF_THE_MACHINE}}\" }}"
        )
    }
}
