//! Installs the pinned packages, once per checkout, however many test binaries ask at the same time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::{Peers, required};

const NODE_MAJOR: u32 = 20;
const NODE_NEWER: u32 = 22;
const PYTHON_MINOR: u32 = 11;

/// Installs what is missing. The error is a sentence for a person.
pub(crate) fn install() -> Result<Peers, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let (node_dir, python_dir) = (root.join("node"), root.join("python"));
    check_node()?;
    check_python()?;
    run(Command::new("git").arg("--version"))?;
    packages(&node_dir)?;
    once(&python_dir, "requirements.txt", ".venv", install_python)?;
    Ok(Peers { node: PathBuf::from("node"), node_dir, python_bin: python_dir.join(".venv/bin"), python_dir })
}

/// Installs what a folder's lock file pins.
pub(crate) fn packages(dir: &Path) -> Result<(), String> {
    once(dir, "package-lock.json", "node_modules", |dir| {
        run(Command::new("npm").current_dir(dir).args(["ci", "--no-audit", "--no-fund", "--fetch-retries=2"])).map(drop)
    })
}

/// Builds the package in a folder, which has a lock file of its own, into its folder `built`.
pub(crate) fn rust_server(dir: &Path) -> Result<(), String> {
    if !required() {
        return Err("the server on the Rust SDK is built with TRUNKLINE_REQUIRE_PEERS=1 alone".to_owned());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--locked", "--quiet", "--target-dir", "built"];
    run(Command::new(cargo).current_dir(dir).args(build)).map(drop)
}

/// A node that programs run on for which the system's may be too old: that one, or one of npm's.
pub(crate) fn node_22() -> Result<PathBuf, String> {
    if node_major()? >= NODE_NEWER {
        return Ok(PathBuf::from("node"));
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("peers/node{NODE_NEWER}"));
    packages(&own)?;
    let named = |machine: &str| own.join(format!("node_modules/node-linux-{machine}/bin/node"));
    let found = [named("x64"), named("arm64")].into_iter().find(|node| node.exists());
    found.ok_or_else(|| format!("node {NODE_NEWER} or newer is needed, and there is none to install for this machine"))
}

/// Builds the Go program in a folder, whose modules its `go.sum` pins, into its folder `built`.
pub(crate) fn go_server(dir: &Path) -> Result<(), String> {
    run(Command::new("go").current_dir(dir).args(["build", "-mod=readonly", "-o", "built/server", "."])).map(drop)
}

/// Where a browser of the system is.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// A browser of the system, and its driver with what it needs.
pub(crate) fn browser() -> Result<(PathBuf, PathBuf), String> {
    let browser = BROWSERS.into_iter().map(PathBuf::from).find(|path| path.exists());
    let browser = browser.ok_or_else(|| "chromium is not installed".to_owned())?;
    check_node()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/page");
    packages(&folder)?;
    Ok((browser, folder))
}

/// The system's curl, where it speaks HTTP/2.
pub(crate) fn curl() -> Result<PathBuf, String> {
    match run(Command::new("curl").arg("--version"))?.contains(" HTTP2") {
        true => Ok(PathBuf::from("curl")),
        false => Err("curl was built without HTTP/2".to_owned()),
    }
}

fn install_python(dir: &Path) -> Result<(), String> {
    run(Command::new("python3").current_dir(dir).args(["-m", "venv", "--clear", ".venv"]))?;
    run(Command::new(dir.join(".venv/bin/python")).current_dir(dir).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--only-binary=:all:",
        "--requirement=requirements.txt",
    ]))
    .map(drop)
}

/// Calls `install` unless `folder` already holds what `pins` asks for. Other processes wait meanwhile.
fn once(dir: &Path, pins: &str, folder: &str, install: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let failed = |what: &str, error: std::io::Error| format!("{what} {}: {error}", dir.display());
    let pins = dir.join(pins);
    let file = File::open(&pins).map_err(|error| failed("cannot open the pins in", error))?;
    file.lock().map_err(|error| failed("cannot lock the pins in", error))?;
    // The path is part of the stamp: a virtual environment does not survive being moved.
    let wanted = format!(
        "{}\n{}",
        dir.display(),
        fs::read_to_string(&pins).map_err(|error| failed("cannot read the pins in", error))?
    );
    let stamp = dir.join(folder).join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install(dir)?;
    fs::write(&stamp, wanted).map_err(|error| failed("cannot write the stamp in", error))
}

/// The major version of the node that is found on the path.
fn node_major() -> Result<u32, String> {
    let version = run(Command::new("node").arg("--version"))?;
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.ok_or_else(|| format!("node says that its version is {version}"))
}

fn check_node() -> Result<(), String> {
    match node_major()? {
        major if major >= NODE_MAJOR => Ok(()),
        major => Err(format!("node {NODE_MAJOR} or newer is needed, found {major}")),
    }
}

fn check_python() -> Result<(), String> {
    let version = run(Command::new("python3").args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]))?;
    let minor = version.strip_prefix("3.").and_then(|minor| minor.parse::<u32>().ok());
    match minor {
        Some(minor) if PYTHON_MINOR <= minor => Ok(()),
        _ => Err(format!("python 3.{PYTHON_MINOR} or newer is needed, found {version}")),
    }
}

/// Runs a program to its end: its output, or a sentence that names it and quotes the end of its complaints.
fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = complaints.lines().collect();
    let end = lines[lines.len().saturating_sub(15)..].join("\n  ");
    let what: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    Err(format!("`{program} {}` ended with {}\n  {end}", what.join(" "), output.status))
}
