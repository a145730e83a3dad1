//! The command: shows what the files of hosts hold, and writes it into a configuration.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::Utf8Chunk;

use anyhow::{Context, anyhow};
use serde_json::json;
use toml_edit::DocumentMut;

use super::scan::{self, Server};
use super::{secrets, shape, toml};
use crate::cli::args::setup::Import;
use crate::cli::process::table::{self, Room};
use crate::cli::process::{Failure, answer};
use crate::cli::setup::save::{Edited, Turns, endings_kept, put};
use crate::config::fault::{Fault, Faults, Severity, printable};
use crate::config::source::node::{Node, Shape};
use crate::config::source::{Environment, file};
use crate::config::{Inputs, load};
use crate::secrets::decoded;

/// Shows what is found and writes it.
pub(crate) fn run(import: &Import) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let found = scan::scan(&import.from, &environment).map_err(|why| anyhow!(why))?;
    let target = target(import, &environment);
    let folder = import.secret_files.as_deref().map(absolute);
    // The configuration would name files that are not there.
    folder.as_deref().map_or(Ok(""), file::written).map_err(|why| anyhow!(why))?;
    let _turns = Turns::take(std::slice::from_ref(&target), !import.dry_run)?;
    let edited = Edited::open(&target)?;
    let mut document = document(&edited)?;
    let mut servers = found.servers;
    let mut secrets = secrets::Found::new(folder.clone(), named(edited.text(), &servers, &environment));
    take(&mut servers, &mut document, &mut secrets, &target).map_err(|why| anyhow!(why))?;
    let kept: Vec<&str> = servers.iter().filter(|server| server.is_there).map(|server| server.name.as_str()).collect();
    let taken = servers.iter().filter(|server| server.skipped.is_none()).count();
    let mut text = endings_kept(edited.text(), &document.to_string());
    if edited.text().is_empty() {
        text = text.trim_start().to_owned();
    }
    let writes = taken > 0 && !import.dry_run;
    if writes {
        if let Some(folder) = &folder {
            edited.takes(&text)?;
            keep(folder, &secrets).context("cannot keep the secrets")?;
        }
        edited.write(&text, None)?;
    }
    let mut out = answer();
    // What was asked for by its name was not done where its file cannot be read; the others are.
    let is_unread = !import.from.is_empty() && found.faults.iter().any(|fault| fault.severity == Severity::Error);
    // Whoever wants servers taken over has none, and no reason to go on to the next command.
    let is_none_usable = taken == 0 && kept.is_empty() && servers.iter().any(|server| server.is_unusable);
    let done = || if is_unread || is_none_usable || servers.is_empty() { Err(Failure::Found) } else { Ok(()) };
    if import.json {
        let report = report(&servers, (&secrets, &found.faults), &found.files, &target, writes);
        out.json(&format!("{report:#}"))?;
        return done();
    }
    let room = Room::of_stdout();
    write!(out, "{}", room.layout().list(&found.faults))?;
    if servers.is_empty() {
        let has_fault = found.faults.iter().any(|fault| fault.severity == Severity::Error);
        return Err(if has_fault { anyhow!(MEND_FIRST) } else { nothing(&found.files, import.from.is_empty()) }.into());
    }
    write!(out, "{}", listing(&servers, room))?;
    if is_none_usable {
        return Err(anyhow!("{NONE_USABLE}").into());
    }
    if import.dry_run && taken > 0 {
        writeln!(out, "\n{}", added(&servers, &mut secrets).map_err(|why| anyhow!(why))?)?;
    }
    let unset = unset(&text, &environment);
    // What is found without being named need not be named.
    let is_found = file::find(&[], &environment).iter().any(|file| absolute(file) == target);
    let option = if is_found { String::new() } else { format!(" --config {}", word(&target)) };
    let said = Said {
        taken,
        kept: &kept,
        target: &target,
        is_target_there: edited.is_there(),
        option: &option,
        secrets: &secrets,
        unset: &unset,
        folder: folder.as_deref(),
        writes,
    };
    write!(out, "{}", table::fitted(&said.text(), room.columns))?;
    done()
}

