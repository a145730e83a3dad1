//! `trunkline top`: the upstreams of a running gateway and its calls, drawn again each second; printed once where no terminal draws.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use super::ls::absent;
use super::page::{self, Call, CallsPage, Whole};
use super::row::Row;
use super::screen::Screen;
use crate::cli::args::Look;
use crate::cli::process::table::{Line, Room, obeys, table};
use crate::cli::process::{Failure, answer, runtime};
use crate::config::fault::printable;
use crate::gateway::ShutdownSignals;
use crate::secrets::visible_json;

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Shows it until `q` or Ctrl-C.
pub(crate) fn run(look: &Look) -> Result<(), Failure> {
    // Nobody could end it where nobody can type.
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() || !obeys() || look.json {
        return once(look);
    }
    // Which gateway is meant is found out before the screen is taken.
    let _first = page::page(look)?;
    let look = look.clone();
    runtime::block_on(async move {
        let (mut told, mut quit) = (ShutdownSignals::new()?, signal(SignalKind::quit())?);
        // A gateway does not end with its terminal; nobody sees what is drawn on one that is gone.
        let mut hangup = signal(SignalKind::hangup())?;
        let mut resized = signal(SignalKind::window_change())?;
        let mut screen = Screen::take()?;
        let (mut keys, mut typed) = (tokio::io::stdin(), [0; 32]);
        loop {
            let asked = look.clone();
            let seen =
                tokio::task::spawn_blocking(move || Seen::look(&asked).map_err(|failure| format!("{failure:?}")));
            let lines = tokio::select! {
                seen = seen => match seen.unwrap_or_else(|error| Err(error.to_string())) {
                    Ok(seen) => seen.lines(screen.columns()),
                    Err(why) => vec![Line::plain("no gateway; waiting for one (q quits)".to_owned()), Line::plain(printable(&why))],
                },
                () = told.to_end() => return Ok(()),
                _ = quit.recv() => return Ok(()),
                _ = hangup.recv() => return Ok(()),
            };
            screen.draw(&lines)?;
            tokio::select! {
                // Nobody types where stdin has ended.
                read = keys.read(&mut typed) => match read {
                    Ok(count @ 1..) if !typed[..count].iter().any(|key| QUITS.contains(key)) => {}
                    _ => return Ok(()),
                },
                () = tokio::time::sleep(EVERY) => {}
                _ = resized.recv() => {}
                () = told.to_end() => return Ok(()),
                _ = quit.recv() => return Ok(()),
                _ = hangup.recv() => return Ok(()),
            }
        }
    })
}

/// `q`, and what Ctrl-C and Ctrl-D send while the terminal makes no signals of keys.
const QUITS: &[u8] = b"qQ\x03\x04";

fn once(look: &Look) -> Result<(), Failure> {
    let seen = Seen::look(look)?;
    let mut out = answer();
    if look.json {
        writeln!(out, "{}", visible_json(&seen.raw()))?;
        return Ok(());
    }
    let room = Room::of_stdout();
    for line in seen.lines(room.columns) {
        writeln!(out, "{}", line.cut(room.columns, room.has_colour))?;
    }
    Ok(())
}

/// What is seen of a gateway at one moment.
struct Seen {
    pages: [String; 2],
    whole: Whole,
    calls: CallsPage,
}

impl Seen {
    fn look(look: &Look) -> Result<Self, Failure> {
        let first = page::page(look)?;
        let whole = page::parse(&first)?;
        let (status, second) = page::get(look, "/api/v1/calls")?;
        let calls =
            if status == 200 { serde_json::from_str(&second).unwrap_or_default() } else { CallsPage::default() };
        Ok(Self { pages: [first, second], whole, calls })
    }

    fn raw(&self) -> String {
        let [status, calls] =
            self.pages.each_ref().map(|page| serde_json::from_str(page).unwrap_or(serde_json::Value::Null));
        format!("{:#}", serde_json::json!({ "status": status, "calls": calls }))
    }

    fn lines(&self, columns: usize) -> Vec<Line> {
        let rows = &self.whole.upstreams;
        let ready = rows.iter().filter(|row| row.is_up()).count();
        let tools: usize = rows.iter().filter_map(|row| row.items.as_ref()).map(|items| items.tools).sum();
        let state = if self.whole.ready { "" } else { ", draining" };
        let head = format!(
            "{ready} of {} ready, {}, {} running{state}",
            page::counted(rows.len(), "server"),
            page::counted(tools, "tool"),
            page::counted(self.calls.open.len(), "call"),
        );
        let mut lines = vec![Line::plain(head), Line::plain(String::new())];
        lines.extend(self.table(columns));
        lines.extend(self.whole.configuration().lines().map(|line| Line::plain(line.to_owned())));
        if !self.calls.open.is_empty() {
            lines.push(Line::plain(String::new()));
        }
        let mut open: Vec<_> = self.calls.open.iter().collect();
        open.sort_by(|a, b| b.duration_seconds.total_cmp(&a.duration_seconds));
        lines.extend(open.into_iter().map(running));
        lines
    }

