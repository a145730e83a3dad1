//! What a terminal is told beside text: colours that dark and light ones show, and nothing where a person or the terminal wants none.

use super::*;

/// The codes of colours and weights in what a terminal was told.
fn codes(seen: &str) -> Vec<String> {
    let parts = seen.split("\u{1b}[").skip(1);
    let of = |part: &str| {
        let end = part.find(|char: char| char.is_ascii_alphabetic())?;
        part[end..].starts_with('m').then(|| part[..end].to_owned())
    };
    let mut codes: Vec<_> =
        parts.filter_map(of).flat_map(|codes| codes.split(';').map(str::to_owned).collect::<Vec<_>>()).collect();
    codes.sort();
    codes.dedup();
    codes
}

/// A gateway with an upstream that is well, one that fails, one that has failed for good, one that rests and one that never answers.
async fn states() -> (Upstream, Gateway) {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let shell = |text: &str| Program { path: "/bin/sh".into(), args: vec!["-c".into(), text.into()], env: Vec::new() };
    let missing = Program { path: "/nonexistent/npxx".into(), args: Vec::new(), env: Vec::new() };
    let config = Config::new()
        .upstream(&up)
        .program("crash", &shell("exit 1"), "restart = { backoff_min = \"10m\", backoff_max = \"10m\" }")
        .program("missing", &missing, "")
        .program("rests", &shell("exit 0"), "start = \"manual\"")
        .program("silent", &shell("sleep 600"), "startup_timeout = \"10m\"");
    let gateway = Gateway::serve(&config).await;
    gateway
        .look_until("/readyz?verbose", "all are what they are", |page| {
            ["  ready  ", "backing_off", "failed", "stopped", "starting"].iter().all(|state| page.contains(state))
        })
        .await;
    (up, gateway)
}

/// What a command shows on a terminal of this environment.
async fn shown(gateway: &Gateway, arguments: &[&str], environment: &[&str]) -> String {
    let set: Vec<&str> = std::iter::once("env").chain(environment.iter().copied()).collect();
    let (mut child, mut seen) = (on_terminal_after(gateway, &set, arguments, 100, ""), String::new());
    sees(&mut child, &mut seen, "ended ").await;
    seen
}

#[tokio::test]
async fn colours_are_those_that_dark_and_light_terminals_show() {
    let (_up, gateway) = states().await;
    // Bold, red and green, and the way back. White, black, yellow and the bright ones are lost on some background.
    let (mut child, mut seen) = (on_terminal(&gateway, &["top"]), String::new());
    sees(&mut child, &mut seen, "NAME").await;
    sees(&mut child, &mut seen, "\u{1b}[J").await;
    types(&mut child, "q").await;
    sees(&mut child, &mut seen, "as before").await;
    for seen in [seen, shown(&gateway, &["ls"], &[]).await] {
        assert_eq!(codes(&seen), ["0", "1", "31", "32"], "{seen:?}");
        for coloured in ["\u{1b}[32mready", "\u{1b}[1;31mbacking_off", "\u{1b}[1;31mfailed", "\u{1b}[1mstarting"] {
            assert!(seen.contains(coloured), "{coloured:?}: {seen:?}");
        }
    }
    for arguments in [&["status", "crash"][..], &["doctor"], &["calls"], &["logs"]] {
        let seen = shown(&gateway, arguments, &[]).await;
        let unlike = codes(&seen).into_iter().find(|code| !["0", "1", "31", "32"].contains(&code.as_str()));
        assert_eq!(unlike, None, "{arguments:?}: {seen:?}");
    }
}

