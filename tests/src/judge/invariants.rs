//! The invariants, each a function from a history to what breaks it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::canary::{found, needles};
use crate::engine::acts::CHATTER;
use crate::frame::{Frame, shorten};
use crate::judge::history::{Census, End, History, Kept, Made};
use crate::log;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// I1: every call gets one outcome in time, its own, under its own id.
    Correlation,
    /// I2: what is healthy serves on as if nothing had happened.
    Isolation,
    /// I3: nothing is left behind.
    Resources,
    /// I4: stdout carries messages alone.
    Purity,
    /// I5: no panic, and few lines.
    Quiet,
    /// I6: no call runs twice.
    AtMostOnce,
    /// I7: a fault can be seen, and that it is over too.
    Visible,
    /// What has ended does not run: not at all where it was said that nothing was sent, and soon or never otherwise.
    Ended,
    /// No client goes without answers while others have them, and no principal while another one holds all that it can get.
    Fair,
    /// What the gateway keeps stays under its ceiling.
    Ceiling,
    /// No secret of the configuration is told to anybody.
    Secret,
}

/// A breach of an invariant, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which one.
    pub of: Invariant,
    /// What happened.
    pub says: String,
}

/// The numbers that the invariants leave open.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// By how much a call may pass its deadline: the machine may be crowded.
    pub slack: Duration,
    /// By how many files and tasks the gateway may have grown.
    pub spare: usize,
    /// By how much its memory may have grown, where that is looked at.
    pub grown_kib: Option<u64>,
    /// How many lines of its own about one upstream it may write a minute.
    pub lines: usize,
}

/// How far the time that a line has may be from when the gateway let it through.
const MOMENT: Duration = Duration::from_millis(500);
/// How many lines of an upstream's own words may be repeated within ten seconds, and a few where a window begins in between.
const THEIR_LINES: usize = 41;

/// All breaches of all invariants.
#[must_use]
pub fn judge(history: &History, terms: &Terms) -> Vec<Breach> {
    [
        (Invariant::Correlation, correlation(history, terms)),
        (Invariant::Isolation, isolation(history)),
        (Invariant::Resources, resources(history, terms)),
        (Invariant::Purity, purity(&history.stdout)),
        (Invariant::Quiet, quiet(&history.stderr, terms)),
        (Invariant::AtMostOnce, at_most_once(&history.ran)),
        (Invariant::Visible, visible(history)),
        (Invariant::Ended, ended(history)),
        (Invariant::Fair, fair(history)),
        (Invariant::Ceiling, ceiling(history)),
        (Invariant::Secret, secret(history)),
    ]
    .into_iter()
    .flat_map(|(of, all)| all.into_iter().map(move |says| Breach { of, says }))
    .collect()
}

fn correlation(history: &History, terms: &Terms) -> Vec<String> {
    let mut breaches = history.complaints.clone();
    let mut say = |made: &Made, what: String| {
        breaches.push(format!("call {} of {} under id {}: {what}", made.nonce, made.upstream, shorten(&made.id)));
    };
    for made in &history.made {
        if let Some(deadline) = made.deadline.filter(|deadline| made.took > *deadline + terms.slack) {
            say(made, format!("took {:?}, and its deadline was {deadline:?}", made.took));
        }
        match made.ends.as_slice() {
            [] | [End::Closed] if made.given_up => {}
            [] => say(made, "has no outcome".into()),
            [End::Closed] => say(made, "its connection was closed".into()),
            [End::Result { id, .. } | End::Error { id, .. }] if *id != made.id => {
                say(made, format!("came back as {id}"))
            }
            [End::Result { nonce: Some(nonce), .. }] if *nonce == made.nonce => {}
            [End::Result { nonce, .. }] => say(made, format!("was given the answer of {nonce:?}")),
            [End::Error { message, .. }] if made.may_fail && !message.contains(&made.upstream) => {
                say(made, format!("its error does not name the upstream: {message}"));
            }
            [End::Error { .. }] => {}
            more => say(made, format!("has {} outcomes: {more:?}", more.len())),
        }
    }
    breaches
}

