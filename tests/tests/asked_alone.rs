//! What `tools` and `call` wait for where no gateway runs and they start the servers themselves.

use std::process::Output;
use std::time::Duration;

use trunkline_tests::scratch::Scratch;
use trunkline_tests::shell;
use trunkline_tests::within::within_limit;

use crate::laptop::{entry, in_home, text};

/// Long before anybody gives up who waits for the one that hangs.
const SOON: Duration = Duration::from_secs(60);
const HANGS: &str = "[upstreams.slow]\ncommand = '/bin/sleep'\nargs = ['600']\nstartup_timeout = '10m'\n";
const CRASHES: &str = "[upstreams.crashy]\ncommand = '/bin/sh'\nargs = ['-c', 'echo a word is missing >&2; exit 1']\n";
const OFF: &str = "[upstreams.off]\ncommand = 'sh'\nenabled = false\n";

async fn run(home: &Scratch, args: &[&str]) -> Output {
    within_limit(SOON, "the command ends", in_home(home, args).output()).await.expect("it runs")
}

/// A server that is well, among those that are not; lists wait so long.
fn among_the_sick(home: &Scratch, wait: &str, naming: &str) {
    let well = entry("ok", &shell::upstream(&[("echo", "said hello")]));
    let catalog = format!("[catalog]\ncache = false\nfirst_list_wait = '{wait}'\n");
    let _file = home.file("trunkline.toml", &format!("{catalog}{naming}{HANGS}{CRASHES}{OFF}{well}"));
}

#[tokio::test]
async fn the_owner_of_what_is_asked_for_is_waited_for_and_no_other() {
    let home = Scratch::new();
    among_the_sick(&home, "1h", "");
    for (args, code, what) in [
        (&["tools", "ok"][..], 0, "ok__echo\n1 tool\n"),
        (&["prompts", "ok"], 0, "no prompts\n"),
        (&["call", "ok__echo", "text=1"], 0, "hello\n"),
        (&["call", "ok__ehco"], 1, "did you mean `ok__echo`?"),
        (&["call", "crashy__x"], 1, "error: `tools/call` of `crashy__x` was not sent: upstream `crashy`"),
        (&["call", "off__x"], 1, "error: `off` is disabled in the configuration: set `enabled = true`"),
    ] {
        let Output { status, stdout, stderr } = run(&home, args).await;
        let (said, beside) = (text(&stdout), text(&stderr));
        let is_said = if code == 0 { said == what } else { beside.contains(what) };
        assert!(status.code() == Some(code) && is_said, "{args:?}: {status}: {said}{beside}");
        assert!(!beside.contains("waiting for `slow`"), "{args:?}: {beside}");
    }
    // Where nothing tells the owner, the tool is called once it is listed.
    among_the_sick(&home, "1h", "[naming]\nstrategy = 'prefix_on_conflict'\n");
    let called = run(&home, &["call", "echo"]).await;
    assert_eq!((called.status.code(), &*text(&called.stdout)), (Some(0), "hello\n"), "{}", text(&called.stderr));
}

#[tokio::test]
async fn the_list_of_one_that_is_not_there_has_nothing_of_those_with_its_name_in_theirs() {
    let home = Scratch::new();
    let well = entry("not-crashy", &shell::upstream(&[("crashy", "said hello")]));
    let kept = "[upstreams.kept]\ncommand = 'sh'\nenabled = false\n";
    let other = entry("unkept", &shell::upstream(&[("echo", "said hello")]));
    let _file = home.file("trunkline.toml", &format!("[catalog]\ncache = false\n{CRASHES}{kept}{well}{other}"));
    for (name, code, listed, why) in [
        ("crashy", 1, "", "no tools: upstream `crashy`"),
        ("kept", 1, "", "`kept` is disabled in the configuration"),
        ("not-crashy", 0, "not-crashy__crashy\n1 tool\n", ""),
        ("crash", 0, "not-crashy__crashy\n1 tool\n", ""),
    ] {
        let Output { status, stdout, stderr } = run(&home, &["tools", name]).await;
        let said = text(&stderr);
        assert_eq!((status.code(), &*text(&stdout)), (Some(code), listed), "{name}: {said}");
        assert!(said.contains(why), "{name}: {said}");
    }
}