#[tokio::test]
async fn serve_shows_the_state_of_each_upstream_in_its_colour_and_the_words_of_others_in_none() {
    let home = Scratch::new();
    let ports = "[server]\nlisten = '127.0.0.1:0'\n[admin]\nlisten = '127.0.0.1:0'\n";
    let crash =
        "[upstreams.crash]\ncommand = 'sh'\nargs = ['-c', \"printf 'it is failed \\\\033[31mred\\\\n' >&2; exit 1\"]\n";
    let missing = "[upstreams.missing]\ncommand = '/nonexistent/npxx'\n";
    let _file = home.file("trunkline.toml", &format!("{ports}{crash}{missing}"));
    for (environment, is_coloured) in [("NO_COLOR=", true), ("NO_COLOR=1", false)] {
        let (mut child, mut seen) = (serve_at(&home, environment, 200), String::new());
        sees(&mut child, &mut seen, "it is failed \\u{1b}[31mred").await;
        sees(&mut child, &mut seen, "does not exist").await;
        sees(&mut child, &mut seen, "backing_off").await;
        types(&mut child, "\u{3}").await;
        for state in ["\u{1b}[1;31mbacking_off\u{1b}[0m", "\u{1b}[1;31mfailed\u{1b}[0m"] {
            assert_eq!(seen.contains(state), is_coloured, "{environment} {state:?}: {seen:?}");
        }
        assert_eq!(seen.contains('\u{1b}'), is_coloured, "{environment}: {seen:?}");
    }
}

#[tokio::test]
async fn no_colour_is_used_where_a_person_or_the_terminal_wants_none() {
    let (_up, gateway) = states().await;
    for environment in ["NO_COLOR=1", "CLICOLOR=0", "TERM=dumb"] {
        let seen = shown(&gateway, &["ls"], &[environment]).await;
        assert!(!seen.contains('\u{1b}') && seen.contains("backing_off"), "{environment}: {seen:?}");
    }
    for environment in ["NO_COLOR=", "CLICOLOR=1"] {
        let seen = shown(&gateway, &["ls"], &[environment]).await;
        assert!(seen.contains("\u{1b}[32mready"), "{environment}: {seen:?}");
    }
    let (mut child, mut seen) = (on_terminal_after(&gateway, &["env", "NO_COLOR=1"], &["top"], 100, ""), String::new());
    sees(&mut child, &mut seen, "NAME").await;
    sees(&mut child, &mut seen, "\u{1b}[J").await;
    types(&mut child, "q").await;
    sees(&mut child, &mut seen, "as before").await;
    assert_eq!(codes(&seen), [""; 0], "{seen:?}");
}

#[tokio::test]
async fn a_terminal_that_obeys_nothing_is_told_nothing_but_text() {
    let (_up, gateway) = states().await;
    let seen = shown(&gateway, &["top"], &["TERM=dumb"]).await;
    assert!(seen.contains("1 of 5 servers ready") && seen.contains("ended 0"), "it is printed once: {seen:?}");
    assert!(!seen.contains('\u{1b}'), "{seen:?}");
    assert!(seen.lines().take(8).all(|line| line.trim_end().chars().count() <= 100), "it is cut to the width: {seen}");
    let seen = shown(&gateway, &["call", "up__progress", "steps=2"], &["TERM=dumb"]).await;
    assert!(seen.contains("step 2") && !seen.contains('\u{1b}'), "progress is lines of its own: {seen:?}");
}

#[tokio::test]
async fn where_there_is_nothing_to_print_that_is_said() {
    let (_up, gateway) = stage().await;
    let said = async |arguments: &[&str]| {
        let Output { status, stdout, stderr } =
            within("it ends", gateway.command(arguments).output()).await.expect("it runs");
        assert!(status.success() && stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&stdout));
        String::from_utf8_lossy(&stderr).into_owned()
    };
    assert_eq!(said(&["calls"]).await, "no calls yet\n");
    assert_eq!(said(&["logs"]).await, "no lines on stderr yet\n");
    assert_eq!(said(&["logs", "up"]).await, "no lines on stderr yet\n");
    assert_eq!([said(&["calls", "--json"]).await, said(&["logs", "--json"]).await], ["", ""]);
    for (command, what) in [("calls", "no calls yet"), ("logs", "no lines on stderr yet")] {
        let (mut child, mut seen) = (on_terminal(&gateway, &[command, "-f"]), String::new());
        sees(&mut child, &mut seen, &format!("{what}; waiting for the first (Ctrl-C ends)")).await;
        types(&mut child, "\u{3}").await;
        let _status = within("it ends", child.wait()).await.expect("it runs");
        assert_eq!(seen.matches(what).count(), 1, "{seen:?}");
    }
}
