//! A token from a command: what it writes to its stdout, alone or in JSON. Nothing of it is left behind.

use super::token::Issued;
use super::{stderr, times};
use crate::config::TokenCommand;
use crate::health::{Cause, CauseCode};
use crate::process::spawner::{Start, spawner};
use crate::process::{ChildLimits, Mark, program, sweep};
use crate::secrets::private;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Map, Value};
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::time::timeout;

/// The most bytes that are read of its stdout, and of its stderr.
const STDOUT_MAX: u64 = 64 * 1024;
const STDERR_MAX: u64 = 4 * 1024;
/// How long what it started may hold its pipes open after its own end.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// What a token is called in JSON.
const TOKEN: [&str; 3] = ["access_token", "accessToken", "token"];

/// Runs the command, in a process group of its own, until `ending` resolves.
pub(super) async fn run(from: &TokenCommand, ending: impl Future<Output = ()>) -> Result<Issued, Cause> {
    let TokenCommand { command, args, env, timeout: limit } = from;
    let mark = Mark::new();
    let start = Start { command, args, env, cwd: None, mark: &mark, limits: ChildLimits::default() };
    let started = private::off_the_workers(|| match program::refusal(command, env, None) {
        Some(error) => Err(error),
        None => spawner().start(&start),
    });
    let mut child = started.map_err(|error| unstarted(command, &error))?;
    drop(child.stdin.take());
    let pid = child.id();
    let outcome = tokio::select! {
        outcome = timeout(*limit, output(&mut child)) => outcome.unwrap_or_else(|_| {
            let said = format!("the command of `auth` took more than {} s (`timeout`)", limit.as_secs_f32());
            Err(Cause::new(CauseCode::TokenUnavailable, said))
        }),
        () = ending => Err(Cause::new(CauseCode::Stopping, "upstream stopping")),
    };
    end(child, pid, &mark).await;
    outcome.and_then(|(status, stdout, stderr)| read(status, &stdout, &stderr))
}

/// What it writes until it ends, or writes too much.
async fn output(child: &mut Child) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), Cause> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let status = {
        let said = async {
            first_bytes(err, STDERR_MAX, &mut stderr).await;
            Ok::<_, Cause>(())
        };
        let mut reading = std::pin::pin!(async { tokio::try_join!(given(out, &mut stdout), said) });
        tokio::select! {
            status = child.wait() => match timeout(LAST_WORDS, &mut reading).await {
                Ok(Err(much)) => return Err(much),
                _ => status,
            },
            read = &mut reading => {
                read?;
                child.wait().await
            }
        }
    };
    let unknown = |error: std::io::Error| {
        Cause::new(CauseCode::TokenUnavailable, format!("how the command of `auth` ended is not known: {error}"))
    };
    Ok((status.map_err(unknown)?, stdout, stderr))
}

/// What it gives out; a failure as soon as that is too much.
async fn given(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), Cause> {
    let Some(pipe) = pipe else { return Ok(()) };
    let _until_it_ends = pipe.take(STDOUT_MAX + 1).read_to_end(into).await;
    match into.len() as u64 > STDOUT_MAX {
        true => {
            let said = format!("the command of `auth` writes more than {} KiB to its stdout", STDOUT_MAX / 1024);
            Err(Cause::new(CauseCode::TokenUnavailable, said))
        }
        false => Ok(()),
    }
}

/// Keeps the first bytes of a pipe, and takes the rest so that nobody waits for it to be read.
async fn first_bytes(pipe: Option<impl AsyncRead + Unpin>, most: u64, into: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let _until_it_ends = (&mut pipe).take(most + 1).read_to_end(into).await;
    let _rest = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
}

