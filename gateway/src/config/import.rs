//! A file as a source. The servers of a host's file stand where our upstreams do, so that `[upstreams.NAME]` lies over them.

use std::ops::Range;
use std::path::Path;

use super::fault::{self, Fault, Place, Severity};
use super::source::file::Unreadable;
use super::source::host::{self, Hosted, Note};
use super::source::names;
use super::source::node::{NULL, Names, Node, Origin, Shape, Source};
use super::source::{self, json, toml, yaml};

pub(crate) use super::read::nearest::{nearest, told};
pub(crate) use super::secret::looks::looks_secret;
pub(crate) use super::source::json::unclosed;

/// The file of a host as a source, and what is doubtful of it.
pub(crate) fn file(path: &Path) -> Result<(Source, Vec<Fault>), Box<Fault>> {
    let text = source::file::read(path).map_err(|why| unreadable(path, &why, why.advice_for_host()))?;
    let (format, parsed) = parsed(path, &text);
    match parsed {
        Ok(root) => Ok(source(path, text, root, format)),
        Err(unread) => Err(Box::new(unread.fault(path.display().to_string(), &text, format))),
    }
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, Box<Fault>> {
    source::file::read(path).map_err(|why| unreadable(path, &why, why.advice()))
}

fn unreadable(path: &Path, why: &Unreadable, advice: Option<&str>) -> Box<Fault> {
    let fault = Fault::error("unreadable-file", format!("cannot read {}: {why}", path.display()));
    Box::new(Fault { hint: advice.map(str::to_owned), ..fault })
}

/// The values of a file as a source.
pub(super) fn source(path: &Path, text: String, root: Node, format: Format) -> (Source, Vec<Fault>) {
    let names = if format == Format::Json { Names::default() } else { Names::of(&root) };
    let source =
        Source { origin: Origin::File(path.to_owned()), text, root, imported: Vec::new(), left_out: Vec::new(), names };
    taken(source, format != Format::Toml)
}

/// Of a text that is well written, and may be the file of a host that has no servers.
pub(crate) const NO_SERVERS: &str = "no-servers";

/// Why a text has no values: what is wrong, and where.
pub(super) struct Unread {
    pub(super) kind: &'static str,
    pub(super) at: Range<usize>,
    pub(super) why: String,
    /// Whether the name of a key stands there.
    is_name: bool,
}

impl Unread {
    /// The fault of the file at `path`, with this text.
    pub(super) fn fault(self, path: String, text: &str, format: Format) -> Fault {
        self.fault_beside_others(path, (text, text), format)
    }

    /// The same of a text in which what has other faults is left out, beside the whole one: a line may go on with what was left out, and
    /// a name in it may be a part of that.
    pub(super) fn fault_beside_others(self, path: String, (text, whole): (&str, &str), format: Format) -> Fault {
        let Self { kind, at, why, is_name } = self;
        // A line with a syntax error may be the one with the secret; the name of a key that stands twice is none, nor are those that
        // are names however the text was meant.
        let names = |text: &str| match format {
            Format::Json => names::of_json(text, at.start),
            Format::Yaml => names::of_yaml(text, at.start),
            Format::Toml => names::of_toml(text, at.start),
        };
        let certain = names(whole);
        let mut names = names(text);
        names.retain(|name| certain.contains(name));
        let open = is_name.then(|| at.clone());
        let excerpt = fault::excerpt(text, at, open.as_slice(), &names);
        Fault::error(kind, why).at(Some(Place::File { path, excerpt }))
    }
}

impl From<json::Syntax> for Unread {
    fn from(syntax: json::Syntax) -> Self {
        let kind = if syntax.is_without_servers { NO_SERVERS } else { "syntax" };
        Self { kind, at: syntax.at, why: syntax.text, is_name: syntax.is_name }
    }
}

impl From<toml::Syntax> for Unread {
    fn from(syntax: toml::Syntax) -> Self {
        Self { kind: "syntax", at: syntax.at, why: syntax.text, is_name: syntax.is_name }
    }
}

/// The values of a text.
type Parsed = Result<Node, Unread>;

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With comments and trailing commas: a host's.
    Json,
    /// A host's.
    Yaml,
    /// Ours, or a host's.
    Toml,
}

