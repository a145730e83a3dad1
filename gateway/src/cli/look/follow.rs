//! `trunkline logs` and `calls`: what a running gateway keeps of its upstreams' stderr and of its calls; with `-f` what comes.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};

use super::page::{self, Call, CallsPage, Whole};
use super::row::Row;
use crate::cli::args::setup::{Calls, Logs};
use crate::cli::process::table::{Line, Room};
use crate::cli::process::{Failure, answer};
use crate::config::fault::printable;
use crate::metrics::OUTCOMES;
use crate::telemetry::logging::{Zone, say};

pub(crate) use super::top::run as top;

/// What uses something that an upstream offers.
const USES: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];
/// So often a gateway is asked what is new.
const EVERY: Duration = Duration::from_secs(1);

/// Prints the last lines that upstreams wrote to stderr.
pub(crate) fn logs(logs: &Logs) -> Result<(), Failure> {
    let mut known: HashMap<String, Vec<String>> = HashMap::new();
    let mut is_first = true;
    loop {
        let whole = Whole::of(&logs.look)?;
        let named = |row: &&Row| logs.name.as_ref().is_none_or(|name| *name == row.name);
        if let Some(name) = logs.name.as_ref().filter(|_| !whole.upstreams.iter().any(|row| named(&row))) {
            return Err(anyhow!("{}", whole.unknown(name)).into());
        }
        if std::mem::take(&mut is_first) && whole.upstreams.iter().filter(named).all(|row| row.stderr.is_empty()) {
            say_none("no lines on stderr yet", logs.follow, logs.look.json);
        }
        let mut out = answer();
        for row in whole.upstreams.iter().filter(named) {
            let before = known.insert(row.name.clone(), row.stderr.clone()).unwrap_or_default();
            for line in fresh(&before, &row.stderr) {
                let name = printable(&row.name);
                match logs.look.json {
                    true => out.json(&serde_json::json!({ "upstream": row.name, "line": line }).to_string())?,
                    false if logs.name.is_some() => writeln!(out, "{}", printable(line))?,
                    false => writeln!(out, "{name}  {}", printable(line))?,
                }
            }
        }
        out.flush()?;
        drop(out);
        if !logs.follow {
            return Ok(());
        }
        pause();
    }
}

/// Says on stderr that there is nothing to print, and whether that is waited for. What reads JSON reads nothing.
fn say_none(what: &str, is_awaited: bool, is_json: bool) {
    if !is_json {
        say(&format!("{what}{}", if is_awaited { "; waiting for the first (Ctrl-C ends)" } else { "" }));
    }
}

/// Waits until a gateway is asked again.
#[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
fn pause() {
    std::thread::sleep(EVERY);
}

/// The lines of `now` that come behind those of `before`: the last lines are kept, so the first ones go.
fn fresh<'a>(before: &[String], now: &'a [String]) -> &'a [String] {
    let most = before.len().min(now.len());
    let shared = (0..=most).rev().find(|shared| before[before.len() - shared..] == now[..*shared]);
    &now[shared.unwrap_or_default()..]
}

/// Prints the last calls and those under way.
pub(crate) fn calls(calls: &Calls) -> Result<(), Failure> {
    let (mut known, mut is_first, mut is_headed): (Vec<String>, bool, bool) = (Vec::new(), true, false);
    let zone = Zone::here();
    loop {
        let (status, text) = page::get(&calls.look, "/api/v1/calls")?;
        if status != 200 {
            return Err(anyhow!("the gateway says: {}", printable(text.trim())).into());
        }
        let page: CallsPage =
            serde_json::from_str(&text).context("not a Trunkline gateway, or one of another version")?;
        let is_shown = |call: &&Call| calls.all || USES.contains(&&*call.method);
        let mut ended: Vec<&Call> = page.ended.iter().collect();
        ended.sort_by(|a, b| {
            b.ended_ago_seconds.unwrap_or_default().total_cmp(&a.ended_ago_seconds.unwrap_or_default())
        });
        // By what stays the same of a call, and not by times: an answer may take as long as calls do.
        let all: Vec<String> = ended.iter().map(|call| same(call)).collect();
        let is_new = fresh(&known, &all).len();
        let ended: Vec<&Call> = ended.split_off(all.len() - is_new).into_iter().filter(is_shown).collect();
        known = all;
        let open: Vec<&Call> = page.open.iter().filter(is_shown).filter(|_| !calls.follow).collect();
        if is_first && ended.is_empty() && open.is_empty() {
            let is_all = calls.all || page.ended.is_empty() && page.open.is_empty();
            let others = if is_all { "" } else { " (`--all` shows requests for lists, too)" };
            say_none(&format!("no calls yet{others}"), calls.follow, calls.look.json);
        }
        let mut out = answer();
        let columns = Room::of_stdout().columns;
        for call in ended.into_iter().chain(open) {
            if !calls.look.json && !std::mem::replace(&mut is_headed, true) {
                writeln!(out, "{}", line("BEGAN", "OUTCOME", "TOOK", "WHAT", columns))?;
            }
            match calls.look.json {
                true => out.json(&serde_json::to_string(call).context("a call cannot be written")?)?,
                false => writeln!(out, "{}", shown(call, &zone, now(), columns))?,
            }
        }
        out.flush()?;
        drop(out);
        if !calls.follow {
            return Ok(());
        }
        is_first = false;
        pause();
    }
}