fn isolation(history: &History) -> Vec<String> {
    let mut breaches = Vec::new();
    for made in history.made.iter().filter(|made| !made.may_fail) {
        if let [End::Error { message, .. }] = made.ends.as_slice() {
            breaches.push(format!("{} is well, and call {} got: {message}", made.upstream, made.nonce));
        }
    }
    // A session beside those is that of a client that came meanwhile.
    let is_new = |kept: &Kept, id: &String| id.starts_with("session-") && !kept.before.contains(id);
    let is_same = |kept: &Kept| kept.after.iter().filter(|id| !is_new(kept, id)).eq(&kept.before);
    for kept in history.kept.iter().filter(|kept| !is_same(kept)) {
        breaches.push(format!("{} is well, and was {:?}, and is {:?}", kept.upstream, kept.before, kept.after));
    }
    breaches
}

fn resources(history: &History, terms: &Terms) -> Vec<String> {
    let mut breaches = history.unwithdrawn.clone();
    let Some((before, after)) = &history.stands else { return breaches };
    for (what, may, of) in PARTS {
        let (before, after) = (of(before), of(after));
        if after > before + may.spare(terms.spare) {
            breaches.push(format!("{what}: {before} before, {after} after"));
        }
    }
    if after.zombies > 0 {
        breaches.push(format!("{} zombies", after.zombies));
    }
    let grown = after.resident_kib.saturating_sub(before.resident_kib);
    if terms.grown_kib.is_some_and(|most| grown > most) {
        breaches.push(format!("{} KiB before, {} KiB after", before.resident_kib, after.resident_kib));
    }
    breaches
}

/// How much more of something is nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    /// Not one.
    Not,
    /// What the terms say.
    Grow,
    /// What a runtime has started for what blocks: it keeps those threads, and has so many at most.
    Pool,
}

impl May {
    fn spare(self, terms: usize) -> usize {
        match self {
            May::Not => 0,
            May::Grow => terms,
            May::Pool => 32,
        }
    }
}

type Part = (&'static str, May, fn(&Census) -> usize);

/// What is compared.
const PARTS: [Part; 6] = [
    ("children", May::Not, |census| census.children),
    ("open files", May::Grow, |census| census.files),
    ("threads", May::Pool, |census| census.threads),
    ("tasks", May::Grow, |census| census.tasks),
    ("what waits for an answer", May::Not, |census| census.pending),
    ("sessions", May::Not, |census| census.sessions),
];

impl Census {
    /// Whether this is no more than that, memory aside.
    #[must_use]
    pub fn is_within(&self, other: &Census, spare: usize) -> bool {
        let fits = |(_, may, of): &Part| of(self) <= of(other) + may.spare(spare);
        self.zombies == 0 && PARTS.iter().all(fits)
    }
}

fn purity(stdout: &[String]) -> Vec<String> {
    let is_message = |line: &str| {
        Frame::parse(line.as_bytes()).is_ok_and(|frame| {
            frame.jsonrpc.as_ref().is_some_and(|raw| raw.get() == "\"2.0\"")
                && (frame.method.is_some() || frame.is_answer() && frame.id.is_some())
        })
    };
    let foreign = stdout.iter().filter(|line| !is_message(line));
    foreign.map(|line| format!("on stdout: {}", shorten(line))).collect()
}

/// What only a panic writes.
const PANICS: [&str; 3] = ["panicked at", "stack backtrace", "called `Option::unwrap()`"];

fn quiet(stderr: &[(Duration, String)], terms: &Terms) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut about: BTreeMap<(String, Words), Vec<Duration>> = BTreeMap::new();
    for (at, line) in stderr {
        if PANICS.iter().any(|words| line.contains(words)) {
            breaches.push(shorten(line));
        }
        if let Some(upstream) = log::field(line, "upstream") {
            about.entry((upstream.to_owned(), words_of(line))).or_default().push(*at);
        }
    }
    for ((upstream, words), mut times) in about {
        let (most, window) = match words {
            Words::Ours => (terms.lines, 60),
            // Where the log has no bounds, theirs have none either.
            _ if terms.lines == usize::MAX => (usize::MAX, 10),
            _ => (THEIR_LINES, 10),
        };
        // A line has its time a moment after it was allowed.
        let window = Duration::from_secs(window) - MOMENT;
        times.sort_unstable();
        let busiest = (0..times.len()).map(|first| times[first..].partition_point(|at| *at < times[first] + window));
        let count = busiest.max().unwrap_or(0);
        if count > most {
            breaches.push(format!("{count} lines about {upstream} within {window:?}"));
        }
    }
    breaches
}

