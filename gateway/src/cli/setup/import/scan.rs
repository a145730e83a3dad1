//! What is found in the files of hosts: each server with the file that it comes from.

use std::path::{Path, PathBuf};

use crate::cli::setup::hosts::{HOSTS, Host};
use crate::config::fault::Fault;
use crate::config::import;
use crate::config::source::host::starts_us;
use crate::config::source::node::{Node, Shape};
use crate::config::source::{Environment, file};

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    /// As it will be named here.
    pub(crate) name: String,
    /// As the host names it.
    pub(crate) title: String,
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) host: &'static str,
    pub(crate) node: Node,
    /// Why it is not taken over.
    pub(crate) skipped: Option<String>,
    /// Whether that is since the configuration has one of its name.
    pub(crate) is_there: bool,
    /// Whether that is since it cannot be used here.
    pub(crate) is_unusable: bool,
}

impl Server {
    /// Where it stands; the home folder is `~`.
    pub(crate) fn place(&self) -> String {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let below = home.as_deref().and_then(|home| self.file.strip_prefix(home).ok());
        let file = below.map_or_else(|| file::shown(&self.file), |below| format!("~/{}", file::shown(below)));
        format!("{file}:{}", self.line)
    }

    /// Whether its host does not start it.
    pub(crate) fn is_off(&self) -> bool {
        self.node.get("enabled").is_some_and(|node| node.shape == Shape::Bool(false))
    }

    /// Why it cannot be reached at all.
    fn has_no_way(&self) -> Option<String> {
        let of = |key: &'static str| Some((key, self.node.get(key)?));
        match of("command").or_else(|| of("url")) {
            None if self.is_off() => {
                Some("it is disabled in the host, which alone knows what it would need".to_owned())
            }
            None => Some("it has neither `command` nor `url`".to_owned()),
            Some((key, node)) if !matches!(node.shape, Shape::Text(_)) => {
                Some(format!("its `{key}` is no text: put it in quotes"))
            }
            Some((key, _)) => text(&self.node, key).is_empty().then(|| format!("its `{key}` is empty")),
        }
    }

    /// What of its arguments is no text: it would be started without that.
    fn untold(&self) -> Option<String> {
        let Shape::List(items) = &self.node.get("args")?.shape else { return None };
        let at = items.iter().position(|item| !matches!(item.shape, Shape::Text(_)))?;
        Some(format!("item {} of its `args` is no text: put it in quotes", at + 1))
    }
}

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) servers: Vec<Server>,
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) faults: Vec<Fault>,
}

/// Reads what is named: files, or hosts; without a name the files of all hosts that are there.
pub(crate) fn scan(named: &[String], environment: &Environment) -> Result<Found, String> {
    let mut found = Found::default();
    for (host, path) in files(named, environment)? {
        match import::file(&path) {
            Ok((source, faults)) => {
                found.faults.extend(faults);
                let line = |at: usize| source.text[..at.min(source.text.len())].lines().count().max(1);
                for (slug, title) in &source.imported {
                    let Some(node) = source.node(&["upstreams".to_owned(), slug.clone()]) else { continue };
                    let server = Server {
                        name: slug.clone(),
                        title: title.clone(),
                        file: path.clone(),
                        line: line(node.key_or_span().start),
                        host,
                        node: node.clone(),
                        is_there: false,
                        is_unusable: false,
                        skipped: starts_us(text(node, "command"), &texts(node, "args"))
                            .then(|| "it starts Trunkline itself".to_owned()),
                    };
                    let why = server.has_no_way().or_else(|| server.untold()).filter(|_| server.skipped.is_none());
                    let is_unusable = why.is_some() && !server.is_off();
                    let skipped = server.skipped.clone().or(why);
                    add(Server { skipped, is_unusable, ..server }, &mut found.servers);
                }
                found.servers.extend(source.left_out.iter().map(|one| Server {
                    name: one.slug.clone(),
                    title: one.name.clone(),
                    file: path.clone(),
                    line: line(one.at.start),
                    host,
                    node: Node::default(),
                    is_there: false,
                    is_unusable: true,
                    skipped: Some(one.why.clone()),
                }));
            }
            // The settings of a host that has no servers yet are no fault.
            Err(fault) if fault.kind == import::NO_SERVERS && !host.is_empty() => {}
            Err(fault) => found.faults.push(*fault),
        }
        found.files.push(path);
    }
    // Those that are left out stand among the others, where their file has them.
    let of_file = |server: &Server| found.files.iter().position(|file| *file == server.file);
    found.servers.sort_by_key(|server| (of_file(server), server.line));
    Ok(found)
}