/// Puts the servers into the configuration, but for those that it has or that would be a fault in it.
fn take(
    servers: &mut [Server],
    document: &mut DocumentMut,
    secrets: &mut secrets::Found,
    target: &Path,
) -> Result<(), String> {
    for server in servers.iter_mut().filter(|server| server.skipped.is_none()) {
        server.skipped = fault(server);
        server.is_unusable = server.skipped.is_some();
        if server.skipped.is_none() && !toml::add(document, server, secrets)? {
            let is_like = toml::has_like(document, server);
            let has = if is_like { "has it already" } else { "has a server of this name that is written otherwise" };
            server.skipped = Some(format!("{} {has}", file::shown(target)));
            server.is_there = true;
        }
    }
    Ok(())
}

/// Where servers are there, and each has its reason in its row.
const NONE_USABLE: &str = "nothing is imported: no server can be used here, each for the reason told above; mend that in the host's \
     file, or write the server with `trunkline add`";

/// Where no file could be read.
const MEND_FIRST: &str = "nothing is imported: mend what is told above, and run the command again";

/// Why there is nothing to import.
fn nothing(files: &[PathBuf], is_of_all: bool) -> anyhow::Error {
    let places = files.iter().map(|path| file::shown(path)).collect::<Vec<_>>().join(", ");
    let places = if places.is_empty() { "no host's file was found".to_owned() } else { format!("looked at {places}") };
    let next = if is_of_all { ". Name a file: `trunkline import FILE`" } else { "" };
    anyhow!("no servers to import: {places}{next}")
}

/// What is added to the configuration.
fn added(servers: &[Server], secrets: &mut secrets::Found) -> Result<String, String> {
    let mut alone = DocumentMut::new();
    for server in servers.iter().filter(|server| server.skipped.is_none()) {
        toml::add(&mut alone, server, secrets)?;
    }
    Ok(alone.to_string().trim_start().to_owned())
}

/// A path as a word of a shell.
fn word(path: &Path) -> String {
    let Some(path) = path.to_str() else {
        let plain = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let pieces = path.as_os_str().as_bytes().utf8_chunks();
        let piece = |piece: Utf8Chunk<'_>| plain(piece.valid()) + &decoded(piece.invalid());
        return format!("$'{}'", printable(&pieces.map(piece).collect::<String>()));
    };
    let path = printable(path);
    let is_plain = path.chars().all(|char| char.is_alphanumeric() || "/._-+@:,".contains(char));
    if is_plain { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// The configuration that is written: that of the command line; else the one in force; else one in this folder.
fn target(import: &Import, environment: &Environment) -> PathBuf {
    let named = import.output.clone().or_else(|| file::find(&import.shared.config, environment).pop());
    absolute(&named.unwrap_or_else(|| PathBuf::from("trunkline.toml")))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What is wrong with a server as an upstream, the first of it. What has no value here, or cannot be read, may have one where it is used.
fn fault(server: &Server) -> Option<String> {
    let (mut alone, mut secrets) = (DocumentMut::new(), secrets::Found::default());
    toml::add(&mut alone, server, &mut secrets).ok()?;
    if let Some(table) = alone["upstreams"][&server.name].as_table_mut() {
        table.remove("env_file");
    }
    let path = PathBuf::from("trunkline.toml");
    let drafts = vec![(path.clone(), alone.to_string())];
    // With its secrets: what they are a part of is judged, too.
    let values: Vec<_> = secrets.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let inputs = Inputs { files: vec![path], drafts, environment: Environment::of(&values), ..Inputs::default() };
    let Faults(faults) = load(inputs).err()?;
    let is_lasting = |fault: &Fault| {
        fault.severity == Severity::Error && !["unset-variable", "unreadable-file"].contains(&fault.kind)
    };
    let whole = |Fault { text, label, .. }: Fault| match label {
        Some(label) => format!("{text}: {label}"),
        None => text,
    };
    faults.into_iter().find(is_lasting).map(whole)
}

/// The configuration that is written to. The file of Codex is none: its servers would no longer be read beside ours.
fn document(edited: &Edited) -> Result<DocumentMut, anyhow::Error> {
    let shown = file::shown(edited.path());
    let document = edited.toml()?;
    if document.contains_key("mcp_servers") && !document.contains_key("upstreams") {
        return Err(anyhow!("{shown} is the file of a host; name another with --output FILE"));
    }
    Ok(document)
}

/// The variables that have a value already, or that something refers to: a secret with another value is not named so.
fn named(text: &str, servers: &[Server], environment: &Environment) -> BTreeMap<String, Option<String>> {
    let mut named = BTreeMap::new();
    let mut add = |text: &str| {
        for name in secrets::references(text) {
            named.insert(name.to_owned(), None);
        }
    };
    add(text);
    servers.iter().filter(|server| server.skipped.is_none()).for_each(|server| texts_of(&server.node, &mut add));
    let known = environment.names().map(|name| (name, environment.get(name).and_then(|value| value.to_str())));
    named.extend(known.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))));
    named
}

