//! Source files as text: read, and with comments, strings and tests blanked out.

use std::path::{Path, PathBuf};

/// One file.
pub(crate) struct Source {
    /// Its path from the workspace's root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// Its text with comments and literals blanked; every line is where it was.
    pub(crate) code: String,
    /// The same with `mod tests` blanked too; nothing at all for a file of tests.
    pub(crate) product: String,
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the workspace").to_owned()
}

/// The source folders of the gateway's crates, in order.
pub(crate) fn crates() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("gateway")).expect("a folder can be listed");
    let names = entries.map(|entry| entry.expect("an entry can be read").file_name().to_string_lossy().into_owned());
    let inner = names.map(|name| format!("gateway/{name}/src"));
    let mut folders: Vec<String> =
        inner.chain(["gateway/src".to_owned()]).filter(|it| root().join(it).is_dir()).collect();
    folders.sort();
    folders
}

/// All Rust files of the gateway's crates.
pub(crate) fn product() -> Vec<Source> {
    crates().iter().flat_map(|folder| below(folder)).collect()
}

/// All Rust files below a folder, in order.
pub(crate) fn below(folder: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    walk(&root().join(folder), &mut paths);
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            walk(&path, paths);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            paths.push(path);
        }
    }
}

fn read(path: &Path) -> Source {
    let text = std::fs::read_to_string(path).expect("a source file can be read");
    let relative = path.strip_prefix(root()).expect("it is below the root").display().to_string();
    let code = blank(&text);
    let is_test = relative.split('/').any(|part| matches!(part, "tests" | "tests.rs") || part.ends_with("_tests.rs"));
    let product = if relative.starts_with("gateway") && is_test { String::new() } else { without_tests(&code) };
    Source { path: relative, text, code, product }
}

impl Source {
    /// The module that it is, from the crate's root; empty for the root itself.
    pub(crate) fn module(&self) -> Vec<String> {
        let inner = self.path.split_once("/src/").map_or(self.path.as_str(), |(_, rest)| rest);
        let mut parts: Vec<String> = inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if parts.last().is_some_and(|last| last == "mod") || matches!(inner, "lib.rs" | "main.rs") {
            parts.pop();
        }
        parts
    }
}

/// Blanks comments and literals, so that only code is left; lines stay where they are.
pub(crate) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        match end {
            Some(end) => {
                for byte in &mut out[at..end] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that begins here ends.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let joined = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if rest.starts_with(b"//") {
        return Some(at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(find(bytes, at + 2, b"*/"));
    }
    if rest.starts_with(b"\"") {
        return Some(quoted(bytes, at + 1, b'"'));
    }
    if !joined
        && (rest.starts_with(b"r\"")
            || rest.starts_with(b"r#")
            || rest.starts_with(b"br\"")
            || rest.starts_with(b"br#"))
    {
        let start = at + rest.iter().position(|byte| *byte == b'r').expect("just seen") + 1;
        let hashes = bytes[start..].iter().take_while(|byte| **byte == b'#').count();
        if bytes.get(start + hashes) == Some(&b'"') {
            let mut close = vec![b'"'];
            close.resize(hashes + 1, b'#');
            return Some(find(bytes, start + hashes + 1, &close));
        }
        return None;
    }
    if rest.starts_with(b"'") {
        // A lifetime has no second quote right behind its letter.
        let is_char = rest.get(1) == Some(&b'\\')
            || rest[1..].iter().take(6).skip(1).any(|byte| *byte == b'\'')
                && !(rest.get(1).is_some_and(u8::is_ascii_alphabetic) && rest.get(2) != Some(&b'\''));
        return is_char.then(|| quoted(bytes, at + 1, b'\''));
    }
    None
}

fn quoted(bytes: &[u8], mut at: usize, close: u8) -> usize {
    while at < bytes.len() && bytes[at] != close {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn find(bytes: &[u8], from: usize, close: &[u8]) -> usize {
    let found = bytes[from..].windows(close.len()).position(|window| window == close);
    found.map_or(bytes.len(), |found| from + found + close.len())
}

/// Blanks `mod tests { … }`.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = out.find("mod tests {") {
        let end = block_end(&out, start + "mod tests ".len());
        let blanked: String = out[start..end].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &blanked);
    }
    out
}

/// Where the block that opens at this brace ends.
pub(crate) fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, letter) in code[open..].char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at + 1;
        }
    }
    code.len()
}