/// Ends it and all that it started.
async fn end(mut child: Child, pid: Option<u32>, mark: &Mark) {
    let Some(pid) = pid else { return };
    if let Some(group) = Pid::from_raw(pid.cast_signed()) {
        // The group may be gone already, which is what is wanted.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _status = child.wait().await;
    spawner().ended(pid);
    let left = sweep::end_marked(mark.text()).await;
    spawner().swept(pid);
    if !left.is_empty() {
        tracing::error!(pids = ?left, "cannot end processes that the command of `auth` has started");
    }
}

fn unstarted(command: &str, error: &std::io::Error) -> Cause {
    let (code, said) = match error.kind() {
        std::io::ErrorKind::NotFound => (CauseCode::CommandNotFound, "not found".to_owned()),
        std::io::ErrorKind::PermissionDenied => (CauseCode::CommandNotExecutable, "not executable".to_owned()),
        _ => (CauseCode::SpawnFailed(error.raw_os_error()), format!("not started: {error}")),
    };
    let named = format!(" (`{}`)", program::named(command));
    let cause = Cause::new(CauseCode::TokenUnavailable, "the command of `auth`").foreign(&named);
    cause.own(&format!(" is {said}")).then(&Cause::new(code, "")).advise("check `command` under `auth`, and its `PATH`")
}

/// The token in what it wrote.
fn read(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Result<Issued, Cause> {
    let issued = token(stdout);
    if !status.success() {
        let token = issued.as_ref().ok().map(|issued| &*issued.token);
        let said = stderr::shown(stderr, token.filter(|token| !token.contains(char::is_whitespace)));
        let words = if said.is_empty() { String::new() } else { format!(": {said}") };
        let cause = Cause::new(CauseCode::TokenUnavailable, format!("the command of `auth` failed ({status})"));
        return Err(cause.foreign(&words).advise("run it by hand as the user of the gateway"));
    }
    issued
}

/// The token in what it wrote to its stdout.
fn token(stdout: &[u8]) -> Result<Issued, Cause> {
    let odd = |said: &str| {
        let advice = "it writes the token alone, or JSON such as {\"token\": \"…\", \"expires_in\": 3600}";
        Err(Cause::new(CauseCode::TokenUnavailable, format!("the command of `auth` writes {said}")).advise(advice))
    };
    let Ok(text) = std::str::from_utf8(stdout) else { return odd("what is no text") };
    match text.trim() {
        "" => odd("nothing to its stdout"),
        text if text.starts_with('{') => match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(members) => match TOKEN.iter().find_map(|name| members.get(*name)?.as_str()) {
                Some(token) => times::lasts(&members)
                    .map(|lasts| Issued { token: token.to_owned(), lasts })
                    .or_else(|why| odd(&why)),
                None => odd("JSON without a token"),
            },
            Err(_) => odd("what is not valid JSON"),
        },
        text => Ok(Issued { token: text.to_owned(), lasts: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::future::pending;
    use tokio_util::sync::CancellationToken;

    fn script(text: &str, limit: Duration) -> TokenCommand {
        TokenCommand {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), text.to_owned()],
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            timeout: limit,
        }
    }

    async fn said(text: &str) -> Result<(String, Option<u64>), String> {
        let issued = run(&script(text, Duration::from_secs(60)), pending()).await;
        issued
            .map(|issued| (issued.token, issued.lasts.map(|lasts| lasts.as_secs())))
            .map_err(|why| why.full().into_owned())
    }

    #[tokio::test]
    async fn a_token_is_read_alone_and_from_json_with_its_end() {
        assert_eq!(said("echo ' one '").await, Ok(("one".to_owned(), None)));
        assert_eq!(said(r#"echo '{"token": "two", "expires_in": 7}'"#).await, Ok(("two".to_owned(), Some(7))));
        assert_eq!(said(r#"echo '{"accessToken":"three","expiresIn":"8"}'"#).await, Ok(("three".to_owned(), Some(8))));
        let at = r#"echo "{\"access_token\":\"four\",\"expires_on\":$(($(date +%s) + 100))}""#;
        let (token, lasts) = said(at).await.unwrap();
        assert!(token == "four" && (90..=100).contains(&lasts.unwrap()), "{lasts:?}");
    }

    #[tokio::test]
    async fn a_command_that_gives_no_token_is_said_with_what_to_do() {
        for (text, words) in [
            ("true", "writes nothing to its stdout; it writes the token alone"),
            (r#"echo '{"a":1}'"#, "writes JSON without a token"),
            ("echo '{'", "writes what is not valid JSON"),
            (r"printf '\377'", "writes what is no text"),
            ("echo go away >&2; exit 3", "failed (exit status: 3): go away; run it by hand as the user of the gateway"),
            ("yes | head -c 70000", "writes more than 64 KiB"),
            // It is not waited for.
            ("exec yes", "writes more than 64 KiB"),
            ("yes | head -c 70000; exit 1", "writes more than 64 KiB"),
            (r#"echo '{"token":"canary","expires_at":1}'"#, "writes a token that has ended: its `expires_at` was"),
            (r#"echo '{"token":"canary","expires_in":-1}'"#, "a token that has ended: its `expires_in` is negative"),
            ("set -x; TOKEN=canary; echo given-canary; exit 1", "failed (exit status: 1): + TOKEN=[secret]"),
        ] {
            let why = said(text).await.unwrap_err();
            assert!(why.contains(words) && !why.contains("canary"), "{text}: {why}");
        }
        let gone = TokenCommand { command: "/no/such/canary".to_owned(), ..script("", Duration::MAX) };
        let why = run(&gone, pending()).await.unwrap_err();
        assert_eq!(
            why.full(),
            "the command of `auth` (`/no/such/canary`) is not found; check `command` under `auth`, and its `PATH`"
        );
        assert_eq!(why.codes(), [CauseCode::TokenUnavailable, CauseCode::CommandNotFound]);
    }

    /// A process that is there, or was not reaped.
    fn is_there(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    #[tokio::test]
    async fn nothing_of_a_command_is_left_behind_whether_it_ends_hangs_or_is_ended_with_its_level() {
        let scratch = Scratch::new();
        let file = scratch.0.join("pid");
        let left = || std::fs::read_to_string(&file).unwrap();
        let pids = file.display();
        let begun = tokio::time::Instant::now();
        // One that leaves a process behind which holds its stdout, in a session of its own.
        let leaves = format!("setsid sleep 600 & echo $! > {pids}; echo token");
        assert_eq!(said(&leaves).await, Ok(("token".to_owned(), None)));
        assert!(!is_there(&left()));
        let hangs = format!("echo $$ > {pids}; trap '' TERM; sleep 600; sleep 600");
        let why = run(&script(&hangs, Duration::from_millis(300)), pending()).await.unwrap_err();
        assert_eq!(why.full(), "the command of `auth` took more than 0.3 s (`timeout`)");
        assert!(!is_there(&left()));
        std::fs::remove_file(&file).unwrap();
        let level = CancellationToken::new();
        let command = script(&hangs, Duration::from_secs(500));
        let (run, ()) = tokio::join!(run(&command, level.cancelled()), async {
            while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
                tokio::task::yield_now().await;
            }
            level.cancel();
        });
        assert_eq!(run.unwrap_err().code(), CauseCode::Stopping);
        assert!(!is_there(&left()) && begun.elapsed() < Duration::from_secs(100));
    }
}