fn texts_of(node: &Node, add: &mut impl FnMut(&str)) {
    match &node.shape {
        Shape::Text(text) => add(text),
        Shape::List(items) => items.iter().for_each(|item| texts_of(item, add)),
        Shape::Table(entries) => entries.iter().for_each(|(_, node)| texts_of(node, add)),
        _ => {}
    }
}

/// Writes each secret into a file of its own that only this user can read. One that is there holds the same value.
fn keep(folder: &Path, secrets: &secrets::Found) -> Result<(), anyhow::Error> {
    let shown = file::shown(folder);
    if folder.exists() && !folder.is_dir() {
        return Err(anyhow!("{shown} is no folder; name one that is there or can be made: `--secret-files FOLDER`"));
    }
    let was_there = folder.exists();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("the folder {shown} cannot be made"))?;
    let mut written = Vec::new();
    for (name, value) in &secrets.values {
        let path = folder.join(name);
        match put(&path, value.as_bytes(), 0o600) {
            Ok(()) => written.push(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && secrets::holds(&path, value) => {}
            Err(error) => {
                // No configuration will name what was written so far.
                written.iter().for_each(|path| drop(std::fs::remove_file(path)));
                if !was_there {
                    let _ = std::fs::remove_dir(folder);
                }
                return Err(error).with_context(|| file::shown(&path));
            }
        }
    }
    Ok(())
}

/// How a server is reached, in one word and without a secret.
fn way(server: &Server) -> String {
    let (url, command) = (scan::text(&server.node, "url"), scan::text(&server.node, "command"));
    match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", shape::authority(rest).1),
        None if command.is_empty() => "-".to_owned(),
        None => secrets::Found::default().pair(&server.name, "command", command),
    }
}

/// What is to be known of a server beside where it is.
fn remark(server: &Server) -> String {
    if let Some(why) = &server.skipped {
        return format!("not imported: {why}");
    }
    if server.is_off() {
        return "disabled in the host, and here".to_owned();
    }
    if scan::texts(&server.node, "args").iter().any(|arg| arg == "mcp-remote" || arg.starts_with("mcp-remote@")) {
        return "stays behind mcp-remote, which does its login".to_owned();
    }
    String::new()
}

