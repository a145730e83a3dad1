//! The browser of the person at this machine.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What a file begins with that leads the browser on.
const BEGINS: &str = "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=";

/// Whether there is a screen for one.
pub(crate) fn is_there() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Has the browser open a URL that is worth something for so many seconds. It is given a file: other users see what a program is
/// started with, and may not see the URL. The file stands in the home folder and is not hidden: a browser of a snap reads nothing else.
pub(crate) fn opens(file: &str, url: &str, seconds: u64) -> io::Result<()> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or_else(|| io::Error::other("HOME is not set"))?;
    let file = written(Path::new(&home), file, url)?;
    let opened = aside(Command::new("xdg-open").arg(&file));
    if opened.is_err() {
        fs::remove_file(&file)?;
    }
    opened?;
    removed_after(&file, seconds)?;
    Ok(())
}

/// Starts a program that outlives this one and its terminal's Ctrl-C.
fn aside(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()
}

/// Has a file removed once its link is worth nothing.
fn removed_after(file: &Path, seconds: u64) -> io::Result<Child> {
    aside(Command::new("sh").args(["-c", "sleep \"$1\"; rm -f -- \"$2\"", "sh"]).arg(seconds.to_string()).arg(file))
}

/// A file of this user alone that leads to the link. The next one takes its place.
fn written(folder: &Path, name: &str, url: &str) -> io::Result<PathBuf> {
    let file = folder.join(name);
    match fs::read(&file) {
        Ok(before) if before.starts_with(BEGINS.as_bytes()) => fs::remove_file(&file)?,
        Ok(_) => return Err(io::Error::other(format!("{} is there and is none of ours", file.display()))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    // In a URL these stand coded, and in HTML they would mean something else.
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'<>`\\".contains(&byte));
    if !is_http || !is_plain {
        return Err(io::Error::other("the link is no URL for a browser"));
    }
    let page = format!("{BEGINS}{}\">\n", url.replace('&', "&amp;"));
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?.write_all(page.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const FILE: &str = "trunkline-ui-link.html";

    #[test]
    fn the_link_stands_in_a_file_of_its_user_alone() {
        let folder = std::env::temp_dir().join(format!("trunkline-ui-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let url = "http://127.0.0.1:9808/ui?a=%2F&b=c+~#enter=a-B_9";
        for _ in 0..2 {
            let file = written(&folder, FILE, url).unwrap();
            assert!(fs::read_to_string(&file).unwrap().contains(&url.replace('&', "&amp;")));
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let file = folder.join(FILE);
        assert!(!FILE.starts_with('.') && removed_after(&file, 0).unwrap().wait().unwrap().success() && !file.exists());
        assert!(written(&folder, FILE, "http://x/\"><script>").is_err());
        fs::write(&file, "a page of the user's").unwrap();
        assert!(written(&folder, FILE, url).unwrap_err().to_string().contains("none of ours"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "a page of the user's");
        fs::remove_dir_all(&folder).unwrap();
    }
}
