//! `trunkline ui`: opens the page of a running gateway by a link that is good once.

use std::io::Write;

use anyhow::{Context, anyhow};
use serde::Deserialize;

use crate::cli::args::setup::Ui;
use crate::cli::look;
use crate::cli::process::{Failure, answer, browser};
use crate::config::fault::printable;
use crate::telemetry::logging::say;

/// The file that the browser is given.
const FILE: &str = "trunkline-ui-link.html";

/// A link, as the gateway gives it.
#[derive(Deserialize)]
struct Link {
    url: String,
    expires_in_seconds: u64,
}

/// Asks for a link, and has the browser open it; where there is none, prints it.
pub(crate) fn run(ui: &Ui) -> Result<(), Failure> {
    let (status, said) = look::post(&ui.look, "/api/v1/link")?;
    if status != 200 {
        return Err(anyhow!("no page: {}", printable(said.trim())).into());
    }
    let link: Link = serde_json::from_str(&said).context("not a Trunkline gateway, or one of another version")?;
    if browser::is_there() && !ui.print && !ui.look.json {
        match browser::opens(FILE, &link.url, link.expires_in_seconds) {
            Ok(()) => {
                let page = link.url.split('#').next().unwrap_or_default();
                say(&format!("opening {} in the browser; --print prints a link instead", printable(page)));
                return Ok(());
            }
            Err(error) => say(&format!("cannot open a browser ({error}); follow this link:")),
        }
    }
    let mut out = answer();
    match ui.look.json {
        true => out.json(&said)?,
        false => writeln!(out, "{}", printable(&link.url))?,
    }
    out.flush()?;
    if !ui.look.json {
        say(&format!("the link is good for {} s and for one visit", link.expires_in_seconds));
    }
    Ok(())
}