/// Whether so many lines were written about this upstream within the minute before this time that the next one may be left out.
#[must_use]
pub fn is_used_up(stderr: &[(Duration, String)], upstream: &str, at: Duration) -> bool {
    /// The gateway keeps the rest of the twenty: for itself, and for the lines that only say how an upstream fares.
    const SURE: usize = 12;
    let is_recent = |when: Duration| when + Duration::from_secs(60) > at;
    let is_counted = |line: &str| words_of(line) == Words::Ours && log::field(line, "upstream") == Some(upstream);
    stderr.iter().filter(|(when, line)| is_recent(*when) && is_counted(line)).count() >= SURE
}

/// Whose words a line of the log repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Words {
    Ours,
    OnStderr,
    Logged,
}

fn words_of(line: &str) -> Words {
    match line {
        line if log::has_message(line, CHATTER) => Words::OnStderr,
        line if log::has_message(line, "upstream log message") => Words::Logged,
        // How many of its lines were not logged.
        line if log::field(line, "stream") == Some("stderr") => Words::OnStderr,
        _ => Words::Ours,
    }
}

fn at_most_once(ran: &[String]) -> Vec<String> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for nonce in ran {
        *times.entry(nonce).or_default() += 1;
    }
    let more = times.into_iter().filter(|(_, times)| *times > 1);
    more.map(|(nonce, times)| format!("call {nonce} ran {times} times")).collect()
}

/// So long after its end a call may begin to run: what a peer's system has taken by then cannot be had back, and a peer stands still for
/// two time-outs of ten seconds, and for as long as it takes to see their ends.
const LATEST_RUN: Duration = Duration::from_secs(25);

fn ended(history: &History) -> Vec<String> {
    let mut over: HashMap<String, (u64, bool)> = HashMap::new();
    for ended in history.over.iter().cloned().chain(history.made.iter().filter_map(Made::over)) {
        over.insert(ended.nonce, (ended.at, ended.is_unsent));
    }
    let mut breaches = Vec::new();
    for (nonce, ran) in &history.ran_at {
        let Some((at, is_unsent)) = over.get(nonce) else { continue };
        let late = Duration::from_micros(ran.saturating_sub(*at));
        if *is_unsent {
            breaches.push(format!("call {nonce} was said not to have been sent, and ran"));
        } else if late > LATEST_RUN {
            breaches.push(format!("call {nonce} ran {late:?} after its end"));
        }
    }
    breaches
}

/// So many answers of one client make it odd that another has none.
const MANY_ANSWERS: usize = 100;
/// So many calls without an answer are more than chance.
const MANY_CALLS: usize = 5;

/// So many answers each principal has in a siege, and its new client and half of its calls are served as fast as this. What is
/// held is held until the siege ends, so those who wait for it wait longer; a machine under load needs seconds for the others.
const FEWEST_ANSWERS: usize = 4;
const FAST: Duration = Duration::from_secs(12);

/// So many calls of each principal end in a siege before it is over.
const JUDGED_BY: usize = 2 * FEWEST_ANSWERS;

