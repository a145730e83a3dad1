//! Which containers run the gateway, with which files and which variables.

use std::path::{Path, PathBuf};

use crate::config::fault::{Fault, printable};
use crate::config::source::node::Node;

use super::object::{kind, list, name, pod, text, texts};
use super::objects::Objects;
use super::variables::Variables;

/// One gateway that manifests would start.
pub(crate) struct Gateway {
    /// What starts it, such as `Deployment mcp`.
    pub(crate) of: String,
    /// Its files in their order, under the names of their ConfigMaps.
    pub(crate) files: Vec<(PathBuf, String)>,
    /// Why a file of it is not among the manifests.
    pub(crate) absent: Vec<Fault>,
    /// Its variables.
    pub(crate) variables: Vec<(String, String)>,
    /// Those of them whose value nobody sees here.
    pub(crate) stand_ins: Vec<String>,
}

/// Whether a text is a stream of manifests.
pub(crate) fn is_stream(text: &str) -> bool {
    ["apiVersion:", "kind:"].iter().all(|key| text.lines().any(|line| line.starts_with(key)))
}

/// The gateways of a stream. Without a container that runs one, a ConfigMap with `config.toml` is the configuration of one.
pub(crate) fn gateways(text: &str) -> Result<Vec<Gateway>, Box<Fault>> {
    let objects = Objects::of(text)?;
    let mut gateways: Vec<Gateway> = objects.all.iter().flat_map(|object| run_by(&objects, object)).collect();
    if gateways.is_empty() {
        gateways = maps(&objects);
    }
    match gateways.is_empty() {
        false => Ok(gateways),
        true => {
            let why = "no container among the manifests runs `trunkline serve --config FILE`, and no ConfigMap has `config.toml`";
            let hint = "leave `--show-only` away, or write the configuration itself to stdin";
            Err(Box::new(Fault { hint: Some(hint.to_owned()), ..Fault::error("no-configuration", why) }))
        }
    }
}

/// The gateways that an object runs.
fn run_by(objects: &Objects, object: &Node) -> Vec<Gateway> {
    let Some(pod) = pod(object) else { return Vec::new() };
    let of = format!("{} {}", kind(object), name(object).unwrap_or_default());
    list(pod, "containers").iter().filter_map(|container| gateway(objects, &of, pod, container)).collect()
}

fn gateway(objects: &Objects, of: &str, pod: &Node, container: &Node) -> Option<Gateway> {
    let variables = Variables::of(container, objects);
    let words: Vec<&str> = ["command", "args"].iter().flat_map(|key| texts(container, key)).collect();
    let mut named = configurations(&words);
    if named.is_empty() {
        named.extend(variables.get("TRUNKLINE_CONFIG"));
    }
    if !words.contains(&"serve") || named.is_empty() {
        return None;
    }
    let (mut files, mut absent) = (Vec::new(), Vec::new());
    for path in named {
        match file(objects, path, pod, container) {
            Ok(file) => files.push(file),
            Err(why) => absent.push(*why),
        }
    }
    let (variables, stand_ins) = variables.with_stand_ins(&files);
    Some(Gateway { of: printable(of).to_string(), files, absent, variables, stand_ins })
}

/// The file that a container finds at a path.
fn file(objects: &Objects, path: &str, pod: &Node, container: &Node) -> Result<(PathBuf, String), Box<Fault>> {
    let mounts = list(container, "volumeMounts").iter();
    let under = mounts.filter_map(|mount| Some((text(mount, "mountPath")?, mount)));
    let under = under.filter_map(|(folder, mount)| {
        let rest = Path::new(path).strip_prefix(folder).ok()?;
        let inside = text(mount, "subPath").map_or_else(|| rest.to_owned(), |inside| join(inside, rest));
        Some((folder.len(), inside, text(mount, "name")?))
    });
    let (_, inside, volume) = under.max_by_key(|(length, ..)| *length).ok_or_else(|| {
        let why = format!("nothing is mounted at {} in its container", printable(path));
        Box::new(Fault::error("absent-file", why))
    })?;
    let inside = inside.display().to_string();
    let volume = list(pod, "volumes").iter().find(|one| text(one, "name") == Some(volume));
    let projected = volume.and_then(|volume| volume.get("projected"));
    let projected = projected.into_iter().flat_map(|projected| list(projected, "sources"));
    let mut absent = None;
    for map in volume.into_iter().chain(projected).filter_map(|source| source.get("configMap")) {
        let name = text(map, "name").unwrap_or_default();
        let Some(key) = key_at(map, &inside) else { continue };
        let data = objects.data("ConfigMap", name);
        if let Some((_, content)) = data.into_iter().flatten().find(|(known, _)| *known == key) {
            return Ok((Path::new(name).join(&key), content.clone()));
        }
        if data.is_none() {
            absent = Some(name);
        }
    }
    Err(Box::new(match absent {
        Some(name) => {
            let why =
                format!("the ConfigMap `{}` with {} is not among the manifests", printable(name), printable(path));
            let hint = "write it to stdin as well, behind a line with ---".to_owned();
            Fault { hint: Some(hint), ..Fault::error("absent-file", why) }
        }
        None => Fault::error("absent-file", format!("no ConfigMap among the manifests has {}", printable(path))),
    }))
}

/// ConfigMaps as configurations.
fn maps(objects: &Objects) -> Vec<Gateway> {
    let maps = objects.all.iter().filter(|object| kind(object) == "ConfigMap");
    let found = maps.filter_map(|map| {
        let name = name(map)?;
        let data = objects.data("ConfigMap", &name)?;
        data.iter().any(|(key, _)| key == "config.toml").then_some(())?;
        let files = data.iter().filter(|(key, _)| key.ends_with(".toml"));
        let files = files.map(|(key, text)| (Path::new(&name).join(key), text.clone())).collect::<Vec<_>>();
        let (variables, stand_ins) = Variables::of_anybody().with_stand_ins(&files);
        let of = format!("ConfigMap {}", printable(&name));
        Some(Gateway { of, files, absent: Vec::new(), variables, stand_ins })
    });
    found.collect()
}

/// A path inside a volume. What is mounted by itself has no more of it.
fn join(inside: &str, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { PathBuf::from(inside) } else { Path::new(inside).join(rest) }
}

/// The key of a mounted ConfigMap whose content stands in a file of this name.
fn key_at(map: &Node, file: &str) -> Option<String> {
    if map.get("items").is_none() {
        return Some(file.to_owned());
    }
    let item = list(map, "items").iter().find(|item| text(item, "path") == Some(file))?;
    text(item, "key").map(str::to_owned)
}

/// The files of a command line.
fn configurations<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match word.strip_prefix("--config=") {
            Some(file) => found.push(file),
            None if ["--config", "-c"].contains(word) => found.extend(words.get(at + 1).copied()),
            None => {}
        }
    }
    found
}
