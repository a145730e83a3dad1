//! Arguments, commands and other values of a configuration as they may be shown: what clearly is no secret; in doubt a value is masked.

use super::address::{is_path, path};
use super::looks::{begins_as_key, counts, names_file, names_secret, turns_off};
use super::word::{is_number, is_plain, is_reference, is_scheme, piece, without_defaults};
use crate::secrets::looks_random;

pub(crate) use super::address::address;
pub(crate) use super::word::{HIDDEN, hidden};

/// Short flags behind which programs take passwords, tokens and users.
const SHORT: [&str; 8] = ["-p", "-P", "-k", "-t", "-u", "-U", "-s", "-a"];
/// What `-t` takes where it is no token.
const TRANSPORTS: [&str; 6] = ["stdio", "http", "https", "sse", "streamable-http", "ws"];
/// What may stand behind a version in the tag of an image.
const VARIANTS: [&str; 7] = ["alpine", "slim", "bookworm", "bullseye", "beta", "alpha", "rc"];
/// Images whose name says enough that a version behind it is no password.
const IMAGES: [&str; 18] = [
    "alpine",
    "busybox",
    "debian",
    "elasticsearch",
    "golang",
    "mariadb",
    "memcached",
    "mongo",
    "mysql",
    "nginx",
    "node",
    "postgres",
    "python",
    "rabbitmq",
    "redis",
    "ruby",
    "rust",
    "ubuntu",
];
/// How a volume can be mounted.
const MOUNTED: [&str; 6] = ["ro", "rw", "z", "Z", "cached", "delegated"];

/// What a mount is made of.
const MOUNT_KEYS: [&str; 7] = ["type", "src", "source", "dst", "destination", "target", "readonly"];

/// What the word before says of the next one.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Open,
    /// It is what a short flag takes.
    Short,
    /// It is a secret, whatever it looks like.
    Secret,
    /// It belongs to a secret, up to the next plain flag.
    Rest,
}

/// The arguments of a program.
pub(crate) fn args(args: &[&str]) -> Vec<String> {
    let (mut next, mut before) = (Next::Open, "");
    let mut out = Vec::with_capacity(args.len());
    for &arg in args {
        let is_flag_like = arg.starts_with('-') && arg != "-";
        let (shown, then) = match next {
            Next::Secret => {
                let shown = given(before, arg);
                let is_whole = !arg.is_empty() && shown == arg;
                let then = if is_whole { Next::Open } else { Next::Rest };
                (shown, if arg.trim().is_empty() || leads(arg) { Next::Secret } else { then })
            }
            Next::Rest if !is_plain_flag(arg) => (hidden(arg), Next::Rest),
            Next::Short if !is_flag_like => (behind_short(before, arg), after(before, arg)),
            Next::Open if ["-v", "--volume"].contains(&before) && is_mount(arg) => (arg.to_owned(), Next::Open),
            Next::Open if before == "--mount" && is_made_of_mounts(arg) => (arg.to_owned(), Next::Open),
            _ => (open(arg), after(before, arg)),
        };
        out.push(shown);
        (next, before) = (then, arg);
    }
    out
}

/// The program that a command names, if nothing else stands there; of anything behind it nobody knows what it is.
pub(crate) fn command(text: &str) -> String {
    let text = without_defaults(text);
    let mut words = text.split_whitespace();
    let is_name = |part: &str| {
        part.chars().all(|char| char.is_alphanumeric() || "._-+@~".contains(char))
            && !looks_random(part)
            && !begins_as_key(part)
    };
    if text.contains("://") {
        return HIDDEN.to_owned();
    }
    let one = |part: &str| if is_reference(part) || is_name(part) { part.to_owned() } else { HIDDEN.to_owned() };
    let program = words.next().map(|word| word.split('/').map(one).collect::<Vec<_>>().join("/"));
    match (program, words.next()) {
        (None, _) => String::new(),
        (Some(program), None) => program,
        (Some(program), Some(_)) if !program.contains(HIDDEN) => format!("{program} {HIDDEN}"),
        (Some(_), Some(_)) => HIDDEN.to_owned(),
    }
}

/// A text that holds no secret by its key: what its words show to be one is masked.
pub(crate) fn text(text: &str) -> String {
    let one = |word: &str| {
        let plain = word.trim_end();
        let shown = match plain {
            _ if plain.contains("://") => address(plain),
            _ if plain.contains('@') && plain.contains(':') || begins_as_key(plain) => HIDDEN.to_owned(),
            _ => return word.to_owned(),
        };
        shown + &word[plain.len()..]
    };
    text.split_inclusive(char::is_whitespace).map(one).collect()
}

