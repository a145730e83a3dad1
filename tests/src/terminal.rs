//! Terminals: commands of a gateway that run on one, what stands there, and what is typed.

use std::ffi::OsStr;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::gateway::Gateway;
use crate::within::within;

/// A command on a terminal of its own, which `script` makes, with words before it, such as what sets a variable; `redirect` is a shell's word
/// behind it.
///
/// # Panics
/// When there is no `script`.
pub fn on_terminal_after(
    gateway: &Gateway,
    before: &[&str],
    arguments: &[&str],
    columns: usize,
    redirect: &str,
) -> Child {
    let plain = gateway.command(arguments);
    let plain = plain.as_std();
    let quoted = |text: &OsStr| format!("'{}'", text.to_string_lossy().replace('\'', "'\\''"));
    let before = before.iter().map(OsStr::new);
    let line: Vec<String> = before.chain([plain.get_program()]).chain(plain.get_args()).map(quoted).collect();
    let line = format!(
        "stty cols {columns} rows 30; before=$(stty -g); {} {redirect}; code=$?; [ \"$before\" = \"$(stty -g)\" ] && echo; echo ended $code as before",
        line.join(" ")
    );
    // Who runs the tests in the background may have Ctrl-C ignored, which every program inherits; a terminal's programs have not.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,QUIT", "script", "-qefc", &line, "/dev/null"]);
    command
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().expect("`script` of util-linux is there")
}

/// Reads what is on the terminal until this stands there.
///
/// # Panics
/// When it does not.
pub async fn sees(child: &mut Child, seen: &mut String, text: &str) {
    let stdout = child.stdout.as_mut().expect("it is piped");
    let mut bytes = [0; 4096];
    while !seen.contains(text) {
        let count = within(&format!("the terminal shows {text}; so far: {seen}"), stdout.read(&mut bytes))
            .await
            .expect("it can be read");
        assert!(count > 0, "it ended without {text}: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}

/// Reads what is on the terminal until nothing runs there any more: Ctrl-C ends the shell, too.
///
/// # Panics
/// When that goes on.
pub async fn ends(child: &mut Child, seen: &mut String) {
    let mut rest = Vec::new();
    let stdout = child.stdout.as_mut().expect("it is piped");
    within("the terminal ends", stdout.read_to_end(&mut rest)).await.expect("it can be read");
    seen.push_str(&String::from_utf8_lossy(&rest));
}

/// Types this.
///
/// # Panics
/// When nobody reads it.
pub async fn types(child: &mut Child, text: &str) {
    child.stdin.as_mut().expect("it is piped").write_all(text.as_bytes()).await.expect("it is there");
}
