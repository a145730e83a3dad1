//! What a soak found: counted as it goes, told at the end.

use std::collections::BTreeMap;
use trunkline_tests::judge::history::{Census, End, History, Made, Over};
use trunkline_tests::judge::invariants::{Breach, Terms, judge};
use trunkline_tests::machine::Fault;
use trunkline_tests::machine::round::Outcome;

/// Something that is counted, and how it is read.
type Row = (&'static str, fn(&Census) -> u64);

/// How many breaches are told in words.
const TOLD: usize = 30;

/// The count of a run.
pub(crate) struct Report {
    number: u64,
    terms: Terms,
    faults: BTreeMap<String, usize>,
    calls: u64,
    own: u64,
    given_up: u64,
    errors: u64,
    crossed: u64,
    lost: u64,
    breaches: Vec<Breach>,
    over: Vec<Over>,
    canaries: Vec<String>,
    /// How often the hostile principal held something, and how much at the least.
    sieges: BTreeMap<String, (usize, usize)>,
}

impl Report {
    /// Nothing has happened yet.
    pub(crate) fn new(number: u64, terms: Terms, canaries: Vec<String>) -> Self {
        let faults = BTreeMap::new();
        Self {
            number,
            terms,
            faults,
            calls: 0,
            own: 0,
            given_up: 0,
            errors: 0,
            crossed: 0,
            lost: 0,
            breaches: Vec::new(),
            over: Vec::new(),
            canaries,
            sieges: BTreeMap::new(),
        }
    }

    /// A round, and what was called meanwhile.
    pub(crate) fn add(&mut self, faults: &[Fault], outcome: Outcome, mut made: Vec<Made>) {
        for fault in faults {
            *self.faults.entry(format!("{:?}", fault.kind)).or_default() += 1;
        }
        made.extend(outcome.made);
        self.count(&made);
        if let Some(siege) = &outcome.siege {
            let (count, least) = self.sieges.entry(siege.of.clone()).or_insert((0, usize::MAX));
            (*count, *least) = (*count + 1, siege.held.min(*least));
        }
        let (sights, kept, complaints) = (outcome.sights, outcome.kept, outcome.complaints);
        let (pages, sieges, canaries) = (outcome.pages, outcome.siege.into_iter().collect(), self.canaries.clone());
        let history = History { made, sights, kept, complaints, pages, sieges, canaries, ..History::default() };
        self.hold(&history, &format!("{faults:?}"));
    }

    /// What was called in between.
    pub(crate) fn add_calls(&mut self, made: Vec<Made>) {
        self.count(&made);
        let canaries = self.canaries.clone();
        self.hold(&History { made, canaries, ..History::default() }, "between faults");
    }

    /// What is known only at the end.
    pub(crate) fn end(&mut self, history: History) {
        let history = History { over: std::mem::take(&mut self.over), ..history };
        self.hold(&history, "at the end");
    }

    fn hold(&mut self, history: &History, when: &str) {
        for breach in judge(history, &self.terms) {
            println!("BREACH of {:?}, {when}: {}", breach.of, breach.says);
            self.breaches.push(breach);
        }
    }

    fn count(&mut self, made: &[Made]) {
        for made in made {
            self.calls += 1;
            self.over.extend(made.over());
            self.given_up += u64::from(made.given_up);
            match made.ends.as_slice() {
                [] | [End::Closed] if made.given_up => {}
                [End::Result { nonce, .. }] if nonce.as_ref() == Some(&made.nonce) => self.own += 1,
                [End::Result { .. }] => self.crossed += 1,
                [End::Error { .. }] => self.errors += 1,
                _ => self.lost += 1,
            }
        }
    }

    /// Whether nothing was broken.
    pub(crate) fn holds(&self) -> bool {
        self.breaches.is_empty()
    }

    /// How it stands, in a line.
    pub(crate) fn line(&self) -> String {
        let faults: usize = self.faults.values().sum();
        format!("{faults} faults, {} calls, {} errors, {} breaches", self.calls, self.errors, self.breaches.len())
    }

    /// All of it, in words.
    pub(crate) fn text(&self, before: Census, after: Census) -> String {
        let mut lines = vec![format!("seed {}: {}", self.number, self.line())];
        let kinds: Vec<String> = self.faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        lines.push(format!("  faults     {}", kinds.join(", ")));
        let sieges: Vec<String> =
            self.sieges.iter().map(|(of, (count, least))| format!("{of} {count} (at least {least})")).collect();
        lines.push(format!("  sieges     {}", sieges.join(", ")));
        lines.push(format!("  calls      {} answered, {} errors of sick upstreams", self.own, self.errors));
        lines.push(format!("  given up   {} by their clients", self.given_up));
        lines.push(format!("  crossed    {}\n  lost       {}", self.crossed, self.lost));
        let rows: [Row; 8] = [
            ("processes", |census| census.children as u64),
            ("zombies", |census| census.zombies as u64),
            ("files", |census| census.files as u64),
            ("threads", |census| census.threads as u64),
            ("tasks", |census| census.tasks as u64),
            ("pending", |census| census.pending as u64),
            ("sessions", |census| census.sessions as u64),
            ("resident", |census| census.resident_kib),
        ];
        for (what, of) in rows {
            let unit = if what == "resident" { " KiB" } else { "" };
            lines.push(format!("  {what:10} {} after the warm-up, {} at the end{unit}", of(&before), of(&after)));
        }
        let told = self.breaches.iter().take(TOLD).map(|breach| format!("  {:?}: {}", breach.of, breach.says));
        lines.push(if self.holds() { "all of it holds".into() } else { "BROKEN:".into() });
        lines.extend(told);
        lines.join("\n")
    }
}