/// What stays the same of a call that has ended.
fn same(call: &Call) -> String {
    let Call { principal, method, upstream, name, duration_seconds, outcome, ended_ago_seconds: _ } = call;
    format!("{principal:?} {method:?} {upstream:?} {name:?} {duration_seconds} {outcome:?}")
}

/// So long it is since 1970.
#[allow(clippy::disallowed_methods, reason = "the time of day is for a person, and times nothing")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A call in one line, with the time of day at which it began.
fn shown(call: &Call, zone: &Zone, now: Duration, columns: usize) -> String {
    let ago = Duration::try_from_secs_f64(call.duration_seconds + call.ended_ago_seconds.unwrap_or_default());
    let began = now.saturating_sub(ago.unwrap_or_default());
    let began = zone.time_of_day(i64::try_from(began.as_secs()).unwrap_or_default(), began.subsec_millis());
    let outcome = call.outcome.as_deref().unwrap_or("running");
    let what = if call.name.is_empty() { call.method.clone() } else { format!("{} {}", call.method, call.name) };
    let upstream = call.upstream.as_deref().map(|name| format!("  {name}")).unwrap_or_default();
    let principal = if call.principal.is_empty() { String::new() } else { format!("  by {}", call.principal) };
    let took = format!("{:.3} s", call.duration_seconds);
    line(&began, outcome, &took, &format!("{what}{upstream}{principal}"), columns)
}

/// As wide as the longest outcome.
const OUTCOME: usize = {
    let (mut widest, mut at) = ("running".len(), 0);
    while at < OUTCOMES.len() {
        if OUTCOMES[at].len() > widest {
            widest = OUTCOMES[at].len();
        }
        at += 1;
    }
    widest
};

/// Cells of the table of calls: lines come one by one, so that no column waits for the widest.
fn line(began: &str, outcome: &str, took: &str, what: &str, columns: usize) -> String {
    Line::plain(printable(&format!("{began:12}  {outcome:OUTCOME$}  {took:>11}  {what}"))).cut(columns, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_stands_below_its_headings_with_the_time_at_which_it_began() {
        let call: Call = serde_json::from_str(
            r#"{"method":"tools/call","name":"echo","upstream":"up","principal":"me","duration_seconds":1.5,"outcome":"ok","ended_ago_seconds":2.5}"#,
        )
        .unwrap();
        let at = Duration::from_secs(3600 + 4);
        let whole = shown(&call, &Zone::default(), at, usize::MAX);
        assert_eq!(whole, "01:00:00.000  ok                        1.500 s  tools/call echo  up  by me");
        let head = line("BEGAN", "OUTCOME", "TOOK", "WHAT", usize::MAX);
        assert_eq!(head.find("WHAT"), whole.find("tools/call"));
        for outcome in OUTCOMES {
            let long = line("01:00:00.000", outcome, "1.500 s", "tools/call", usize::MAX);
            assert_eq!(head.find("WHAT"), long.find("tools/call"), "{outcome}");
        }
        assert_eq!(shown(&call, &Zone::default(), at, 52), "01:00:00.000  ok                        1.500 s  to…");
        // A clock that was set back is none to fail by.
        let odd = Call { duration_seconds: f64::NAN, ..call };
        assert!(shown(&odd, &Zone::default(), Duration::ZERO, usize::MAX).starts_with("00:00:00.000"));
    }

    #[test]
    fn a_call_that_has_ended_is_known_again_whenever_it_is_looked_at() {
        let call = |name: &str, ago: f64| Call {
            principal: String::new(),
            method: "tools/call".to_owned(),
            upstream: None,
            name: name.to_owned(),
            duration_seconds: 0.25,
            outcome: Some("ok".to_owned()),
            ended_ago_seconds: Some(ago),
        };
        // However long the answer of the gateway took.
        let before = [same(&call("a", 0.5))];
        let now = [same(&call("a", 9.5)), same(&call("b", 9.4)), same(&call("c", 0.1))];
        assert_eq!(fresh(&before, &now), &now[1..]);
    }

    #[test]
    fn only_what_is_new_is_printed() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(fresh(&lines("abc"), &lines("bcd")), lines("d"));
        assert_eq!(fresh(&lines(""), &lines("ab")), lines("ab"));
        assert_eq!(fresh(&lines("ab"), &lines("ab")), lines(""));
        assert_eq!(fresh(&lines("ab"), &lines("xy")), lines("xy"));
    }
}
