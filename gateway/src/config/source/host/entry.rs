//! One server: its keys as ours. What has a meaning here takes it along, the rest is named.

use super::dialect::Dialect;
use super::note::{Note, leaf};
use super::slug::slug;
use super::times;
use super::variables::{Inputs, filled, translated};
use super::words::{KNOWN, LOGINS, SILENT, TEXTS};
use crate::config::read::nearest::nearest;
use crate::config::source::node::{NULL, Node, Shape};

/// The keys that are left of one server.
struct Keys<'a> {
    name: &'a str,
    node: &'a Node,
    left: Vec<(&'a str, &'a Node)>,
    /// What was read of it.
    taken: Vec<(&'a str, &'a Node)>,
    found: Vec<(String, Node)>,
}

/// A server in our keys; what is doubtful of it is noted. An error says why it cannot be used.
pub(super) fn read(
    name: &str,
    (node, is_shut_out): (&Node, bool),
    dialect: Dialect,
    inputs: &Inputs,
    notes: &mut Vec<Note>,
) -> Result<Node, Note> {
    if let Shape::Broken(why) = &node.shape {
        let why = if why == NULL { format!("there is no server: {why}") } else { why.clone() };
        return Err(Note::new("bad-value", node.span.clone(), why));
    }
    if !matches!(node.shape, Shape::Table(_)) {
        return Err(Note::new(
            "bad-value",
            node.key_or_span(),
            format!("`{name}` must be an object with `command` or `url`"),
        ));
    }
    let is_off = is_shut_out || is_off(node);
    let off = || leaf(Shape::Table(vec![("enabled".to_owned(), leaf(Shape::Bool(false), node))]), node);
    let own = match members(node, dialect, inputs) {
        Ok(own) => own,
        // It is never judged: much of it may be missing.
        Err(_) if is_off => return Ok(off()),
        Err(note) => return Err(note),
    };
    let mut keys = Keys { name, node: &own, left: Vec::new(), taken: Vec::new(), found: Vec::new() };
    keys.spread();
    keys.command();
    let is_remote = keys.remote(dialect);
    keys.environment(is_remote && dialect == Dialect::Goose);
    keys.times(dialect);
    keys.tools();
    match keys.unusable() {
        Some(_) if is_off => return Ok(off()),
        Some(note) => return Err(note),
        None => {}
    }
    let mut said = Vec::new();
    keys.end(&mut said);
    keys.without_other_transport(is_remote, &mut said);
    keys.sent_files(&mut said);
    let Keys { mut found, .. } = keys;
    match is_off {
        true => found.push(("enabled".to_owned(), leaf(Shape::Bool(false), node))),
        false => notes.extend(said),
    }
    Ok(Node { key: node.key.clone(), span: node.span.clone(), shape: Shape::Table(found) })
}

/// Whether it is switched off, in either polarity.
fn is_off(node: &Node) -> bool {
    let says = |key: &str, flag: bool| node.get(key).is_some_and(|node| node.shape == Shape::Bool(flag));
    says("disabled", true) || says("enabled", false)
}

/// The members, those that may hold references with the references as we write them.
fn members(node: &Node, dialect: Dialect, inputs: &Inputs) -> Result<Node, Note> {
    if let Some(uses) = node.get("uses").filter(|_| dialect == Dialect::Continue) {
        let text = "`uses` names a block of Continue's hub, which only Continue can read";
        return Err(Note::new("bad-reference", uses.key_or_span(), text));
    }
    let one = |(key, value): &(String, Node)| {
        let is_text = TEXTS.contains(&key.as_str());
        let value = match is_text {
            true if dialect == Dialect::Goose && key == "headers" => filled(value, node),
            true => texts(value, dialect, inputs)?,
            false => value.clone(),
        };
        Ok((key.clone(), value))
    };
    Ok(leaf(Shape::Table(node.entries().iter().map(one).collect::<Result<_, _>>()?), node))
}