/// Whether the value at a key may be shown as it stands in its file.
pub(crate) fn is_open(key: &str, text: &str) -> bool {
    let is_address = ["token_url", "issuer", "roots", "allowed_origins"].contains(&key) || text.contains("://");
    match key {
        "command" => command(text) == text,
        _ => !(is_address || text.contains(['@', '\\']) || begins_as_key(text)) || value(text) == text,
    }
}

/// An argument behind one that says nothing of it.
fn open(arg: &str) -> String {
    match arg {
        "-" => arg.to_owned(),
        _ if is_flag(arg) => flag(arg),
        _ if arg.starts_with('-') => of_java(arg).unwrap_or_else(|| HIDDEN.to_owned()),
        _ => value(arg),
    }
}

/// Whether a text is a volume, or a folder of this machine, and the folder as which a container has it.
fn is_mount(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_name = |name: &str| name.chars().all(|char| char.is_ascii_lowercase() || "-_".contains(char));
    let is_shown = |part: &str| part.len() > 1 && is_path(part) && path(part) == part;
    match &parts[..] {
        [from, to, how @ ..] => {
            (is_shown(from) || !from.is_empty() && is_name(from) && piece(from) == *from)
                && to.starts_with('/')
                && is_shown(to)
                && how.len() <= 1
                && how.iter().all(|how| how.split(',').all(|one| MOUNTED.contains(&one)))
        }
        _ => false,
    }
}

/// Whether a text is the long form of a mount: `type=bind,src=/srv,dst=/data`.
fn is_made_of_mounts(text: &str) -> bool {
    text.split(',').all(|part| {
        let (key, of_it) = part.split_once('=').unwrap_or((part, ""));
        MOUNT_KEYS.contains(&key) && value(of_it) == of_it
    })
}

/// What a virtual machine of Java takes without a blank: a property with its value, `-Dname=value`, or how much memory, `-Xmx512m`.
fn of_java(arg: &str) -> Option<String> {
    let size = arg.strip_prefix("-Xmx").or_else(|| arg.strip_prefix("-Xms"));
    if size.is_some_and(|size| is_number(size.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G']))) {
        return Some(arg.to_owned());
    }
    let (name, of_it) = arg.strip_prefix("-D")?.split_once('=').filter(|(name, _)| is_flag_name(name))?;
    let of_it = if names_secret(name) { hidden(of_it) } else { value(of_it) };
    Some(format!("-D{name}={of_it}"))
}

/// What an argument says of the next one.
fn after(before: &str, arg: &str) -> Next {
    let name = arg.trim().trim_end_matches([':', '=', ' ']);
    let is_name = name.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char));
    // `-e NAME` hands on a variable that has its value from elsewhere.
    let is_handed_on = ["-e", "--env"].contains(&before) && !arg.starts_with('-');
    match arg {
        _ if SHORT.contains(&arg) => Next::Short,
        _ if turns_off(arg) => Next::Open,
        _ if leads(arg) || is_name && !is_handed_on && names_secret(name) => Next::Secret,
        _ => Next::Open,
    }
}

/// Whether the end of an argument says that a value follows.
fn leads(arg: &str) -> bool {
    let text = arg.trim();
    text.ends_with([':', '=']) || text.rsplit([' ', ':', '=']).next().is_some_and(is_scheme)
}

/// What stands behind the name of a secret: shown where the name and the value say that it is none.
fn given(before: &str, arg: &str) -> String {
    let is_file = names_file(before) && arg.matches('/').count() > 1 && is_path(arg) && path(arg) == arg;
    if is_file || counts(before) && is_number(arg) { arg.to_owned() } else { hidden(arg) }
}

/// What stands behind a short flag that may take a secret, or a port, or a transport.
fn behind_short(before: &str, arg: &str) -> String {
    let is_host = |host: &str| host.split('.').all(is_number);
    let is_port = ["-p", "-P"].contains(&before) && arg.split(':').count() <= 3 && arg.split(':').all(is_host);
    let is_transport = before == "-t" && TRANSPORTS.contains(&arg);
    if is_port || is_transport { arg.to_owned() } else { hidden(arg) }
}

/// Whether an argument is a flag and nothing else, or one with a value of its own.
fn is_plain_flag(arg: &str) -> bool {
    let name = arg.split('=').next().unwrap_or_default().trim_start_matches('-');
    arg.starts_with('-') && !name.is_empty() && is_flag(arg) && is_flag_name(name)
}

fn is_flag_name(name: &str) -> bool {
    name.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
        && !begins_as_key(name)
        && name.split(['-', '_', '.']).all(is_plain)
}

/// Whether it is `--name`, `-y`, or a few such letters. Behind one that programs take secrets with a value may stand without a blank.
fn is_flag(arg: &str) -> bool {
    let is_short = |name: &str| name.len() == 1 || (2..=4).contains(&name.len()) && !SHORT.contains(&&arg[..2]);
    arg.starts_with("--") || arg.strip_prefix('-').is_some_and(|name| name.is_ascii() && is_short(name))
}