    /// The upstreams. What was called and how long that took is of the last calls that the gateway keeps.
    fn table(&self, columns: usize) -> Vec<Line> {
        let mut ended: HashMap<&str, Vec<&Call>> = HashMap::new();
        for call in &self.calls.ended {
            ended.entry(call.upstream.as_deref().unwrap_or_default()).or_default().push(call);
        }
        let mut cells = vec![HEADINGS.map(str::to_owned).to_vec()];
        let lines = self.whole.upstreams.iter().map(|row| line(row, ended.get(&*row.name).map_or(&[], Vec::as_slice)));
        cells.extend(lines.map(|line| line.to_vec()));
        cells.extend(absent(&self.whole).map(|[name, state, why]| {
            let none = [(); HEADINGS.len() - 3].map(|()| "-".to_owned());
            [name, state].into_iter().chain(none).chain([why]).collect()
        }));
        table(&cells, &GOES, Some(STATE), columns)
    }
}

const HEADINGS: [&str; 10] = ["NAME", "STATE", "SINCE", "TOOLS", "NOW", "QUEUE", "LAST", "FAILED", "P95", "WHAT"];
/// Those that go where the terminal is narrow, the first one first.
const GOES: [usize; 7] = [6, 2, 5, 7, 8, 3, 4];
/// Which of these bears the colour.
const STATE: usize = 1;

fn line(row: &Row, ended: &[&Call]) -> [String; HEADINGS.len()] {
    let failed = ended
        .iter()
        .filter(|call| !matches!(call.outcome.as_deref(), None | Some("ok" | "cancelled" | "client_gone")))
        .count();
    let mut times: Vec<f64> = ended.iter().map(|call| call.duration_seconds).collect();
    times.sort_by(f64::total_cmp);
    let p95 = times
        .get((times.len() * 95).div_ceil(100).saturating_sub(1))
        .map_or_else(|| "-".to_owned(), |time| seconds(*time));
    let calls = row.calls.as_ref();
    let what = row.cause.iter().chain(&row.remarks).map(|text| printable(text.trim())).collect::<Vec<_>>().join("; ");
    [
        printable(&row.name),
        printable(&row.state),
        page::time(row.since_seconds),
        row.items.as_ref().map_or_else(|| "-".to_owned(), |items| items.tools.to_string()),
        calls.map_or(0, |calls| calls.in_flight).to_string(),
        calls.map_or(0, |calls| calls.queued).to_string(),
        ended.len().to_string(),
        failed.to_string(),
        p95,
        what,
    ]
}

/// A call under way.
fn running(call: &Call) -> Line {
    let what = if call.name.is_empty() { &call.method } else { &call.name };
    let upstream = call.upstream.as_deref().unwrap_or("-");
    Line::plain(printable(&format!("{:>9}  {upstream}  {what}", seconds(call.duration_seconds))))
}

fn seconds(time: f64) -> String {
    match time {
        time if time < 1.0 => format!("{:.0} ms", time * 1000.0),
        time if time < 60.0 => format!("{time:.1} s"),
        time => format!("{:.1} min", time / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_lines_with_their_last_calls_and_what_runs_stands_below_the_longest_first() {
        let whole = r#"{"ready":true,"upstreams":[
            {"name":"files","transport":"stdio","state":"ready","since_seconds":61,"restarts":0,"calls":{"in_flight":2,"queued":1},
             "items":{"tools":3,"resources":0,"templates":0,"prompts":0}},
            {"name":"x","transport":"http","state":"backing_off","since_seconds":2,"restarts":4,"cause":"refused\u001b[2J"}],
            "configuration":{"disabled":["off"],"left_out":[{"name":"opt","why":"${A} has no value","advice":"export A=…"}]}}"#;
        let ended = |outcome: &str, time: f64| {
            format!(r#"{{"method":"tools/call","upstream":"files","duration_seconds":{time},"outcome":"{outcome}"}}"#)
        };
        let open = |name: &str, time: f64| {
            format!(r#"{{"method":"tools/call","upstream":"files","name":"{name}","duration_seconds":{time}}}"#)
        };
        let all: Vec<_> =
            (1..=20).map(|at| ended(if at == 1 { "tool_error" } else { "ok" }, f64::from(at) / 100.0)).collect();
        let calls =
            format!("{{\"open\":[{},{}],\"ended\":[{}]}}", open("short", 0.5), open("long", 90.0), all.join(","));
        let seen = Seen {
            pages: [whole.to_owned(), calls.clone()],
            whole: page::parse(whole).unwrap(),
            calls: serde_json::from_str(&calls).unwrap(),
        };
        let lines: Vec<_> = seen.lines(usize::MAX).iter().map(|line| line.cut(usize::MAX, false)).collect();
        assert_eq!(
            lines,
            [
                "1 of 2 servers ready, 3 tools, 2 calls running",
                "",
                "NAME   STATE        SINCE      TOOLS  NOW  QUEUE  LAST  FAILED  P95     WHAT",
                "files  ready        1 min 1 s  3      2    1      20    1       190 ms",
                "x      backing_off  2 s        -      0    0      0     0       -       refused\\u{1b}[2J",
                "off    disabled     -          -      -    -      -     -       -       `enabled = false` in the configuration",
                "opt    left_out     -          -      -    -      -     -       -       ${A} has no value; export A=…",
                "",
                "  1.5 min  files  long",
                "   500 ms  files  short",
            ]
        );
    }
}
