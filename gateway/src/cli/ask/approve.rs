//! `trunkline approve`: shows the tools that nobody has approved as they are, what differs, and writes down which are.

use std::io::{IsTerminal, Write, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::awaited::Wanted;
use super::difference;
use super::session::Session;
use crate::cli::args::setup::Approve;
use crate::cli::look::counted;
use crate::cli::process::failure::note;
use crate::cli::process::{Failure, answer};
use crate::cli::setup::save::{Edited, Turns};
use crate::config::fault::printable;
use crate::config::source::file;
use crate::router::config::{Approval, Approved, shown};
use crate::telemetry::logging::say;

/// What a gateway says of the tools that are to be approved.
#[derive(Deserialize)]
struct ToApprove {
    pin: String,
    file: Option<PathBuf>,
    tools: Vec<Candidate>,
}

#[derive(Deserialize)]
struct Candidate {
    upstream: String,
    own_name: String,
    name: Option<String>,
    state: String,
    definitions: Vec<Defined>,
    approved: Vec<Box<RawValue>>,
    renamed_from: Option<String>,
}

#[derive(Deserialize)]
struct Defined {
    digest: String,
    definition: Box<RawValue>,
}

/// Shows them, and approves those that are named.
pub(crate) fn run(approve: &Approve) -> Result<(), Failure> {
    let mut session = Session::open(&approve.shared, Wanted::List(None))?;
    // Once its lists are there, or are waited for no longer.
    session.wanted("tools", "name")?;
    let whole = session.upstreams(|row| approve.names.is_empty() || approve.names.contains(&row.name));
    let all = read(&session)?;
    if all.pin == "off" {
        let why = "nothing is asked of tools: set `pin = \"warn\"` or `pin = \"hold\"` under [catalog] first";
        return Err(anyhow!(why).into());
    }
    let known: Vec<String> = whole.iter().flat_map(|whole| &whole.upstreams).map(|row| row.name.clone()).collect();
    for row in whole.iter().flat_map(|whole| &whole.upstreams).filter(|row| row.items.is_none()) {
        if let Some(why) = row.why_not(session.is_of_own()) {
            note(&format!("note: its tools are not known: {why}"));
        }
    }
    let meant = meant(&all.tools, &known, approve)?;
    let place = approve.output.clone().or(all.file.clone());
    let place = place.ok_or_else(|| anyhow!("there is no state folder: name a file with --output"))?;
    if !approve.json {
        show(&meant)?;
    }
    let is_asked = !approve.names.is_empty() || approve.all;
    let agreed = is_asked && !meant.is_empty() && agrees(approve, meant.len())?;
    // For another machine: what is approved here already counts there, too.
    let known = all.file.as_deref().filter(|file| *file != place && approve.all);
    let is_copied = meant.is_empty() && known.is_some();
    if agreed || is_copied {
        write(&place, known, &meant, approve.digests)?;
        session.reload();
    }
    drop(session);
    if is_copied && !approve.json {
        writeln!(answer(), "what is approved here stands in {}, too", file::shown(&place))?;
    }
    end(approve, &place, &meant, agreed)
}

/// Those that are named. A name is that of an upstream where there is one: what another upstream calls a tool of its own changes nothing
/// about what is approved by it.
fn meant<'a>(all: &'a [Candidate], known: &[String], approve: &Approve) -> Result<Vec<&'a Candidate>, anyhow::Error> {
    let names = &approve.names;
    let is_upstream = |name: &String| known.contains(name) || all.iter().any(|tool| tool.upstream == *name);
    let (upstreams, tools): (Vec<_>, Vec<_>) = names.iter().partition(|name| is_upstream(name));
    let is_any = |name: &String| all.iter().any(|tool| tool.name.as_ref() == Some(name));
    let unknown: Vec<_> =
        tools.iter().filter(|name| !is_any(name)).map(|name| format!("`{}`", printable(name))).collect();
    if !unknown.is_empty() {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(anyhow!("nothing to approve is called {}. Upstreams: {known}", unknown.join(", ")));
    }
    let (mut meant, mut others) = (Vec::new(), Vec::new());
    for tool in all {
        let called = |names: &[&String]| tool.name.as_ref().is_some_and(|name| names.contains(&name));
        match names.is_empty() || upstreams.contains(&&tool.upstream) || called(&tools) {
            true => meant.push(tool),
            false if called(&upstreams) => others.push(tool),
            false => {}
        }
    }
    for tool in others {
        let (name, owner) = (tool.shown(), printable(&tool.upstream));
        let then = format!("note: `{name}` is an upstream; `trunkline approve {owner}` is for the tool of that name");
        note(&approve.shared.typed(&then));
    }
    Ok(meant)
}

/// The tools that are held until somebody approves them: the upstream of each, and what it is called.
pub(super) fn held(session: &Session) -> Vec<(String, String)> {
    // One that was started for this can be looked at a moment after it answers.
    let all = session.upstreams(|_| false).and_then(|_| read(session).ok()).filter(|all| all.pin == "hold");
    let tools = all.into_iter().flat_map(|all| all.tools);
    tools.map(|tool| (tool.upstream, tool.name.unwrap_or(tool.own_name))).collect()
}

