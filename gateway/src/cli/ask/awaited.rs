//! What a command waits for at a gateway of its own: the upstream that owns what is asked for, and no other.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::cli::look::Row;
use crate::cli::process::failure::note;
use crate::config::Config;
use crate::config::fault::printable;
use crate::router::config::Strategy;

/// After so long a person is told what is waited for.
const MOMENT: Duration = Duration::from_secs(2);
/// What an upstream offers is in the lists so soon after it is known.
const LISTED_WITHIN: Duration = Duration::from_secs(1);

/// What a command asks a gateway for.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// What all offer; where a name is given, what an upstream of this name offers, or what has it in its own.
    List(Option<&'a str>),
    /// The tool of this name.
    Tool(&'a str),
}

/// What is waited for: the owner of what is wanted. Where only the tool is known, all upstreams are until it is there, as long as a first
/// list waits.
pub(super) struct Awaited {
    owner: Option<String>,
    /// What the names of its tools and prompts begin with, where all names have such a beginning.
    begins: Option<String>,
    /// What is in the name of an item, or is its name.
    name: String,
    is_tool: bool,
    began: Instant,
    until: Instant,
    /// So many upstreams are known to offer something, and since when.
    known: (usize, Instant),
    /// Since then none of those that matter is on the way.
    settled: Option<Instant>,
    told: HashSet<(String, Option<String>)>,
}

/// What is to be done by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing.
    Wait,
    /// To look whether it is listed.
    Look,
    /// To take the list as it is.
    Take,
}

impl Awaited {
    /// `None` where the gateway waits as for every first list.
    pub(super) fn new(config: &Config, wanted: Wanted<'_>, now: Instant) -> Option<Self> {
        let has_prefixes =
            config.naming.strategy == Strategy::Prefix && config.upstreams.iter().all(|one| !one.prefix.is_empty());
        let begins = |prefix: &str| format!("{prefix}{}", config.naming.separator);
        let (owner, name, is_tool) = match wanted {
            Wanted::List(None) => return None,
            Wanted::List(Some(name)) => (Some(config.upstreams.iter().find(|one| &*one.name == name)?), name, false),
            Wanted::Tool(tool) => {
                let owns = config.upstreams.iter().filter(|one| has_prefixes && tool.starts_with(&begins(&one.prefix)));
                (owns.max_by_key(|one| one.prefix.len()), tool, true)
            }
        };
        // Nobody comes who has a tool of one that is switched off or left out.
        let mut absent = config.disabled.iter().map(|off| &**off).chain(config.left_out.iter().map(|one| &*one.name));
        let is_off = is_tool && owner.is_none() && absent.any(|off| name.starts_with(&begins(off)));
        let wait = if is_off { Duration::ZERO } else { config.catalog.first_wait(true) };
        Some(Self {
            owner: owner.map(|one| one.name.to_string()),
            begins: owner.filter(|_| has_prefixes).map(|one| begins(&one.prefix)),
            name: name.to_owned(),
            is_tool,
            began: now,
            until: now + wait,
            known: (0, now),
            settled: None,
            told: HashSet::new(),
        })
    }

    /// What is to be done as these stand, of the list that has this key. They are not known where a gateway cannot be looked at.
    pub(super) fn turn(&mut self, rows: Option<&[Row]>, key: &str, now: Instant) -> Turn {
        let Some(rows) = rows else { return if now < self.until { Turn::Look } else { Turn::Take } };
        let matters = || rows.iter().filter(|row| self.owner.as_ref().is_none_or(|owner| *owner == row.name));
        let coming: Vec<&Row> = matters().filter(|row| self.is_coming(row)).collect();
        let may_be_listed = matters().any(|row| match row.offers(key) {
            Some(count) => count > 0,
            None => row.is_up() || row.state == "idle",
        });
        if !coming.is_empty() {
            if now >= self.began + MOMENT {
                coming.iter().for_each(|row| self.tell(row));
            }
            self.settled = None;
            return match self.owner {
                Some(_) => Turn::Wait,
                None if now >= self.until => Turn::Take,
                None => self.of_others(rows, now),
            };
        }
        let settled = *self.settled.get_or_insert(now);
        if may_be_listed && now < settled + LISTED_WITHIN { Turn::Look } else { Turn::Take }
    }

