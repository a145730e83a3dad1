//! Arguments and addresses of a configuration as they may be shown: what clearly is no secret; in doubt a value is masked, and never a name.

use super::looks::looks_secret;
use crate::secrets::looks_random;

/// What stands in place of a value that may be a secret.
pub(crate) const HIDDEN: &str = "[secret]";
/// Short flags behind which programs take passwords, tokens and users.
const SHORT: [&str; 8] = ["-p", "-P", "-k", "-t", "-u", "-U", "-s", "-a"];
/// A longer word of letters alone may be chance.
const WORD_MAX: usize = 24;

/// The arguments of a program.
pub(crate) fn args(args: &[&str]) -> Vec<String> {
    let one = |(index, arg): (usize, &&str)| {
        let before = index.checked_sub(1).and_then(|before| args.get(before)).copied().unwrap_or_default();
        match flag_before(before) {
            _ if is_flag(arg) => flag(arg),
            _ if arg.starts_with('-') && *arg != "-" => HIDDEN.to_owned(),
            Some(true) => hidden(arg),
            _ => value(arg),
        }
    };
    args.iter().enumerate().map(one).collect()
}

/// The address of a server: its scheme, host, port and path, and the names of its parameters.
pub(crate) fn address(text: &str) -> String {
    if let Some(path) = text.strip_prefix("unix:") {
        return format!("unix:{}", value(path));
    }
    let is_scheme = |scheme: &str| scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return hidden(text);
    };
    let (before, fragment) = rest.split_once('#').map_or((rest, ""), |(before, _)| (before, "#[secret]"));
    let (before, query) = before.split_once('?').map_or((before, None), |(before, query)| (before, Some(query)));
    let (user, place) = match without_user(before) {
        Some(place) => ("[secret]@", place),
        None => ("", before),
    };
    let mut parts = place.split('/');
    let host = parts.next().unwrap_or_default();
    let is_host = host.chars().all(|char| char.is_ascii_alphanumeric() || "-._:[]${}".contains(char));
    let mut out = format!("{scheme}://{user}{}", if is_host { host } else { HIDDEN });
    for part in parts {
        out.push('/');
        out.push_str(&if part.is_empty() { String::new() } else { piece(part) });
    }
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let name = if name.is_empty() { String::new() } else { format!("{}=", piece(name)) };
        out.push_str(&format!("{name}{}", hidden(value)));
    }
    out + fragment
}

/// What stands behind the name and the password before a host, where there are some. A password may have a slash in it.
fn without_user(text: &str) -> Option<&str> {
    let host = text.split('/').next().unwrap_or_default();
    let is_port = |port: &str| port.contains(['$', ']']) || port.bytes().all(|byte| byte.is_ascii_digit());
    let is_cut = host.rsplit_once(':').is_some_and(|(_, port)| !is_port(port));
    match host.rfind('@') {
        Some(at) => text.get(at + 1..),
        None if is_cut => text.rsplit_once('@').map(|(_, place)| place),
        None => None,
    }
}

/// Whether a value that follows may be a secret: `None` where nothing says what it is.
fn flag_before(before: &str) -> Option<bool> {
    let name = before.strip_prefix('-')?;
    Some(!before.contains(['=', ':', ' ']) && (SHORT.contains(&before) || looks_secret(name)))
}

/// Whether it is `--name`, `-y`, or a few such letters. Behind one that programs take secrets with a value may stand without a blank.
fn is_flag(arg: &str) -> bool {
    let is_short = |name: &str| name.len() == 1 || (2..=4).contains(&name.len()) && !SHORT.contains(&&arg[..2]);
    arg.starts_with("--") || arg.strip_prefix('-').is_some_and(|name| name.is_ascii() && is_short(name))
}