impl Candidate {
    /// As a person calls it.
    fn shown(&self) -> String {
        printable(self.name.as_deref().unwrap_or(&self.own_name)).to_string()
    }

    /// Its definitions, as they are written down. A text that is no longer what the digest was made of is not.
    fn approvals(&self, digests: bool) -> Result<Vec<Approval>, anyhow::Error> {
        let one = |defined: &Defined| {
            let approval = Approval::of(defined.definition.get());
            if shown(&approval.digest) == defined.digest {
                return Ok(if digests { approval.without_text() } else { approval });
            }
            let line =
                json!({ "upstream": self.upstream, "tool": self.own_name, "digest": defined.digest }).to_string();
            let read = Approved::parse(&line).map_err(|(_, why)| anyhow!("the gateway's answer has {why}"))?;
            read.of(&self.upstream, &self.own_name).first().cloned().context("no digest")
        };
        self.definitions.iter().map(one).collect()
    }
}

fn read(session: &Session) -> Result<ToApprove, Failure> {
    let (status, page) = session.page("/api/v1/approvals")?;
    match status {
        200 => Ok(serde_json::from_str(&page).context("not a Trunkline gateway, or one of another version")?),
        404 => Err(anyhow!("the gateway that runs is of another version, which knows no approvals").into()),
        _ => Err(anyhow!("{}", printable(page.trim())).into()),
    }
}

/// Each tool with what is new about it.
fn show(tools: &[&Candidate]) -> Result<(), anyhow::Error> {
    let mut out = answer();
    for tool in tools {
        let renamed = tool.renamed_from.as_ref().map(|from| format!(", which was `{}`", printable(from)));
        let (state, upstream) = (&tool.state, printable(&tool.upstream));
        writeln!(out, "{} of `{upstream}`: {state}{}", tool.shown(), renamed.unwrap_or_default())?;
        let was: Vec<_> = tool.approved.iter().map(|text| difference::lines(text.get())).collect();
        for defined in &tool.definitions {
            let now = difference::lines(defined.definition.get());
            // Of several that were approved, the one that it is nearest to.
            let nearest = was.iter().map(|was| difference::between(was, &now)).min_by_key(Vec::len);
            let lines = nearest.unwrap_or_else(|| now.iter().map(|line| format!("+ {line}")).collect());
            for line in lines {
                writeln!(out, "    {line}")?;
            }
        }
        if tool.state == "changed" && tool.approved.is_empty() {
            writeln!(out, "    (what it was is not kept: it was approved by its digest)")?;
        }
    }
    Ok(())
}

/// Whether the person agrees, at a terminal; elsewhere `--yes` says so.
fn agrees(approve: &Approve, count: usize) -> Result<bool, anyhow::Error> {
    if approve.yes {
        return Ok(true);
    }
    if !stdin().is_terminal() || approve.json {
        return Err(anyhow!("nothing was approved: stdin is no terminal; pass --yes once you have read what is shown"));
    }
    say(&format!("approve {}? [y]es, [n]o: ", counted(count, "tool")));
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Writes down that these are approved as they are now, beside those of another file.
fn write(place: &Path, known: Option<&Path>, tools: &[&Candidate], digests: bool) -> Result<(), anyhow::Error> {
    let files = [place.to_owned()];
    let _turns = Turns::take(&files, true)?;
    let edited = Edited::open(place)?;
    let parsed = |path: &Path, text: &str| {
        let odd =
            |(line, why)| anyhow!("{} cannot be used: line {line}: {why}; mend it, or move it away", file::shown(path));
        Approved::parse(text).map_err(odd)
    };
    let mut approved = parsed(place, edited.text())?;
    if let Some(known) = known {
        let other = Edited::open(known)?;
        approved.take(&parsed(known, other.text())?, digests);
    }
    for tool in tools {
        approved.set(&tool.upstream, &tool.own_name, tool.approvals(digests)?);
    }
    edited.write(&approved.lines(), None)
}

/// What became of it.
fn end(approve: &Approve, place: &Path, tools: &[&Candidate], agreed: bool) -> Result<(), Failure> {
    let mut out = answer();
    let (file, shared) = (file::shown(place), &approve.shared);
    if approve.json {
        let one = |tool: &&Candidate| -> Value {
            json!({
                "upstream": tool.upstream, "tool": tool.own_name, "name": tool.name, "state": tool.state,
                "renamed_from": tool.renamed_from,
            })
        };
        let tools: Vec<_> = tools.iter().map(one).collect();
        return Ok(out.json(&format!("{:#}", json!({ "tools": tools, "approved": agreed, "file": file })))?);
    }
    let count = counted(tools.len(), "tool");
    match (tools.is_empty(), agreed) {
        (true, _) => writeln!(out, "nothing to approve")?,
        (_, true) => writeln!(out, "approved {count} in {file}")?,
        (_, false) if approve.names.is_empty() && !approve.all => {
            let then = "`trunkline approve NAME` approves those of an upstream, or one tool; `trunkline approve --all` all of them";
            writeln!(out, "{count} to approve: {}", shared.typed(then))?;
        }
        _ => writeln!(out, "nothing was approved")?,
    }
    Ok(())
}
