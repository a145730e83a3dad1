//! `trunkline reload`: has a running gateway put its changed configuration into force.

use std::io::Write;

use anyhow::{Context, anyhow};
use serde::Deserialize;

use crate::config::fault::printable;
use crate::telemetry::logging::complain;

use crate::cli::args::Look;
use crate::cli::look;
use crate::cli::process::failure::tell;
use crate::cli::process::{Failure, answer};

/// What became of it.
#[derive(Debug, Deserialize)]
struct Done {
    outcome: String,
    #[serde(default)]
    added: Vec<String>,
    #[serde(default)]
    changed: Vec<String>,
    #[serde(default)]
    removed: Vec<String>,
    #[serde(default)]
    unchanged: usize,
    #[serde(default)]
    needs_restart: Vec<String>,
}

/// Gives the order, and says what became of it.
pub(crate) fn run(look: &Look) -> Result<(), Failure> {
    let (status, said) = look::post(look, "/reload")?;
    match status {
        200 => {}
        422 => {
            // As `check` would say it; the gateway's own files count, not those of this shell.
            let kept = "nothing has changed: the gateway keeps its current configuration";
            match look.json {
                true => tell(&format!("{kept}\n{}", said.trim_end()), 3),
                false => [&*printable_lines(&said), kept].iter().for_each(|text| complain(text)),
            }
            return Err(Failure::Said);
        }
        _ => return Err(anyhow!("not reloaded: {}", printable(said.trim())).into()),
    }
    let done: Done = serde_json::from_str(&said).context("not a Trunkline gateway, or one of another version")?;
    let mut out = answer();
    match look.json {
        true => out.json(&said)?,
        false => writeln!(out, "{}", printable_lines(&text(&done)))?,
    }
    Ok(())
}

fn printable_lines(text: &str) -> String {
    text.trim_end().lines().map(printable).collect::<Vec<_>>().join("\n")
}

fn text(done: &Done) -> String {
    let mut text = match done.outcome.as_str() {
        "unchanged" => "in force already: nothing has changed since the files were last read".to_owned(),
        _ => format!("reloaded: {}", changes(done)),
    };
    if !done.needs_restart.is_empty() {
        text.push_str(&format!("\nneeds a restart: {}", done.needs_restart.join(", ")));
    }
    text
}

fn changes(done: &Done) -> String {
    let named = |word: &str, names: &[String]| (!names.is_empty()).then(|| format!("{word} {}", names.join(", ")));
    let parts = [named("added", &done.added), named("changed", &done.changed), named("removed", &done.removed)];
    let mut parts: Vec<_> = parts.into_iter().flatten().collect();
    parts.push(format!("{} not touched", look::counted(done.unchanged, "upstream")));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_it_is_said_in_a_line_and_what_needs_a_restart_in_another() {
        let said = |json: &str| text(&serde_json::from_str(json).unwrap());
        assert_eq!(
            said(r#"{"outcome":"unchanged"}"#),
            "in force already: nothing has changed since the files were last read"
        );
        let waits = said(r#"{"outcome":"unchanged","needs_restart":["server.listen"]}"#);
        assert!(waits.ends_with("were last read\nneeds a restart: server.listen"), "{waits}");
        assert_eq!(
            said(
                r#"{"outcome":"applied","added":["a"],"changed":[],"removed":["b","c"],"unchanged":1,"needs_restart":[]}"#
            ),
            "reloaded: added a; removed b, c; 1 upstream not touched"
        );
        let listen = said(r#"{"outcome":"applied","unchanged":2,"needs_restart":["server.listen"]}"#);
        assert_eq!(listen, "reloaded: 2 upstreams not touched\nneeds a restart: server.listen");
    }
}