/// `--name` or `--name=value`.
fn flag(arg: &str) -> String {
    let (name, given) = arg.split_once('=').map_or((arg, None), |(name, given)| (name, Some(given)));
    let is_name = name.trim_start_matches('-').split('-').all(|part| part.is_empty() || is_plain(part));
    match given {
        _ if !is_name => HIDDEN.to_owned(),
        None => name.to_owned(),
        Some(given) if looks_secret(name) => format!("{name}={}", hidden(given)),
        Some(given) => format!("{name}={}", value(given)),
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
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
    for mark in ["=", ": "] {
        if let Some((name, given)) = text.split_once(mark).filter(|(name, _)| is_name(name) && is_plain_name(name)) {
            return format!("{name}{mark}{}", hidden(given));
        }
    }
    let is_path = text.starts_with(['/', '.', '~']) && text.len() > 1 || text.starts_with("${");
    match text {
        "" | "-" | "." => text.to_owned(),
        _ if is_path => text
            .split('/')
            .map(|part| if part.is_empty() { String::new() } else { piece(part) })
            .collect::<Vec<_>>()
            .join("/"),
        _ => package(text).unwrap_or_else(|| HIDDEN.to_owned()),
    }
}

/// A number, a word, or the name of a package with its version: `@scope/server-files@1.2`, `docker.io/mcp/time:latest`.
fn package(text: &str) -> Option<String> {
    let is_number = text.len() < 8 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let parts = text.split(['@', '/', ':']).filter(|part| !part.is_empty());
    let is_package = text.chars().all(|char| char.is_ascii_alphanumeric() || "@/:._-".contains(char))
        && !looks_random(text)
        && parts.clone().all(|part| part.split(['-', '_', '.']).all(is_plain))
        && text.split_once(':').is_none_or(is_tagged);
    (is_number || is_package).then(|| text.to_owned())
}

/// Whether what stands before and behind a colon is an image and its tag, and no name with a password.
fn is_tagged((image, tag): (&str, &str)) -> bool {
    let is_version = tag.starts_with(|char: char| char.is_ascii_digit()) || tag == "latest";
    !tag.contains(['@', ':', '/']) && (is_version || image.contains('/'))
}

/// One part of a path.
fn piece(part: &str) -> String {
    let is_plain = part.chars().all(|char| char.is_alphanumeric() || "._-@+ ~".contains(char))
        && !looks_random(part)
        && part.split(['-', '_', '.', ' ', '@', '+', '~']).all(is_plain);
    if is_plain || is_reference(part) { part.to_owned() } else { HIDDEN.to_owned() }
}

/// Whether a word is one of letters, or of digits with at most one letter before or behind them, as versions have it.
fn is_plain(word: &str) -> bool {
    let letters = word.chars().filter(|char| char.is_alphabetic()).count();
    let digits = word.chars().filter(char::is_ascii_digit).count();
    match digits {
        0 => word.len() <= WORD_MAX && is_word(word),
        // `v2`, `mcp2`, `k8s`: no password is so short.
        _ => letters == 0 && digits <= 6 || letters + digits <= 4,
    }
}

/// Whether a word has capitals at its beginning alone, or nothing else.
fn is_word(word: &str) -> bool {
    let capitals = word.chars().filter(|char| char.is_uppercase()).count();
    let changes =
        word.chars().zip(word.chars().skip(1)).filter(|(one, next)| one.is_uppercase() && next.is_lowercase());
    capitals == word.chars().count() || changes.count() <= 2 && capitals <= 3
}

fn is_plain_name(name: &str) -> bool {
    name.split(['_', '-']).all(is_plain)
}

/// The names of references alone: what stands for one without a value may be a secret.
fn is_reference(text: &str) -> bool {
    let is_one =
        |inside: &str| !inside.is_empty() && inside.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(|inside| {
        is_one(inside) || inside.strip_prefix("file:").is_some_and(|path| !path.contains(['$', '{', '}']))
    })
}

/// A value that may be a secret, unless it only refers to one.
pub(crate) fn hidden(text: &str) -> String {
    match text {
        "" => String::new(),
        text if is_reference(text) => text.to_owned(),
        text => match text.split_once(' ').filter(|(scheme, rest)| is_word(scheme) && is_reference(rest)) {
            Some((scheme, rest))
                if ["bearer", "basic", "token"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) =>
            {
                format!("{scheme} {rest}")
            }
            _ => HIDDEN.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> String {
        args(words).join(" ")
    }

    #[test]
    fn what_clearly_is_no_secret_is_shown() {
        for line in [
            "-y @modelcontextprotocol/server-filesystem@2025.1 /home/me/projects ./src ~/notes",
            "run -i --rm --network=host docker.io/mcp/time:latest",
            "mcp-server-git --repository /srv/repo --port 8080 --log-level=debug --verbose",
            "-m mcp_server_fetch --user-agent Mozilla",
            "mcp-remote https://mcp.example.com:8443/sse/v1",
            "--token ${TOKEN} --header Authorization:${AUTH} ${HOME}/x ${file:/run/secrets/a}",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let expected = line.replace("Authorization:${AUTH}", "[secret]");
            assert_eq!(shown(&words), expected);
        }
        for url in [
            "https://mcp.example.com/v1/mcp",
            "http://127.0.0.1:3000/mcp",
            "unix:/run/mcp.sock",
            "ws://[::1]:80/ws",
            "https://${HOST}/mcp/${KEY}",
            "https://server.example.com/@me/server/mcp",
        ] {
            assert_eq!(address(url), url);
        }
    }

    #[test]
    fn in_doubt_a_value_is_masked_and_no_name() {
        for (line, expected) in [
            (&["--token", "hunter"][..], "--token [secret]"),
            (&["-"], "-"),
            (&["xf", "-", "-C"], "xf - -C"),
            (&["--api-key=hunter"], "--api-key=[secret]"),
            (&["-p", "hunter"], "-p [secret]"),
            (&["-phunter"], "[secret]"),
            (&["hunter2hunter"], "[secret]"),
            (&["-e", "MODE=fast"], "-e MODE=[secret]"),
            (&["--header", "Authorization: Bearer hunter"], "--header Authorization: [secret]"),
            (&["--header", "Authorization: Bearer ${T}"], "--header Authorization: Bearer ${T}"),
            (&["-c", "curl -H key:hunter https://h"], "-c [secret]"),
            (&["{\"key\": \"hunter\"}"], "[secret]"),
            (&["me:hunter@tcp(h)/db"], "[secret]"),
            (&["me:hunter@host"], "[secret]"),
            (&["me:hunter"], "[secret]"),
            (&["${T:-hunter}"], "[secret]"),
            (&["sk-proj-AbCdEfGh0123"], "[secret]"),
            (&["ghp_0123456789abcdefghijABCDEFGHIJ012345"], "[secret]"),
            (&["/srv/694b49ebd5f443d985f4000000000000/x"], "/srv/[secret]/x"),
            (&["postgres://me:hunter@db:5432/app"], "postgres://[secret]@db:5432/app"),
        ] {
            assert_eq!(shown(line), expected);
        }
        for (url, expected) in [
            (
                "https://h.example/mcp?api_key=hunter&page=1#hunter",
                "https://h.example/mcp?api_key=[secret]&page=[secret]#[secret]",
            ),
            ("https://h/s/Njk0YjQ5ZWItZDVmNC00M2Q5LTg1/mcp", "https://h/s/[secret]/mcp"),
            ("https://hunter@h/x", "https://[secret]@h/x"),
            ("https://me:hun/ter@h/x", "https://[secret]@h/x"),
            ("https://h/?hunter", "https://h/?[secret]"),
            ("https://h/mcp?key=${KEY}", "https://h/mcp?key=${KEY}"),
        ] {
            assert_eq!(address(url), expected);
        }
    }
}