impl Format {
    /// The values of a text.
    pub(super) fn parse(self, text: &str) -> Parsed {
        match self {
            Self::Json => json::parse(text).map_err(Unread::from),
            Self::Yaml => yaml::parse(text).map_err(Unread::from),
            Self::Toml => toml::parse(text).map_err(Unread::from),
        }
    }
}

/// The values of a file, and what it is written in: by its content, and by its name where that says nothing.
pub(super) fn parsed(path: &Path, text: &str) -> (Format, Parsed) {
    let is_named = |endings: [&str; 2]| path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one));
    let format = match text.trim_start().starts_with('{') || is_named(["json", "jsonc"]) {
        true => Format::Json,
        false if is_named(["yaml", "yml"]) => Format::Yaml,
        false => Format::Toml,
    };
    let parsed = format.parse(text);
    if format == Format::Toml && parsed.is_err() && toml::is_yaml(text) {
        return (Format::Yaml, Format::Yaml.parse(text));
    }
    (format, parsed)
}

/// In which line the text of a host's file is not well written, and why.
pub(crate) fn unread(text: &str, format: Format) -> Option<(usize, String)> {
    let Unread { kind, at, why, .. } = format.parse(text).err()?;
    (kind == "syntax").then(|| (line_number(text, at.start), why))
}

/// The line of a file in which something stands, counted from one.
pub(crate) fn line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Whether the text of a host's file has servers of opencode where its second version has them, and the one of this name nowhere else.
pub(crate) fn is_of_opencode_two(text: &str, name: &str) -> bool {
    Format::Json.parse(text).is_ok_and(|root| host::is_of_opencode_two(&root, name))
}

/// The server of this name under the keys of a host's file, as an upstream; an error says why the file cannot be read.
pub(crate) fn server_in(text: &str, format: Format, keys: &[&str], name: &str) -> Result<Option<Node>, String> {
    let parsed = match format {
        // A text without any key is one of nobody yet.
        Format::Yaml => yaml::whole(text).map(|whole| whole.root).map_err(Unread::from),
        format => format.parse(text),
    };
    let root = parsed.map_err(|Unread { at, why, .. }| format!("line {}: {why}", line_number(text, at.start)))?;
    let found = keys.iter().try_fold(&root, |node, key| node.get(key));
    // Beside a server that cannot be told from another nothing is written.
    let broken = found.map_or(&[][..], Node::entries).iter().find_map(|(_, node)| match &node.shape {
        Shape::Broken(why) if why != NULL => Some(why.clone()),
        _ => None,
    });
    broken.map_or(Ok(()), Err)?;
    let own = match found.map(|servers| &servers.shape) {
        Some(Shape::List(items)) => {
            let is_own = |item: &&Node| item.get("name").is_some_and(|own| own.shape == Shape::Text(name.to_owned()));
            Shape::List(items.iter().filter(is_own).cloned().collect())
        }
        _ => {
            let servers = found.map_or(&[][..], Node::entries);
            if let Some((rival, _)) = servers.iter().find(|(other, _)| other != name && host::slug(other) == name) {
                return Err(format!("`{rival}` and `{name}` are the same name; rename `{rival}`"));
            }
            Shape::Table(servers.iter().filter(|(other, _)| other == name).cloned().collect())
        }
    };
    let own = Node { shape: own, ..Node::default() };
    let within = |inner, key: &&str| Node { shape: Shape::Table(vec![((*key).to_owned(), inner)]), ..Node::default() };
    let alone = keys.iter().rev().fold(own, within);
    Ok(host::read(&alone, None).servers.pop().map(|server| server.node))
}

