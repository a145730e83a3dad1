//! The Rust files of a commit, read by git.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The working tree in place of a commit.
pub const WORKING_TREE: &str = ".";

/// The Rust files of a commit, or of the working tree for `.`, by path.
///
/// # Errors
/// When git fails, or a file is not UTF-8.
pub fn rust_files(repository: &Path, commit: &str) -> Result<BTreeMap<String, String>> {
    if commit == WORKING_TREE {
        let listed = git(repository, &["ls-files", "-co", "--exclude-standard", "--", "*.rs"], "")?;
        let names = String::from_utf8(listed)?;
        let present = names.lines().filter(|name| repository.join(name).is_file());
        return present.map(|name| Ok((name.to_owned(), std::fs::read_to_string(repository.join(name))?))).collect();
    }
    let listed = String::from_utf8(git(repository, &["ls-tree", "-r", "--full-tree", commit], "")?)?;
    // MODE blob HASH\tPATH
    let entries = listed.lines().filter_map(|line| line.split_once('\t')).filter(|(_, path)| path.ends_with(".rs"));
    let entries: Vec<(&str, &str)> = entries.filter_map(|(head, path)| Some((head.split(' ').nth(2)?, path))).collect();
    let hashes: String = entries.iter().map(|(hash, _)| format!("{hash}\n")).collect();
    let contents = git(repository, &["cat-file", "--batch"], &hashes)?;
    let mut rest = &contents[..];
    let mut files = BTreeMap::new();
    for (_, path) in entries {
        // HASH blob SIZE\nCONTENTS\n
        let end = rest.iter().position(|byte| *byte == b'\n').context("git cat-file: no header")?;
        let head = std::str::from_utf8(&rest[..end])?;
        let size: usize = head.rsplit(' ').next().unwrap_or_default().parse().with_context(|| head.to_owned())?;
        let text = std::str::from_utf8(&rest[end + 1..end + 1 + size]).with_context(|| path.to_owned())?;
        files.insert(path.to_owned(), text.to_owned());
        rest = &rest[end + 2 + size..];
    }
    Ok(files)
}

/// The files that git takes for moved, old path to new path.
///
/// # Errors
/// When git fails.
pub fn moves(repository: &Path, old: &str, new: &str) -> Result<BTreeMap<String, String>> {
    let mut args = vec!["diff", "--name-status", "-M30%", "-l0", "--diff-filter=R", old];
    args.extend((new != WORKING_TREE).then_some(new));
    let listed = String::from_utf8(git(repository, &args, "")?)?;
    let pair = |line: &str| {
        let mut parts = line.split('\t').skip(1).map(str::to_owned);
        Some((parts.next()?, parts.next()?))
    };
    Ok(listed.lines().filter_map(pair).filter(|(_, new)| new.ends_with(".rs")).collect())
}

fn git(repository: &Path, args: &[&str], input: &str) -> Result<Vec<u8>> {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).arg("-c").arg("core.quotePath=false").args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("git does not start")?;
    let mut stdin = child.stdin.take().context("a pipe was asked for")?;
    let input = input.to_owned();
    // git answers while it reads: one thread alone would wait for ever.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("writing does not panic")?;
    if !output.status.success() {
        bail!("git {} failed", args.join(" "));
    }
    Ok(output.stdout)
}