    /// Whether a name in a list, or a URI, shows that what is wanted is there.
    pub(super) fn is_it(&self, listed: &str, is_name: bool) -> bool {
        match &self.begins {
            Some(begins) if is_name => listed.starts_with(begins),
            _ if self.is_tool => listed == self.name,
            _ => listed.contains(&self.name),
        }
    }

    /// A call needs an upstream that is up; a list is known of one that was here before.
    fn is_coming(&self, row: &Row) -> bool {
        row.is_coming() && (self.is_tool || row.items.is_none())
    }

    /// The list is looked at each time that more of it is known.
    fn of_others(&mut self, rows: &[Row], now: Instant) -> Turn {
        let known = rows.iter().filter(|row| row.items.is_some()).count();
        if known != self.known.0 {
            self.known = (known, now);
        }
        if known > 0 && now < self.known.1 + LISTED_WITHIN { Turn::Look } else { Turn::Wait }
    }

    /// Says what is waited for, each time that there is another cause to name.
    fn tell(&mut self, row: &Row) {
        let cause = row.cause.as_deref().map(|cause| printable(cause.trim()));
        if self.told.insert((row.name.clone(), cause.clone())) {
            let cause = cause.as_deref().unwrap_or("still starting");
            note(&format!("waiting for `{}`: {cause}", printable(&row.name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;

    const THREE: &str = "[upstreams.ok]\ncommand = 'a'\n[upstreams.okay]\ncommand = 'a'\nprefix = 'fine'\n[upstreams.slow]\ncommand = 'a'\n";

    fn awaited(more: &str, wanted: Wanted<'_>, now: Instant) -> Option<Awaited> {
        let scratch = Scratch::new();
        let files = vec![scratch.write("trunkline.toml", &format!("{more}\n{THREE}"))];
        let loaded = load(Inputs { files, ..Inputs::default() }).unwrap_or_else(|faults| panic!("{faults}"));
        Awaited::new(&loaded.config, wanted, now)
    }

    fn rows(states: &[(&str, &str)]) -> Vec<Row> {
        let own = r#""transport":"stdio","since_seconds":1,"restarts":0"#;
        let one = |(name, state): &(&str, &str)| format!("{{\"name\":\"{name}\",{own},{state}}}");
        states.iter().map(|state| serde_json::from_str(&one(state)).unwrap()).collect()
    }

    const STARTING: &str = r#""state":"starting""#;
    const FAILED: &str = r#""state":"backing_off","cause":"it exited""#;
    const AGAIN: &str = r#""state":"starting","downtime_seconds":5,"last_error":{"cause":"it exited","ago_seconds":5}"#;
    const ENDING: &str = r#""state":"stopping","cause":"it exited""#;
    const READY: &str = r#""state":"ready","items":{"tools":1,"resources":0,"templates":0,"prompts":0}"#;
    const KNOWN: &str = r#""state":"starting","items":{"tools":1,"resources":0,"templates":0,"prompts":0}"#;

    #[allow(clippy::disallowed_methods, reason = "any point in time does")]
    fn begin() -> Instant {
        Instant::now()
    }

    #[test]
    fn only_the_owner_is_waited_for_and_not_once_it_has_failed() {
        let now = begin();
        for (wanted, owner, other, begins) in [
            (Wanted::Tool("ok__x"), "ok", "slow", "ok__"),
            (Wanted::Tool("fine__x"), "okay", "ok", "fine__"),
            (Wanted::List(Some("okay")), "okay", "ok", "fine__"),
        ] {
            let mut it = awaited("", wanted, now).unwrap();
            let mut turn = |own: &str, after: u64| {
                let rows = rows(&[(other, STARTING), (owner, own)]);
                it.turn(Some(&rows), "tools", now + Duration::from_millis(after))
            };
            assert_eq!(turn(STARTING, 0), Turn::Wait, "{owner}");
            assert_eq!(turn(ENDING, 60_000), Turn::Wait, "what comes of it is seen in a moment");
            for failed in [FAILED, AGAIN, r#""state":"stopped""#, r#""state":"failed""#] {
                assert_eq!(turn(failed, 60_000), Turn::Take, "{failed}");
            }
            assert_eq!([turn(READY, 60_000), turn(READY, 62_000)], [Turn::Look, Turn::Take], "the list lags behind");
            assert!(it.is_it(&format!("{begins}any"), true) && !it.is_it("slow__x", true), "{owner}");
        }
        let mut it = awaited("", Wanted::List(Some("ok")), now).unwrap();
        assert_eq!(it.turn(Some(&rows(&[("ok", READY)])), "prompts", now), Turn::Take, "it has none");
        assert_eq!(it.turn(Some(&rows(&[("ok", KNOWN)])), "tools", now), Turn::Look, "it was here before");
        let mut it = awaited("", Wanted::Tool("ok__x"), now).unwrap();
        assert_eq!(it.turn(Some(&rows(&[("ok", KNOWN)])), "tools", now), Turn::Wait, "a call needs it");
    }

    #[test]
    fn a_tool_that_bears_no_name_of_its_owner_is_looked_for_as_long_as_a_first_list_waits() {
        let now = begin();
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        let flat = "[naming]\nstrategy = 'flat'\n[catalog]\nfirst_list_wait = 5";
        for (more, tool) in [(flat, "ok__x"), ("[catalog]\nfirst_list_wait = 5", "x")] {
            let mut it = awaited(more, Wanted::Tool(tool), now).unwrap();
            let none = rows(&[("ok", STARTING), ("slow", STARTING)]);
            assert_eq!(it.turn(Some(&none), "tools", at(0)), Turn::Wait);
            let one = rows(&[("ok", READY), ("slow", STARTING)]);
            assert_eq!(
                [1, 3, 5].map(|second| it.turn(Some(&one), "tools", at(second))),
                [Turn::Look, Turn::Wait, Turn::Take]
            );
            let all = rows(&[("ok", READY), ("slow", FAILED)]);
            assert_eq!([2, 3].map(|second| it.turn(Some(&all), "tools", at(second))), [Turn::Look, Turn::Take]);
            assert!(it.is_it(tool, true) && !it.is_it("ok__xy", true));
            // One that cannot be looked at.
            assert_eq!([4, 5].map(|second| it.turn(None, "tools", at(second))), [Turn::Look, Turn::Take]);
        }
        let mut off = awaited("[upstreams.off]\ncommand = 'a'\nenabled = false", Wanted::Tool("off__x"), now).unwrap();
        assert_eq!(off.turn(Some(&rows(&[("slow", STARTING)])), "tools", now), Turn::Take, "it does not come");
        for wanted in [Wanted::List(None), Wanted::List(Some("o"))] {
            assert!(awaited("", wanted, now).is_none(), "the gateway waits");
        }
    }

    #[test]
    fn what_is_waited_for_is_told_once_for_each_cause() {
        let now = begin();
        let mut it = awaited("", Wanted::Tool("slow__x"), now).unwrap();
        let caused = r#""state":"starting","cause":"no answer yet""#;
        for (state, seconds, told) in
            [(STARTING, 1, 0), (STARTING, 2, 1), (STARTING, 3, 1), (caused, 4, 2), (caused, 5, 2)]
        {
            let rows = rows(&[("ok", STARTING), ("slow", state)]);
            let turn = it.turn(Some(&rows), "tools", now + Duration::from_secs(seconds));
            assert_eq!((turn, it.told.len()), (Turn::Wait, told), "after {seconds} s");
        }
    }
}