/// The source with the servers of its host under `upstreams`, and what is to be said of them. In TOML of our own only `mcpServers` is
/// a host's.
pub(super) fn taken(mut source: Source, is_host: bool) -> (Source, Vec<Fault>) {
    let is_host = is_host || host::is_hosted(&source.root);
    if !is_host && source.root.get("mcpServers").is_none() {
        return (source, Vec::new());
    }
    let entries = source.root.entries().to_vec();
    let (theirs, mut ours): (Vec<_>, Vec<_>) = match is_host {
        true => (entries, Vec::new()),
        false => entries.into_iter().partition(|(key, _)| key == "mcpServers"),
    };
    let theirs = Node { shape: Shape::Table(theirs), ..Node::default() };
    let certain = match &source.origin {
        Origin::File(path) => host::at(path),
        _ => None,
    };
    let Hosted { servers, notes, left_out } = host::read(&theirs, certain);
    source.left_out = left_out;
    let mut faults: Vec<Fault> = notes.into_iter().map(|note| said(&source, note)).collect();
    let at = ours.iter().position(|(key, _)| key == "upstreams").unwrap_or_else(|| {
        ours.push(("upstreams".to_owned(), Node::default()));
        ours.len() - 1
    });
    if let Shape::Table(upstreams) = &mut ours[at].1.shape {
        for server in servers {
            if let Some((_, own)) = upstreams.iter().find(|(name, _)| *name == server.slug) {
                let (first, second) = (own.key_or_span(), server.node.key_or_span());
                faults.push(doubled(&source, &server.name, &server.slug, first, second));
                continue;
            }
            source.imported.push((server.slug.clone(), server.name));
            upstreams.push((server.slug, server.node));
        }
    }
    source.root.shape = Shape::Table(ours);
    (source, faults)
}

/// What is said of a name that stands twice in a file of our own.
fn doubled(source: &Source, name: &str, slug: &str, first: Range<usize>, second: Range<usize>) -> Fault {
    let what = match name == slug {
        true => format!("`{name}` is defined twice"),
        false => format!("`{slug}` and `{name}` are both named `{slug}`"),
    };
    let (first, second) = (source.place(first, &[]), source.place(second, &[]));
    let places = first.zip(second.clone()).map(|(first, second)| format!(": {first} and {second}"));
    Fault::error("duplicate-name", format!("{what}{}", places.unwrap_or_default())).at(second)
}

/// A note with its place.
fn said(source: &Source, note: Note) -> Fault {
    let Note { kind, at, text, label, other } = note;
    // What holds a reference may hold a secret beside it.
    let open = if kind == "bad-reference" { Vec::new() } else { vec![at.clone()] };
    let (place, other) = (source.place(at, &open), other.and_then(|at| source.place(at, &[])));
    let both = other.zip(place.clone()).map(|(first, second)| format!(": {first} and {second}"));
    let fault = Fault::error(kind, format!("{text}{}", both.unwrap_or_default())).at(place);
    Fault { severity: Severity::Warning, label, ..fault }
}

/// A server that a later host's file has again is that of the later file, whole.
pub(super) fn replaced(earlier: &mut [Source], later: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in earlier {
        let again = |slug: &String| later.imported.iter().any(|(name, _)| name == slug);
        let (gone, stay): (Vec<_>, Vec<_>) =
            std::mem::take(&mut source.imported).into_iter().partition(|(slug, _)| again(slug));
        source.imported = stay;
        for (slug, name) in gone {
            let path = ["upstreams".to_owned(), slug.clone()];
            let place = |source: &Source| source.place(source.node(&path)?.key_or_span(), &[]);
            let places = place(source).zip(place(later)).map(|(first, second)| format!(": {second} replaces {first}"));
            let text = format!("`{name}` is defined twice{}", places.unwrap_or_default());
            faults.push(Fault::warning("replaced", text).at(place(later)));
            source.root.remove(&path);
        }
    }
    faults
}