/// All texts in a value, with references as we write them.
fn texts(node: &Node, dialect: Dialect, inputs: &Inputs) -> Result<Node, Note> {
    let shape = match &node.shape {
        Shape::Text(text) => {
            let place = |why| Note::new("bad-reference", node.key_or_span(), why);
            Shape::Text(translated(text, dialect, inputs).map_err(place)?)
        }
        Shape::List(items) => {
            Shape::List(items.iter().map(|item| texts(item, dialect, inputs)).collect::<Result<_, _>>()?)
        }
        Shape::Table(entries) => {
            let one = |(key, node): &(String, Node)| Ok((key.clone(), texts(node, dialect, inputs)?));
            Shape::Table(entries.iter().map(one).collect::<Result<_, _>>()?)
        }
        shape => shape.clone(),
    };
    Ok(leaf(shape, node))
}

impl<'a> Keys<'a> {
    /// Takes the members; those of a nested `transport` and of the oldest form of Zed's `command` are members, too.
    fn spread(&mut self) {
        for (key, node) in self.node.entries() {
            match (key.as_str(), &node.shape) {
                ("transport", Shape::Table(inner)) => {
                    self.left.extend(inner.iter().map(|(key, node)| (key.as_str(), node)))
                }
                ("requestOptions", Shape::Table(inner)) => {
                    let own = |(key, node): &'a (String, Node)| match key.as_str() {
                        "headers" => ("headers", node),
                        // Its unit is that of no server.
                        "timeout" => ("requestOptions", node),
                        key => (key, node),
                    };
                    self.left.extend(inner.iter().map(own));
                }
                ("command", Shape::Table(inner)) => {
                    let renamed = |key: &'a str| if key == "path" { "command" } else { key };
                    self.left.extend(inner.iter().map(|(key, node)| (renamed(key), node)));
                }
                _ => self.left.push((key, node)),
            }
        }
    }

    fn take(&mut self, names: &[&str]) -> Option<&'a Node> {
        let at = self.left.iter().position(|(key, _)| names.contains(key))?;
        let (key, node) = self.left.remove(at);
        self.taken.push((key, node));
        Some(node)
    }

    /// Why the server cannot be used, whatever its values mean: what would be dropped must be said.
    fn unusable(&self) -> Option<Note> {
        let switches = ["disabled", "enabled"].iter().filter_map(|key| Some((*key, self.node.get(key)?)));
        let mut read = self.taken.iter().copied().chain(switches);
        read.find_map(|(key, node)| {
            if let Some((node, why)) = node.broken() {
                return Some(Note::new("bad-value", node.span.clone(), why));
            }
            let expected = expected(key, &node.shape)?;
            Some(Note::new("bad-value", node.key_or_span(), format!("`{key}` of `{}` must be {expected}", self.name)))
        })
    }

    fn put(&mut self, key: &str, node: Node) {
        self.found.push((key.to_owned(), node));
    }

    /// The program and its arguments; some hosts have both in one list.
    fn command(&mut self) {
        let args = self.take(&["args"]);
        match self.take(&["command", "cmd"]) {
            Some(Node { key, shape: Shape::List(items), .. }) if !items.is_empty() => {
                let mut words = items.iter().map(|item| Node { key: key.clone(), ..item.clone() });
                let command = words.next().unwrap_or_default();
                let mut rest: Vec<Node> = words.collect();
                if let Some(Shape::List(more)) = args.map(|args| &args.shape) {
                    rest.extend(more.iter().cloned());
                }
                let list = leaf(Shape::List(rest), &command);
                self.put("command", command);
                self.put("args", list);
            }
            command => {
                command.into_iter().for_each(|node| self.put("command", node.clone()));
                args.into_iter().for_each(|node| self.put("args", node.clone()));
            }
        }
        if let Some(node) = self.take(&["cwd", "workingDirectory"]) {
            self.put("cwd", node.clone());
        }
    }

    /// The address and its headers; whether it is reached by one.
    fn remote(&mut self, dialect: Dialect) -> bool {
        let word = self.take(&["type", "transport", "transportType"]);
        let url = self.take(&["httpUrl", "serverUrl", "url", "uri"]);
        if let Some(node) = word {
            let has_command = self.found.iter().any(|(key, _)| key == "command");
            let shape = match &node.shape {
                Shape::Text(word) if word == "remote" && dialect == Dialect::OpenCode => None,
                // A program is started without being told.
                Shape::Text(word) if has_command && matches!(word.as_str(), "stdio" | "local") => None,
                Shape::Text(word) if word.to_ascii_lowercase().replace(['-', '_'], "") == "streamablehttp" => {
                    Some(Shape::Text("http".to_owned()))
                }
                shape => Some(shape.clone()),
            };
            shape.into_iter().for_each(|shape| self.put("transport", leaf(shape, node)));
        }
        url.into_iter().for_each(|node| self.put("url", node.clone()));
        let declared = self.take(&["headers", "http_headers"]);
        let mut headers: Vec<(String, Node)> = declared.map_or_else(Vec::new, |node| node.entries().to_vec());
        if let Some(node) = self.take(&["env_http_headers"]) {
            let named = |(header, node): &(String, Node)| Some((header.clone(), referring(node, "", "")?));
            headers.extend(node.entries().iter().filter_map(named));
        }
        if let Some(found) = self.take(&["bearer_token_env_var"]).and_then(|node| referring(node, "Bearer ", "")) {
            headers.push(("Authorization".to_owned(), found));
        }
        if let Some((_, first)) = headers.first() {
            let node = leaf(Shape::Table(headers.clone()), declared.unwrap_or(first));
            self.put("headers", node);
        }
        url.is_some()
    }

    /// The variables of a child; some hosts name those that are handed on. Those that only fill headers have done so.
    fn environment(&mut self, only_fills_headers: bool) {
        if only_fills_headers {
            while self.take(&["envs", "env_keys"]).is_some() {}
            return;
        }
        let declared = self.take(&["env", "envs", "environment"]);
        let mut env: Vec<(String, Node)> = declared.map_or_else(Vec::new, |node| node.entries().to_vec());
        while let Some(node) = self.take(&["env_vars", "env_keys"]) {
            let Shape::List(items) = &node.shape else { continue };
            for item in items {
                let item = item.get("name").unwrap_or(item);
                if let (Shape::Text(name), Some(found)) = (&item.shape, referring(item, "", ":-")) {
                    env.push((name.clone(), found));
                }
            }
        }
        if !env.is_empty() {
            let node = leaf(Shape::Table(env), declared.unwrap_or(self.node));
            self.put("env", node);
        }
        if let Some(node) = self.take(&["envFile"]) {
            self.put("env_file", node.clone());
        }
    }

    /// Time-outs, in the units of the host.
    fn times(&mut self, dialect: Dialect) {
        for (key, unit, names) in times::keys(dialect) {
            if let Some(node) = self.take(names) {
                self.found.extend(times::read(key, unit, node, dialect));
            }
        }
    }

    /// Which tools are offered.
    fn tools(&mut self) {
        let mut tools = Vec::new();
        let lists = [
            ("allow", &["includeTools", "enabled_tools", "available_tools", "tools"][..]),
            ("deny", &["excludeTools", "disabled_tools", "disabledTools"]),
        ];
        for (key, names) in lists {
            let Some(node) = self.take(names) else { continue };
            let is_all = |items: &Vec<Node>| items.iter().any(|item| item.shape == Shape::Text("*".to_owned()));
            match &node.shape {
                Shape::List(items) if items.is_empty() || key == "allow" && is_all(items) => {}
                // Of each tool how it is approved, which is the host's business.
                Shape::Table(_) => drop(self.taken.pop()),
                _ => tools.push((key.to_owned(), node.clone())),
            }
        }
        if let Some((_, first)) = tools.first() {
            let node = leaf(Shape::Table(tools.clone()), first);
            self.put("tools", node);
        }
    }

    /// What belongs to the other transport has no effect in the host, and would be a fault here.
    fn without_other_transport(&mut self, is_remote: bool, notes: &mut Vec<Note>) {
        let has_command = self.found.iter().any(|(key, _)| key == "command");
        let foreign: &[&str] = match (is_remote, has_command) {
            (true, false) => &["args", "env", "env_file", "cwd"],
            (false, true) => &["headers"],
            _ => return,
        };
        let name = self.name;
        self.found.retain(|(key, node)| {
            let is_foreign = foreign.contains(&key.as_str());
            let is_empty = matches!(&node.shape, Shape::List(items) if items.is_empty());
            if is_foreign && !is_empty {
                let text = format!("`{key}` of `{name}` has no meaning for this transport and is not used");
                notes.push(Note::new("unused-key", node.key_or_span(), text));
            }
            !is_foreign
        });
    }

    /// Files whose text is sent to another machine: whoever writes a project's file would choose both.
    fn sent_files(&self, notes: &mut Vec<Note>) {
        let name = self.name;
        for (key, node) in self.found.iter().filter(|(key, _)| ["url", "headers"].contains(&key.as_str())) {
            for node in std::iter::once(node).chain(node.entries().iter().map(|(_, node)| node)) {
                let Shape::Text(text) = &node.shape else { continue };
                // A dollar sign that is written twice begins no reference.
                let plain = text.replace("$$", "");
                let Some((path, _)) = plain.split_once("${file:").and_then(|(_, rest)| rest.split_once('}')) else {
                    continue;
                };
                let text = format!("`{key}` of `{name}` sends what the file {path} holds to the address of the server");
                let label = "remove it unless you have written it yourself".to_owned();
                let note = Note::new("file-sent", node.key_or_span(), text);
                notes.push(Note { label: Some(label), ..note });
            }
        }
    }

    /// Names what is left.
    fn end(&mut self, notes: &mut Vec<Note>) {
        self.left.retain(|(key, _)| !["disabled", "enabled"].contains(key));
        for (key, node) in self.left.drain(..).filter(|(key, _)| !SILENT.contains(key)) {
            let near = nearest(key, &KNOWN).filter(|near| *near != key);
            let name = self.name;
            let text = match LOGINS.contains(&key) {
                // Nothing is asked for.
                true if node.shape == Shape::Bool(false) => continue,
                true => {
                    let own = slug(name);
                    format!(
                        "`{key}` of `{name}` is the login of the host and not taken over: `trunkline login {own}` logs in \
                         here; what it needs to know of a client goes into [upstreams.{own}.auth], with `type = \"oauth\"`"
                    )
                }
                false => format!("`{key}` of `{name}` is ignored: Trunkline has no such setting"),
            };
            let note = Note::new("unused-key", node.key_or_span(), text);
            notes.push(Note { label: near.map(|near| format!("did you mean `{near}`?")), ..note });
        }
    }
}

/// What the value of this key must be, where it is not.
fn expected(key: &str, shape: &Shape) -> Option<&'static str> {
    match (key, shape) {
        ("disabled" | "enabled", Shape::Bool(_)) => None,
        ("disabled" | "enabled", _) => Some("true or false"),
        ("headers" | "http_headers" | "env_http_headers" | "env" | "envs" | "environment", Shape::Table(_)) => None,
        ("headers" | "http_headers" | "env_http_headers" | "env" | "envs" | "environment", _) => {
            Some("an object of names and values")
        }
        ("env_vars" | "env_keys", Shape::List(_)) | ("bearer_token_env_var", Shape::Text(_)) => None,
        ("env_vars" | "env_keys", _) => Some("a list of names"),
        ("bearer_token_env_var", _) => Some("the name of a variable"),
        _ => None,
    }
}

/// The value of a variable that a host names: `prefix`, and a reference to it with this at its end.
fn referring(node: &Node, prefix: &str, end: &str) -> Option<Node> {
    let Shape::Text(name) = &node.shape else { return None };
    Some(leaf(Shape::Text(format!("{prefix}${{{name}{end}}}")), node))
}