/// The servers as a table. Where there is no room for all that is to be known of them, that stands below each.
fn listing(servers: &[Server], room: Room) -> String {
    let mut rows = vec![["NAME", "HOW", "FROM", "WHAT"].map(str::to_owned).to_vec()];
    rows.extend(servers.iter().map(|server| {
        let cells = [server.name.clone(), way(server), server.place(), remark(server)];
        cells.map(|cell| printable(&cell)).to_vec()
    }));
    let whole = table::printed(&rows, &[], None, Room { columns: usize::MAX, ..room });
    if whole.lines().all(|line| table::wide(line) <= room.columns) {
        return whole;
    }
    let remarks: Vec<String> = rows.iter_mut().filter_map(Vec::pop).collect();
    let lines = table::printed(&rows, &[1], None, room);
    let below = |(number, remark): (usize, &String)| match remark.as_str() {
        "" => String::new(),
        _ if number == 0 => String::new(),
        remark => format!("{}\n", table::wrapped(&format!("  {remark}"), 2, room.columns)),
    };
    let below = remarks.iter().enumerate().map(below);
    lines.lines().zip(below).map(|(line, below)| format!("{line}\n{below}")).collect()
}

/// The variables that a configuration needs and this environment lacks.
fn unset(text: &str, environment: &Environment) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let named = lines.flat_map(|line| line.split("${").skip(1)).filter_map(|rest| rest.split_once('}'));
    let mut names: Vec<String> = named.map(|(name, _)| name.to_owned()).collect();
    names.retain(|name| name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_'));
    names.retain(|name| environment.get(name).is_none());
    names.sort();
    names.dedup();
    names
}

/// What was done, and what is left to do.
struct Said<'a> {
    taken: usize,
    /// The servers that the configuration has already.
    kept: &'a [&'a str],
    target: &'a Path,
    is_target_there: bool,
    /// What names it to other commands; empty where they find it.
    option: &'a str,
    secrets: &'a secrets::Found,
    unset: &'a [String],
    folder: Option<&'a Path>,
    writes: bool,
}

impl Said<'_> {
    fn text(&self) -> String {
        let Self { taken, kept, target, is_target_there, option, secrets, unset, folder, writes } = self;
        let noun = if *taken == 1 { "server" } else { "servers" };
        let target = file::shown(target);
        let mut out = match (taken, writes) {
            (0, _) if *is_target_there => format!("nothing to import: {target} is unchanged\n"),
            (0, _) => format!("nothing to import: {target} is not written\n"),
            (_, true) => format!("{taken} {noun} written to {target}\n"),
            (_, false) => format!("{taken} {noun} would be written to {target}\n"),
        };
        if !kept.is_empty() {
            let all = kept.join(" ");
            out.push_str(&format!(
                "what is there already stays as it is; to import it anew, first run `trunkline remove{option} {all}`\n"
            ));
        }
        let names: Vec<&str> = secrets.values.keys().map(String::as_str).collect();
        if let Some(folder) = folder.filter(|_| !names.is_empty()) {
            out.push_str(&format!("secrets are kept in {}: {}\n", file::shown(folder), names.join(", ")));
        } else if !names.is_empty() {
            let names = names.join(", ");
            out.push_str(&format!("secrets were left out (`--secret-files FOLDER` keeps them in files): {names}\n"));
        }
        if !unset.is_empty() {
            out.push_str(&format!(
                "variables to set, or the servers that need them are left out: {}\n",
                unset.join(", ")
            ));
        }
        if *writes {
            out.push_str(&format!("next: `trunkline check{option}`, then `trunkline install{option} HOST`\n"));
        }
        out
    }
}

fn report(
    servers: &[Server],
    (secrets, faults): (&secrets::Found, &[Fault]),
    files: &[PathBuf],
    target: &Path,
    writes: bool,
) -> serde_json::Value {
    let one = |server: &Server| {
        json!({
            "name": server.name,
            "title": server.title,
            "file": file::shown(&server.file),
            "line": server.line,
            "how": way(server),
            "skipped": server.skipped,
        })
    };
    json!({
        "servers": servers.iter().map(one).collect::<Vec<_>>(),
        "files": files.iter().map(|path| file::shown(path)).collect::<Vec<_>>(),
        "faults": faults.iter().map(Fault::json).collect::<Vec<_>>(),
        "secrets": secrets.values.keys().collect::<Vec<_>>(),
        "configuration": file::shown(target),
        "written": writes,
    })
}
