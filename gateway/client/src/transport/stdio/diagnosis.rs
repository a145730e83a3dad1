//! A child's own words in a cause: which of its last lines tell most. They are for those who run the gateway: they may hold what
//! one of several clients has sent.

/// So many lines are shown where none of them says more than the others.
const LINES_MAX: usize = 3;
/// So much of one of them is shown.
const CHARS_MAX: usize = 300;
/// Lines that say nothing begin so: where a log is kept, what follows a stack, what else could be installed.
const IDLE: [&str; 6] = [
    "npm error A complete log",
    "npm ERR! A complete log",
    "npm notice",
    "npm warn",
    "Node.js v",
    "note: run with `RUST_BACKTRACE",
];
/// What the line of an error says, in lower case.
const OF_ERRORS: [&str; 8] = ["error", "fatal", "panic", "exception", "cannot", "failed", "not found", "denied"];
/// What npm says of an error besides its reason.
const OF_NPM: [&str; 4] = ["syscall ", "errno ", "path ", "dest "];

/// What is added to a cause for a child's last lines on stderr, of all that were kept of them.
pub(crate) fn of_stderr(lines: &[String]) -> String {
    let telling = telling(lines);
    let before = match telling.len() {
        0 => return String::new(),
        1 => "line",
        _ => "lines",
    };
    format!("; last {before} on stderr: {}", telling.into_iter().map(cut).collect::<Vec<_>>().join(" | "))
}

/// What is added to a cause for the first line on stdout that is no message.
pub(crate) fn of_stdout(line: &str) -> String {
    format!(", first: \"{}\"", cut(line))
}

/// The lines that tell most: of npm the code and the reason; else the last line, where it says an error; else the last few.
fn telling(lines: &[String]) -> Vec<&str> {
    let said: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !is_idle(line)).collect();
    let Some(last) = said.last() else { return lines.last().map(|line| vec![line.as_str()]).unwrap_or_default() };
    if let Some(of_npm) = of_npm(&said) {
        return of_npm;
    }
    let lower = last.to_lowercase();
    match OF_ERRORS.iter().any(|word| lower.contains(word)) {
        true => vec![last],
        false => said[said.len().saturating_sub(LINES_MAX)..].to_vec(),
    }
}

/// Whether a line says nothing of why: a frame of a stack, which is indented, a bracket, or what is known to say nothing.
fn is_idle(line: &str) -> bool {
    line.starts_with(char::is_whitespace)
        || !line.contains(char::is_alphanumeric)
        || IDLE.iter().any(|idle| line.starts_with(idle))
}

fn of_npm<'a>(said: &[&'a str]) -> Option<Vec<&'a str>> {
    let rest = |line: &'a str| line.strip_prefix("npm error").or_else(|| line.strip_prefix("npm ERR!")).map(str::trim);
    said.last().and_then(|last| rest(last))?;
    let code = said.iter().rposition(|line| rest(line).is_some_and(|rest| rest.starts_with("code ")))?;
    let is_reason = |rest: &str| !OF_NPM.iter().any(|other| rest.starts_with(other));
    let reason = said[code + 1..].iter().find(|line| rest(line).is_some_and(is_reason));
    Some([&said[code]].into_iter().chain(reason).copied().collect())
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        of_stderr(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn of_a_package_that_is_missing_the_reason_is_told_and_not_where_a_log_is_kept() {
        let missing = "npm error code E404\n\
            npm error 404 Not Found - GET https://packages.example/no-such - Not found\n\
            npm error 404\n\
            npm error 404  'no-such@*' is not in this registry.\n\
            npm error 404 Note that you can also install from a\n\
            npm error 404 tarball, folder, http url, or git folder.\n\
            npm error A complete log of this run can be found in: /home/x/.npm/_logs/x.log";
        let expected = "; last lines on stderr: npm error code E404 | \
            npm error 404 Not Found - GET https://packages.example/no-such - Not found";
        assert_eq!(told(missing), expected);
        let offline = "npm ERR! code ENOTFOUND\nnpm ERR! syscall getaddrinfo\nnpm ERR! errno ENOTFOUND\n\
            npm ERR! network request to https://packages.example/x failed\nnpm ERR! A complete log of this run";
        assert!(
            told(offline).ends_with("code ENOTFOUND | npm ERR! network request to https://packages.example/x failed")
        );
    }

    #[test]
    fn the_line_of_an_error_is_told_without_its_stack_and_where_none_is_the_last_few_are() {
        let node =
            "file:///x.js:1\nthrow new Error(\"no key\")\n^\n\nError: no key\n    at x.js:1:7\n}\n\nNode.js v22.1.0";
        assert_eq!(told(node), "; last line on stderr: Error: no key");
        let python =
            "Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'x'";
        assert_eq!(told(python), "; last line on stderr: ModuleNotFoundError: No module named 'x'");
        assert_eq!(told("one\ntwo\nthree\nfour"), "; last lines on stderr: two | three | four");
        assert_eq!(told("no licence 7"), "; last line on stderr: no licence 7");
        assert_eq!((told("  at 1\n  at 2").as_str(), told("")), ("; last line on stderr:   at 2", String::new()));
        assert!(told(&"é".repeat(5000)).chars().count() < 400);
    }
}