/// The files, each with its host; of a host that is named at least one must be there.
fn files(named: &[String], environment: &Environment) -> Result<Vec<(&'static str, PathBuf)>, String> {
    let of = |host: &'static Host| -> Vec<(&'static str, PathBuf)> {
        let all = host.user_files(environment).into_iter().chain(host.project_files());
        all.filter(|path| file::is_there(path)).map(|path| (host.id, path)).collect()
    };
    let mut files = Vec::new();
    for name in named {
        if Path::new(name).is_file() || name.contains(['/', '.']) {
            files.push(("", std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name))));
            continue;
        }
        let host = Host::named(name)?;
        let found = of(host);
        if found.is_empty() {
            let places: Vec<_> = host.user_files(environment).iter().map(|path| path.display().to_string()).collect();
            return Err(format!("{} has no file here; looked for {}", host.title, places.join(", ")));
        }
        files.extend(found);
    }
    if named.is_empty() {
        files = HOSTS.iter().flat_map(of).collect();
    }
    // In the home folder the file of the user is that of the project.
    let mut seen = std::collections::HashSet::new();
    files.retain(|(_, path)| seen.insert(path.clone()));
    Ok(files)
}

/// Takes it in; one that is there already is named, and another of the same name gets a name of its own.
fn add(mut server: Server, servers: &mut Vec<Server>) {
    let is_same = |one: &&Server| one.title == server.title && one.node.is_like(&server.node);
    if let Some(same) = servers.iter().find(is_same) {
        server.skipped = Some(format!("the same as in {}", same.place()));
    } else if servers.iter().any(|one| one.skipped.is_none() && one.name == server.name) {
        let from = if server.host.is_empty() { "2" } else { server.host };
        let free = |name: &String| servers.iter().all(|one| one.name != *name);
        let short: String = server.name.chars().take(28 - from.len()).collect();
        let names =
            std::iter::once(format!("{short}-{from}")).chain((2..).map(|number| format!("{short}-{from}{number}")));
        server.name = names.into_iter().find(free).unwrap_or_default();
    }
    servers.push(server);
}

/// The program and the arguments of one entry of a host's file; an error says why that cannot be read, though it is there.
pub(crate) fn entry_of(file: &Path, name: &str) -> Result<Option<(String, Vec<String>)>, Box<Fault>> {
    if !file::is_there(file) {
        return Ok(None);
    }
    match import::file(file) {
        Ok((source, _)) => Ok(source.node(&["upstreams".to_owned(), name.to_owned()]).map(program)),
        Err(fault) if fault.kind == import::NO_SERVERS => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// The same of the entry in the text of a host's file, under the key of this host; an error says why the text cannot be read.
pub(crate) fn entry_in(text: &str, host: &Host, name: &str) -> Result<Option<(String, Vec<String>)>, String> {
    let server = import::server_in(text, host.form.format(), host.keys(text, name), name)?;
    Ok(server.as_ref().map(program))
}

fn program(node: &Node) -> (String, Vec<String>) {
    // A dollar sign that stands for itself is written twice in what is read as a configuration.
    let plain = |text: &str| text.replace("$$", "$");
    (plain(text(node, "command")), texts(node, "args").iter().map(|arg| plain(arg)).collect())
}

/// The text at a key; empty where there is none.
pub(crate) fn text<'a>(node: &'a Node, key: &str) -> &'a str {
    match node.get(key).map(|node| &node.shape) {
        Some(Shape::Text(text)) => text,
        _ => "",
    }
}

/// The texts of a list.
pub(crate) fn texts(node: &Node, key: &str) -> Vec<String> {
    let Some(Shape::List(items)) = node.get(key).map(|node| &node.shape) else { return Vec::new() };
    let text = |node: &Node| match &node.shape {
        Shape::Text(text) => Some(text.clone()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}