/// Whether each of these principals has ended as many calls as a siege is judged by that has lasted since then.
#[must_use]
pub fn has_enough(made: &[Made], principals: &[&str], since: u64) -> bool {
    principals.iter().all(|principal| of_siege(made, principal, (since, u64::MAX)).count() >= JUDGED_BY)
}

/// The calls by which it is judged how a principal fares in a time.
fn of_siege<'a>(made: &'a [Made], principal: &str, time: (u64, u64)) -> impl Iterator<Item = &'a Made> {
    let is_of =
        move |made: &&Made| !made.may_fail && !made.given_up && made.principal == principal && made.is_within(time);
    made.iter().filter(is_of)
}

fn fair(history: &History) -> Vec<String> {
    let mut clients: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let of_the_well = || history.made.iter().filter(|made| !made.may_fail && !made.given_up);
    for made in of_the_well() {
        let (calls, answers) = clients.entry(made.caller).or_default();
        *calls += 1;
        *answers += usize::from(made.is_answered());
    }
    let most = clients.values().map(|(_, answers)| *answers).max().unwrap_or_default();
    let starved = clients.iter().filter(|(_, (calls, answers))| *calls >= MANY_CALLS && *answers == 0);
    let says = |caller: &usize| format!("client {caller} has no answer, and another one has {most}");
    let mut breaches: Vec<String> = starved.filter(|_| most >= MANY_ANSWERS).map(|(caller, _)| says(caller)).collect();
    for siege in &history.sieges {
        let (of, held) = (&siege.of, siege.held);
        if held == 0 {
            breaches.push(format!("nothing was held of {of}: that was no siege"));
        }
        for (principal, new) in &siege.others {
            let made: Vec<&Made> = of_siege(&history.made, principal, siege.time).collect();
            let fast = made.iter().filter(|made| made.is_answered() && made.took <= FAST).count();
            if fast < FEWEST_ANSWERS.max(made.len() / 2) {
                let calls = made.len();
                breaches
                    .push(format!("{principal} had {fast} of {calls} calls answered while another held {held} {of}"));
            }
            match new {
                Ok(took) if *took <= FAST => {}
                what => breaches.push(format!("a new client of {principal} while another held {held} {of}: {what:?}")),
            }
        }
    }
    breaches
}

fn ceiling(history: &History) -> Vec<String> {
    let over = history.peak.filter(|(peak, most)| peak > most);
    over.map(|(peak, most)| format!("{peak} KiB at the most, and {most} are allowed")).into_iter().collect()
}

fn secret(history: &History) -> Vec<String> {
    let needles: Vec<String> = history.canaries.iter().flat_map(|stem| needles(stem)).collect();
    let errors = history.made.iter().flat_map(|made| &made.ends).flat_map(|end| match end {
        End::Error { message, data, .. } => vec![("a client's error", message), ("the data of a client's error", data)],
        _ => Vec::new(),
    });
    let lines = history.stderr.iter().map(|(_, line)| ("the log", line));
    let pages = history.pages.iter().map(|(place, page)| (place.as_str(), page));
    let told = errors.chain(lines).chain(pages);
    told.filter_map(|(place, text)| Some(format!("in {place}: {}", found(text, &needles)?))).collect()
}

fn visible(history: &History) -> Vec<String> {
    let mut breaches = Vec::new();
    for sight in &history.sights {
        let places = [
            (sight.page, "is not on the page of the upstreams"),
            (sight.metric, "is not in the metrics"),
            (sight.line, "is in no line of the log"),
            (sight.clears, "is over, and still shown"),
        ];
        let missing = places.iter().filter(|(seen, _)| *seen == Some(false));
        breaches.extend(missing.map(|(_, what)| format!("{} {what}", sight.fault)));
    }
    breaches
}

#[cfg(test)]
#[path = "invariants/tests.rs"]
mod tests;