/// `--name` or `--name=value`.
fn flag(arg: &str) -> String {
    let (name, of_it) = arg.split_once('=').map_or((arg, None), |(name, of_it)| (name, Some(of_it)));
    match of_it {
        _ if !is_flag_name(name.trim_start_matches('-')) => HIDDEN.to_owned(),
        None => name.to_owned(),
        Some(of_it) if name == "--mount" && is_made_of_mounts(of_it) => arg.to_owned(),
        Some(of_it) if names_secret(name) => format!("{name}={}", given(name, of_it)),
        Some(of_it) => format!("{name}={}", value(of_it)),
    }
}

/// What no flag says to be a secret: shown where it is a path, an address, a package, a number or a word.
fn value(text: &str) -> String {
    if is_reference(text) {
        return text.to_owned();
    }
    if text.contains("://") {
        return address(text);
    }
    // A variable, or a header: its name says what it is, and its value is nobody's business.
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char))
            && name.split(['_', '-']).all(is_plain)
            && !begins_as_key(name)
    };
    for mark in ["=", ": "] {
        if let Some((name, of_it)) = text.split_once(mark).filter(|(name, _)| is_name(name)) {
            return format!("{name}{mark}{}", hidden(of_it));
        }
    }
    let is_filled = text.split_once(':').is_some_and(|(name, of_it)| is_name(name) && is_reference(of_it));
    let is_size = text.split_once([',', 'x']).is_some_and(|(one, other)| is_number(one) && is_number(other));
    match text {
        "" | "-" | "." => text.to_owned(),
        _ if is_filled || is_size || is_package(text) => text.to_owned(),
        _ if is_path(text) => path(text),
        _ if text.contains('*') && is_open_pattern(text) || is_list(text) || has_extras(text) => text.to_owned(),
        _ => HIDDEN.to_owned(),
    }
}

/// Whether a pattern of names of files is shown: what stands between its stars is no secret.
fn is_open_pattern(text: &str) -> bool {
    let plain = text.replace('*', "x");
    value(&plain) == plain
}

/// Plain words with commas between them: `database,docs`.
fn is_list(text: &str) -> bool {
    text.contains(',') && text.split(',').all(|part| !part.contains(['@', ':']) && is_package(part))
}

/// A package of Python with what it is to have beside it: `mcp[cli]`.
fn has_extras(text: &str) -> bool {
    let parts = text.strip_suffix(']').and_then(|text| text.split_once('['));
    parts.is_some_and(|(package, extras)| is_package(package) && (is_package(extras) || is_list(extras)))
}

/// A number, a word, or the name of a package with its version: `@scope/server-files@1.2`, `docker.io/mcp/time:latest`.
fn is_package(text: &str) -> bool {
    // Nobody has a password of this form; and packages such as `@upstash/context7-mcp` do.
    let is_scoped = text.starts_with('@') && text.matches('/').count() == 1;
    text.chars().all(|char| char.is_ascii_alphanumeric() || "@/:._-".contains(char))
        && !is_path(text)
        && !looks_random(text)
        && text.split(['@', '/', ':']).all(|part| piece(part) == part || is_scoped && is_numbered(part))
        && text.split_once(':').is_none_or(is_tagged)
}

/// Whether a part of a name is made of words, of which each may have a digit at its end.
fn is_numbered(part: &str) -> bool {
    !begins_as_key(part)
        && part.split(['-', '_', '.']).all(|word| {
            is_plain(word) || is_plain(word.strip_suffix(|char: char| char.is_ascii_digit()).unwrap_or(word))
        })
}

/// Whether what stands before and behind a colon is an image and its tag, a port of this machine, or a repository, and no name with a
/// password.
fn is_tagged((before, tag): (&str, &str)) -> bool {
    let (version, variant) = tag.split_once('-').unwrap_or((tag, ""));
    let numbers: Vec<&str> = version.strip_prefix('v').unwrap_or(version).split('.').collect();
    let is_version = numbers.iter().all(|number| is_number(number))
        && (numbers.len() > 1 || numbers[0].len() <= 2)
        && (variant.is_empty() || VARIANTS.iter().any(|known| variant.starts_with(known)));
    let is_image = tag == "latest" || (before.contains('/') || IMAGES.contains(&before)) && is_version;
    let is_here = before == "localhost" || before.split('.').count() == 4 && before.split('.').all(is_number);
    let is_repository = before.strip_prefix("git@").is_some_and(|host| host.contains('.') && !host.contains('/'))
        && tag.ends_with(".git")
        && tag.contains('/')
        && !tag.contains([':', '@']);
    is_image || is_here && is_number(tag) || is_repository
}

#[cfg(test)]
mod tests;
