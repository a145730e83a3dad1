//! Where the servers stand in a file, and whose dialect that is: known by the keys, not by the file's name.

use std::path::Path;

use crate::config::source::json::OF_GEMINI;
use crate::config::source::node::{Node, Shape};

/// Whose words a server is written in, where that decides what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `mcpServers` of Claude Desktop, Claude Code, Cursor, Windsurf, Copilot CLI, LM Studio and others: milliseconds.
    Plain,
    /// `mcpServers` of Cline: seconds.
    Cline,
    /// `mcpServers` of Gemini CLI: `$VAR`, and what is unset is empty.
    Gemini,
    /// `servers` of VS Code.
    VsCode,
    /// `context_servers` of Zed.
    Zed,
    /// `mcp` of opencode.
    OpenCode,
    /// `mcp_servers` of Codex: seconds, and no references.
    Codex,
    /// `extensions` of Goose: seconds, and references in headers alone.
    Goose,
    /// `mcpServers` of Continue, a list: `${{ secrets.NAME }}`.
    Continue,
}

/// One server as it stands in the file.
pub(super) struct Found<'a> {
    pub(super) name: String,
    pub(super) node: &'a Node,
    pub(super) dialect: Dialect,
}

impl Found<'_> {
    /// What an entry of Goose is that is no server: a part of Goose itself.
    pub(super) fn part_of_host(&self) -> Option<&'static str> {
        let Some(Shape::Text(kind)) = self.node.get("type").map(|node| &node.shape) else { return None };
        match (self.dialect, kind.as_str()) {
            (Dialect::Goose, "builtin" | "platform") => Some("built in"),
            (Dialect::Goose, "frontend") => Some("a part of its window"),
            (Dialect::Goose, "inline_python") => Some("a script of its own"),
            _ => None,
        }
    }
}

/// The files that tell whose they are where their keys do not, by the ends of their paths: what a number in them counts depends on it.
const PLACES: [(&str, Dialect); 4] = [
    (".cline/mcp.json", Dialect::Cline),
    ("cline_mcp_settings.json", Dialect::Cline),
    (".gemini/settings.json", Dialect::Gemini),
    (".kiro/settings/mcp.json", Dialect::Plain),
];

/// Whose file is kept at a path, where that is certain.
pub(crate) fn at(path: &Path) -> Option<Dialect> {
    PLACES.iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| *dialect)
}

/// All servers of a file, those that count before those that they hide. `certain` is whose `mcpServers` they are, where the place of the file
/// tells it.
pub(super) fn servers(root: &Node, certain: Option<Dialect>) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    let own = std::env::current_dir().ok();
    let mut projects: Vec<_> = root.get("projects").map_or(&[][..], Node::entries).iter().collect();
    // What a project says counts in its folder before what holds for the user; that of others comes last.
    let is_own = |path: &str| own.as_deref().is_some_and(|own| own.starts_with(Path::new(path)));
    projects.sort_by_key(|(path, _)| (!is_own(path), usize::MAX - path.len()));
    let (near, far): (Vec<_>, Vec<_>) = projects.into_iter().partition(|(path, _)| is_own(path));
    near.into_iter().for_each(|(_, servers)| all(servers, Dialect::Plain, &mut found));
    let is_gemini = OF_GEMINI.iter().any(|key| root.get(key).is_some());
    let guessed = if is_gemini { Dialect::Gemini } else { Dialect::Plain };
    if let Some(servers) = root.get("mcpServers").or_else(|| root.get("amp.mcpServers")) {
        match certain {
            Some(dialect) => found.extend(in_table(servers, |_| dialect)),
            None if matches!(servers.shape, Shape::List(_)) => all(servers, Dialect::Continue, &mut found),
            None => all(servers, guessed, &mut found),
        }
    }
    if let Some(servers) = root.get("extensions") {
        all(servers, Dialect::Goose, &mut found);
    }
    if let Some(servers) = root.get("servers") {
        all(servers, Dialect::VsCode, &mut found);
    }
    if let Some(servers) = root.get("context_servers") {
        all(servers, Dialect::Zed, &mut found);
    }
    if let Some(mcp) = root.get("mcp") {
        of_mcp(mcp, &mut found);
    }
    if let Some(servers) = root.get("mcp_servers") {
        all(servers, Dialect::Codex, &mut found);
    }
    far.into_iter().for_each(|(_, servers)| all(servers, Dialect::Plain, &mut found));
    found
}

