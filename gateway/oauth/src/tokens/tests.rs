//! Tokens that one fetches for all who wait.

use super::*;
use crate::config::TokenCommand;
use crate::runtime::Scratch;

/// Tokens of a script that may write to `file` in this folder.
fn of(script: impl Fn(&str) -> String) -> (Arc<Tokens>, Scratch) {
    let scratch = Scratch::new();
    let file = scratch.0.join("file");
    let command = TokenCommand {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script(&file.display().to_string())],
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        timeout: Duration::from_secs(300),
    };
    (Arc::new(Tokens::new(Source::Command(command))), scratch)
}

#[tokio::test]
async fn who_waits_for_a_token_of_a_level_that_ends_fetches_it_in_his_own() {
    // The first time it hangs.
    let script = |file: &str| format!("test -e {file} && echo token || {{ echo > {file}; exec sleep 600; }}");
    let (tokens, scratch) = of(script);
    let file = scratch.0.join("file");
    let (first, second) = (Tasks::new(), Tasks::new());
    let ends = async {
        while !file.exists() {
            tokio::task::yield_now().await;
        }
        first.end();
    };
    let (left, stays, ()) = tokio::join!(tokens.fetched(&first), tokens.fetched(&second), ends);
    assert_eq!(left.unwrap_err().code(), CauseCode::Stopping);
    let shown = stays.unwrap();
    assert!(Arc::ptr_eq(&shown, &tokens.at_hand(&second).unwrap()));
    first.ended().await;
}

#[tokio::test]
async fn after_a_failure_nobody_asks_for_a_while_and_then_one_does() {
    let (tokens, scratch) = of(|file| format!("echo >> {file}; echo no >&2; exit 1"));
    let (tasks, runs) = (Tasks::new(), || std::fs::read_to_string(scratch.0.join("file")).unwrap().len());
    let why = tokens.fetched(&tasks).await.unwrap_err();
    assert!(why.full().starts_with("no access token: the command of `auth` failed"), "{why:?}");
    tokio::time::pause();
    for _ in 0..3 {
        assert_eq!(tokens.fetched(&tasks).await.unwrap_err(), why);
    }
    assert_eq!(runs(), 1);
    tokio::time::advance(PAUSE.0).await;
    tokio::time::resume();
    let _again = tokio::join!(tokens.fetched(&tasks), tokens.fetched(&tasks));
    assert_eq!(runs(), 2, "for both");
}

#[tokio::test]
async fn who_asks_to_be_left_alone_is_asked_again_after_that_time_and_no_sooner() {
    let (tokens, scratch) = of(|file| format!("echo >> {file}; echo token"));
    let tasks = Tasks::new();
    let why = Cause::new(CauseCode::TokenUnavailable, "busy");
    let pause = Some(Duration::from_secs(40));
    tokens.landed(Err(Unissued { why: why.clone(), pause }), false).unwrap_err();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(39)).await;
    assert_eq!(tokens.fetched(&tasks).await.unwrap_err(), why);
    assert!(!scratch.0.join("file").exists());
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    tokens.fetched(&tasks).await.unwrap();
}

#[tokio::test]
async fn a_token_is_a_secret_of_the_process_before_it_is_shown_and_as_long_as_it_may_be_quoted() {
    let (tokens, _) = of(|_| "echo canary-of-tokens-42".to_owned());
    let tasks = Tasks::new();
    tokens.fetched(&tasks).await.unwrap();
    assert_eq!(mask::masked("Bearer canary-of-tokens-42!"), "Bearer [secret]!");
    // A reload takes nothing from it.
    crate::secrets::Secrets::default().keep();
    assert_eq!(mask::masked("canary-of-tokens-42"), "[secret]");
    tasks.end();
    tasks.ended().await;
    drop(tokens);
    assert_eq!(mask::masked("canary-of-tokens-42"), "canary-of-tokens-42");
}

#[tokio::test]
async fn a_word_that_a_server_gives_out_as_a_token_is_masked_as_one_alone_unless_the_operator_has_named_the_server() {
    let found = crate::config::Login::stored("a", "http://127.0.0.1:1/mcp", ("/x".as_ref(), &[])).unwrap();
    let named = crate::config::Login { issuer: Some("http://127.0.0.1:1".to_owned()), ..found.clone() };
    for (login, token, masked) in [
        (found.clone(), "confirmation", "confirmation"),
        (found, "V1StGXR8_Z5jdHi6B-myT", "[secret]"),
        (named, "disconfirmation", "[secret]"),
    ] {
        let tokens = Tokens::new(Credentials::Login(Box::new(login)).into());
        tokens.landed(Ok(Issued { token: token.to_owned(), lasts: None }), false).unwrap();
        assert_eq!(mask::masked(token), masked);
        assert!(!mask::masked(&format!("{{\"access_token\": \"{token}\"}}")).contains(token));
    }
}

#[tokio::test]
async fn what_is_refused_as_a_token_is_no_secret_of_the_process() {
    let (tokens, _) = of(|_| r#"echo '{"token":"a refused canary"}'"#.to_owned());
    let tasks = Tasks::new();
    assert!(tokens.fetched(&tasks).await.is_err());
    assert_eq!(mask::masked("a refused canary"), "a refused canary");
    tasks.end();
    tasks.ended().await;
}
