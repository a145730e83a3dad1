//! The seven invariants, each a function from a history to what breaks it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::engine::acts::CHATTER;
use crate::frame::{Frame, shorten};
use crate::judge::history::{Census, End, History, Made};

/// One of the seven.
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
    for kept in history.kept.iter().filter(|kept| kept.before != kept.after) {
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
    /// What a runtime keeps for a while.
    Linger,
}

impl May {
    fn spare(self, terms: usize) -> usize {
        match self {
            May::Not => 0,
            May::Grow => terms,
            May::Linger => 8,
        }
    }
}

type Part = (&'static str, May, fn(&Census) -> usize);

/// What is compared.
const PARTS: [Part; 6] = [
    ("children", May::Not, |census| census.children),
    ("open files", May::Grow, |census| census.files),
    ("threads", May::Linger, |census| census.threads),
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
        if let Some(upstream) = named_in(line) {
            about.entry((upstream, words_of(line))).or_default().push(*at);
        }
    }
    for ((upstream, words), mut times) in about {
        let (most, window) = if words == Words::Ours { (terms.lines, 60) } else { (THEIR_LINES, 10) };
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
    let is_counted = |line: &str| words_of(line) == Words::Ours && named_in(line).as_deref() == Some(upstream);
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
        line if line.contains(&format!("\"message\":\"{CHATTER}\"")) => Words::OnStderr,
        line if line.contains("\"message\":\"log message of an upstream\"") => Words::Logged,
        // How many of its lines were not logged.
        line if line.contains("\"stream\":\"stderr\"") => Words::OnStderr,
        _ => Words::Ours,
    }
}

/// The upstream that a line of the log is about.
#[must_use]
pub fn named_in(line: &str) -> Option<String> {
    let rest = &line[line.find("\"upstream\":\"")? + "\"upstream\":\"".len()..];
    Some(rest[..rest.find('"')?].to_owned())
}

fn at_most_once(ran: &[String]) -> Vec<String> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for nonce in ran {
        *times.entry(nonce).or_default() += 1;
    }
    let more = times.into_iter().filter(|(_, times)| *times > 1);
    more.map(|(nonce, times)| format!("call {nonce} ran {times} times")).collect()
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