/// `mcp`: the servers of opencode, or of VS Code's older settings; in the settings of Gemini CLI it holds none. opencode 2 has its servers
/// under `servers`, and reads those beside it still.
fn of_mcp<'a>(mcp: &'a Node, found: &mut Vec<Found<'a>>) {
    let nested = nested(mcp);
    nested.into_iter().for_each(|servers| all(servers, Dialect::VsCode, found));
    let has_key = |node: &Node| ["type", "command", "url"].iter().any(|key| node.get(key).is_some());
    let is_server = |node: &Node| has_key(node) || matches!(node.shape, Shape::Broken(_));
    let beside = mcp.entries().iter().filter(|(name, _)| nested.is_none() || name != "servers");
    let servers = beside.filter(|(_, node)| is_server(node));
    found.extend(servers.map(|(name, node)| Found { name: name.clone(), node, dialect: Dialect::OpenCode }));
}

/// Whether the settings of Gemini CLI keep a server of `mcpServers` from being started: it is `excluded`, or others are `allowed`.
pub(super) fn is_shut_out(root: &Node, found: &Found<'_>) -> bool {
    let list = |key: &str| match root.get("mcp")?.get(key).map(|node| &node.shape) {
        Some(Shape::List(items)) => Some(items),
        _ => None,
    };
    let names = |items: &Vec<Node>| items.iter().any(|item| item.shape == Shape::Text(found.name.clone()));
    let is_other = |items: &Vec<Node>| !items.is_empty() && !names(items);
    matches!(found.dialect, Dialect::Gemini | Dialect::Plain)
        && (list("excluded").is_some_and(names) || list("allowed").is_some_and(is_other))
}

/// The table of servers under `mcp`, where `servers` is one, and no server of that name.
pub(super) fn nested(mcp: &Node) -> Option<&Node> {
    let is_value = |node: &Node| matches!(node.shape, Shape::Text(_) | Shape::List(_));
    let is_server = |node: &Node| ["type", "command", "url"].iter().any(|key| node.get(key).is_some_and(is_value));
    mcp.get("servers").filter(|servers| matches!(servers.shape, Shape::Table(_)) && !is_server(servers))
}

/// The servers of a table, each with its name.
fn in_table<'a>(servers: &'a Node, dialect: impl Fn(&Node) -> Dialect) -> impl Iterator<Item = Found<'a>> {
    servers.entries().iter().map(move |(name, node)| Found { name: name.clone(), node, dialect: dialect(node) })
}

fn all<'a>(servers: &'a Node, dialect: Dialect, found: &mut Vec<Found<'a>>) {
    match &servers.shape {
        Shape::Table(_) => found.extend(in_table(servers, |node| nearer(dialect, node))),
        // A list of servers that have their names inside.
        Shape::List(items) => {
            let named = |node: &'a Node| match node.get("name").or_else(|| node.get("uses")).map(|name| &name.shape) {
                Some(Shape::Text(name)) => Found { name: name.clone(), node, dialect },
                _ => Found { name: String::new(), node, dialect },
            };
            found.extend(items.iter().map(named));
        }
        _ => {}
    }
}

/// The dialect of one server, where its own keys tell more than the place where it stands.
fn nearer(dialect: Dialect, node: &Node) -> Dialect {
    let has = |keys: &[&str]| keys.iter().any(|key| node.get(key).is_some());
    let is_nested = node.get("transport").is_some_and(|node| matches!(node.shape, Shape::Table(_)));
    match dialect {
        Dialect::Plain if has(&["httpUrl", "includeTools", "excludeTools", "trust", "authProviderType"]) => {
            Dialect::Gemini
        }
        Dialect::Plain if has(&["transportType"]) || is_nested || is_of_cline(node) => Dialect::Cline,
        Dialect::Plain if is_within(node, if has(&["autoApprove"]) { 3600 } else { 999 }) => Dialect::Cline,
        Dialect::VsCode if is_of_opencode(node) => Dialect::OpenCode,
        dialect => dialect,
    }
}

/// Whether its transport is written as Cline alone does.
fn is_of_cline(node: &Node) -> bool {
    node.get("type").is_some_and(|kind| matches!(&kind.shape, Shape::Text(kind) if kind == "streamableHttp"))
}

/// Whether its command or its type is written as opencode alone does, which keeps servers where VS Code does.
fn is_of_opencode(node: &Node) -> bool {
    let is_list = node.get("command").is_some_and(|node| matches!(node.shape, Shape::List(_)));
    let kind = node.get("type").map(|kind| &kind.shape);
    is_list || matches!(kind, Some(Shape::Text(kind)) if ["local", "remote"].contains(&kind.as_str()))
}

/// Whether a time-out is so small that it is in seconds, of which Cline takes 3600 at most: of milliseconds, Claude Code takes less than a
/// thousand for nothing.
fn is_within(node: &Node, most: i64) -> bool {
    node.get("timeout").is_some_and(|node| matches!(node.shape, Shape::Integer(count) if (1..=most).contains(&count)))
}