#[tokio::test]
async fn numbers_reach_the_tool_as_they_were_typed() {
    let home = Scratch::new();
    let program = shell::upstream(&[("given", "printf '%s\\n' \"$line\" >&2; said ok")]);
    let _file = home.file("trunkline.toml", &entry("sh", &program));
    let big = "123456789012345678901234567890";
    let object = format!("{{\"n\": {big},\n\"x\": 1.10}}");
    for arguments in [&[&*format!("n={big}"), "x=1.10"][..], &[&*object]] {
        let args: Vec<&str> =
            ["call", "sh__given", "--log-level", "info"].into_iter().chain(arguments.iter().copied()).collect();
        let said = run(&home, &args).await;
        let line = text(&said.stderr);
        assert!(said.status.success() && line.contains(big) && line.contains("1.10"), "{arguments:?}: {line}");
    }
    let twice = run(&home, &["call", "sh__given", "{\"a\": 1, \"a\": 2}"]).await;
    assert_eq!((twice.status.code(), &*text(&twice.stderr)), (Some(1), "error: `a` is given twice\n"));
}

#[tokio::test]
async fn the_list_of_one_that_crashes_ends_at_once_with_its_cause_whatever_it_does_just_then() {
    let home = Scratch::new();
    among_the_sick(&home, "1h", "");
    for _ in 0..5 {
        let Output { status, stdout, stderr } = run(&home, &["tools", "crashy"]).await;
        let said = text(&stderr);
        let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert_eq!((status.code(), &*text(&stdout)), (Some(1), ""), "{said}");
        assert!(error.contains("no tools: upstream `crashy` is ") && error.contains("a word is missing"), "{said}");
    }
}

#[tokio::test]
async fn what_is_waited_for_is_said_and_a_start_that_takes_too_long_ends_the_wait() {
    let home = Scratch::new();
    let hangs = HANGS.replace("10m", "5s");
    let _file = home.file("trunkline.toml", &format!("{hangs}restart = {{ stop_timeout = '100ms' }}\n"));
    let Output { status, stderr, .. } = run(&home, &["tools", "slow"]).await;
    let said = text(&stderr);
    assert_eq!(status.code(), Some(1), "{said}");
    for what in [
        "waiting for `slow`: still starting\n",
        "waiting for `slow`: no answer yet",
        "error: no tools: upstream `slow` is ",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    assert!(said.lines().last().is_some_and(|line| line.contains("(`startup_timeout`)")), "{said}");
    let waits: Vec<&str> = said.lines().filter(|line| line.starts_with("waiting for ")).collect();
    let each: std::collections::HashSet<&str> = waits.iter().copied().collect();
    assert_eq!(each.len(), waits.len(), "the same is said once: {said}");
}

#[tokio::test]
async fn a_list_of_all_waits_as_a_first_list_does_and_names_those_that_are_missing() {
    let home = Scratch::new();
    among_the_sick(&home, "5s", "");
    let Output { status, stdout, stderr } = run(&home, &["tools"]).await;
    let said = text(&stderr);
    assert_eq!((status.code(), &*text(&stdout)), (Some(0), "ok__echo\n1 tool\n"), "{said}");
    let line = |name: &str| said.lines().find(|line| line.starts_with(&format!("not listed: upstream `{name}` is ")));
    let (slow, crashy) = (line("slow").unwrap_or_default(), line("crashy").unwrap_or_default());
    assert!(slow.contains("still starting") && slow.ends_with("; `trunkline tools slow` waits for it"), "{said}");
    assert!(crashy.contains("a word is missing") && line("ok").is_none() && line("off").is_none(), "{said}");
}
