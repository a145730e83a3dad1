//! `trunkline ui`: opens the page of a running gateway by a link that is good once.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, anyhow};
use serde::Deserialize;

use crate::cli::args::setup::Ui;
use crate::cli::look;
use crate::cli::process::{Failure, answer};
use crate::config::fault::printable;
use crate::telemetry::logging::say;

/// The file that the browser is given: other users see what a program is started with, and may not see the link. It stands in the home
/// folder and is not hidden: a browser of a snap reads nothing else.
const FILE: &str = "trunkline-ui-link.html";
/// What such a file begins with.
const BEGINS: &str = "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=";

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
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let opened = has_screen && !ui.print && !ui.look.json;
    if opened {
        match opened_by_browser(std::env::var_os("HOME"), &link) {
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

fn opened_by_browser(home: Option<OsString>, link: &Link) -> io::Result<()> {
    let home = home.filter(|home| !home.is_empty()).ok_or_else(|| io::Error::other("HOME is not set"))?;
    let file = written(Path::new(&home), &link.url)?;
    let opened = aside(Command::new("xdg-open").arg(&file));
    if opened.is_err() {
        fs::remove_file(&file)?;
    }
    opened?;
    removed_after(&file, link.expires_in_seconds)?;
    Ok(())
}

/// Starts a program that outlives this one and its terminal's Ctrl-C.
fn aside(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()
}

/// Has a file removed once its link is worth nothing.
fn removed_after(file: &Path, seconds: u64) -> io::Result<Child> {
    aside(Command::new("sh").args(["-c", "sleep \"$1\"; rm -f -- \"$2\"", "sh"]).arg(seconds.to_string()).arg(file))
}

/// A file of this user alone that leads to the link. The next one takes its place.
fn written(folder: &Path, url: &str) -> io::Result<PathBuf> {
    let file = folder.join(FILE);
    match fs::read(&file) {
        Ok(before) if before.starts_with(BEGINS.as_bytes()) => fs::remove_file(&file)?,
        Ok(_) => return Err(io::Error::other(format!("{} is there and is none of ours", file.display()))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    // No part of a link of ours needs an escape in HTML.
    if !url.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/.#=-_[]".contains(&byte)) {
        return Err(io::Error::other("the link is none of ours"));
    }
    let page = format!("{BEGINS}{url}\">\n");
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?.write_all(page.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_link_stands_in_a_file_of_its_user_alone() {
        let folder = std::env::temp_dir().join(format!("trunkline-ui-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let url = "http://127.0.0.1:9808/ui#enter=a-B_9";
        for _ in 0..2 {
            let file = written(&folder, url).unwrap();
            assert!(fs::read_to_string(&file).unwrap().contains(url));
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let file = folder.join(FILE);
        assert!(!FILE.starts_with('.') && removed_after(&file, 0).unwrap().wait().unwrap().success() && !file.exists());
        assert!(written(&folder, "http://x/\"><script>").is_err());
        fs::write(&file, "a page of the user's").unwrap();
        assert!(written(&folder, url).unwrap_err().to_string().contains("none of ours"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "a page of the user's");
        fs::remove_dir_all(&folder).unwrap();
    }
}
