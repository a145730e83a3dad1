//! The tokens of a login while the gateway runs.

use super::*;
use crate::config::Registered;
use crate::oauth::record::tests::record;
use crate::oauth::way::tests::login;
use crate::runtime::Scratch;
use std::path::Path;

fn kept(state: &Path) -> (StoredLogin, Store) {
    let login = Login { state: Some(state.to_owned()), ..login("up", 1) };
    (StoredLogin::new(login.clone()), Store::of(&login).unwrap())
}

async fn token(kept: &StoredLogin, refused: &str) -> Result<String, String> {
    let issued = kept.token(&|token| token == refused, &Tasks::new()).await;
    issued.map(|issued| issued.token).map_err(|unissued| unissued.why.full().into_owned())
}

#[tokio::test(start_paused = true)]
async fn who_needs_a_login_is_told_of_the_next_one() {
    let scratch = Scratch::new();
    let (kept, store) = kept(&scratch.0);
    let shown = std::sync::Arc::new(Mutex::new(Vec::new()));
    let seen = shown.clone();
    kept.shown_by(Box::new(move |login| seen.lock().unwrap().push(login.is_some())));
    assert_eq!(token(&kept, "").await.unwrap_err(), "needs login; run `trunkline login up`");
    let mut came = std::pin::pin!(kept.came());
    assert!(tokio::time::timeout(LOOK_EVERY * 5, &mut came).await.is_err());
    store.write(&record("http://127.0.0.1:1/mcp", "q7Wm-2hYt-Zs5K-a1x9Q", None)).unwrap();
    came.await;
    assert_eq!(token(&kept, "").await.as_deref(), Ok("q7Wm-2hYt-Zs5K-a1x9Q"));
    assert_eq!(mask::masked("q7Wm-2hYt-Zs5K-a1x9Q"), "[secret]");
    assert!(tokio::time::timeout(LOOK_EVERY * 5, kept.came()).await.is_err(), "none is missing");
    // Nobody is there who could say whether it is good for anything else.
    let why = token(&kept, "q7Wm-2hYt-Zs5K-a1x9Q").await.unwrap_err();
    assert!(why.starts_with("the upstream refuses this request"), "{why}");
    assert_eq!(*shown.lock().unwrap(), [false, true], "the login is shown all the same");
    assert_eq!(token(&kept, "").await.as_deref(), Ok("q7Wm-2hYt-Zs5K-a1x9Q"));
}

#[tokio::test]
async fn a_login_at_another_server_or_of_another_client_than_is_configured_is_not_shown() {
    let scratch = Scratch::new();
    let (before, store) = kept(&scratch.0);
    store.write(&record("http://127.0.0.1:1/mcp", "canary-of-kept-c", None)).unwrap();
    let client = |id: &str| Some(Registered { id: id.to_owned(), secret: None, is_in_body: false });
    for (issuer, client, why) in [
        (Some("https://as.example"), client("me"), None),
        (Some("https://other.example"), None, Some("at another authorization server than `issuer`")),
        (None, client("other"), Some("of another client than `client_id`")),
    ] {
        let issuer = issuer.map(str::to_owned);
        let kept = StoredLogin::new(Login { issuer, client, ..before.login.clone() });
        match (token(&kept, "").await, why) {
            (Ok(_), None) => {}
            (Err(said), Some(why)) => assert!(said.contains(why) && said.contains("trunkline login"), "{said}"),
            (found, why) => panic!("{found:?} {why:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_login_is_noticed_and_what_one_has_written_oneself_is_none() {
    let scratch = Scratch::new();
    let (kept, store) = kept(&scratch.0);
    let mut first = record("http://127.0.0.1:1/mcp", "canary-of-kept-d", None);
    token(&kept, "").await.unwrap_err();
    kept.keep(&store, &first);
    assert!(tokio::time::timeout(LOOK_EVERY * 5, kept.came()).await.is_err(), "nobody has logged in");
    token(&kept, "").await.unwrap();
    assert!(!kept.has_changed());
    kept.keep(&store, &first);
    tokio::time::advance(LOOK_EVERY).await;
    assert!(!kept.has_changed());
    first.access = "canary-of-kept-e".to_owned();
    store.write(&first).unwrap();
    assert!(!kept.has_changed(), "it was looked at just now");
    tokio::time::advance(LOOK_EVERY).await;
    assert!(kept.has_changed());
    assert_eq!(token(&kept, "").await.as_deref(), Ok("canary-of-kept-e"));
    tokio::time::advance(LOOK_EVERY).await;
    assert!(!kept.has_changed());
}

#[test]
fn who_may_need_no_login_is_told_of_one_that_was_made_and_is_good_no_more() {
    let scratch = Scratch::new();
    let (_, store) = kept(&scratch.0);
    let of = |is_found, state: Option<&Path>| {
        let login = Login { is_found, state: state.map(Path::to_owned), ..login("up", 1) };
        logged_in(&login).map(|found| found.is_some()).map_err(|why| why.full().into_owned())
    };
    let own = Some(&*scratch.0);
    assert_eq!((of(true, own), of(true, None)), (Ok(false), Ok(false)));
    assert!(of(false, own).unwrap_err().starts_with("needs login") && of(false, None).is_err());
    let mut record = record("http://127.0.0.1:1/mcp", "canary-of-kept-h", None);
    store.write(&record).unwrap();
    assert_eq!((of(true, own), of(false, own)), (Ok(true), Ok(true)));
    record.ends = Some(record.given - 1);
    store.write(&record).unwrap();
    for is_found in [true, false] {
        assert!(of(is_found, own).unwrap_err().contains("the last login has ended"));
    }
}

#[tokio::test]
async fn a_login_that_was_brought_from_another_upstream_or_resource_is_not_shown() {
    let scratch = Scratch::new();
    let (kept, store) = kept(&scratch.0);
    for (upstream, resource) in [("up", "http://127.0.0.1:2/mcp"), ("other", "http://127.0.0.1:1/mcp")] {
        let brought = Record { upstream: upstream.to_owned(), ..record(resource, "canary-of-kept-b", None) };
        store.write(&brought).unwrap();
        let why = token(&kept, "").await.unwrap_err();
        assert!(why.starts_with("needs login: the login that is kept is that of another upstream;"), "{why}");
    }
}

#[test]
fn tokens_that_cannot_be_written_are_used_by_this_process_until_others_are_there() {
    let scratch = Scratch::new();
    let (kept, store) = kept(&scratch.0);
    let (folder, aside) = (scratch.0.join("logins"), scratch.0.join("aside"));
    let mut first = record("http://127.0.0.1:1/mcp", "a", Some("r"));
    first.given -= 10;
    store.write(&first).unwrap();
    let second = record("http://127.0.0.1:1/mcp", "b", Some("s"));
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    kept.keep(&store, &second);
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    assert!(kept.read(&store).unwrap() == second);
    let mut third = record("http://127.0.0.1:1/mcp", "c", None);
    third.given += 10_000;
    store.write(&third).unwrap();
    assert!(kept.read(&store).unwrap() == third && kept.lock().unwritten.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_upstream_without_a_word_of_logins_is_shown_one_at_once_and_none_once_it_is_gone() {
    let scratch = Scratch::new();
    let found = Login { is_found: true, state: Some(scratch.0.clone()), ..login("up", 1) };
    let (kept, store) = (StoredLogin::new(found.clone()), Store::of(&found).unwrap());
    assert!(!kept.is_shown());
    store.write(&record("http://127.0.0.1:1/mcp", "Lp3v-8RcD-bN6e-f1y7C", None)).unwrap();
    assert!(!kept.is_shown(), "it was looked at just now");
    tokio::time::advance(LOOK_EVERY).await;
    assert!(kept.is_shown(), "nobody waits for a refusal");
    assert_eq!(token(&kept, "").await.as_deref(), Ok("Lp3v-8RcD-bN6e-f1y7C"));
    // The login ends, and its file goes while nothing is connected.
    let why = kept.to_log_in("");
    kept.lock().is_missing = true;
    store.remove().unwrap();
    assert_eq!(token(&kept, "").await.unwrap_err(), why.full());
    assert!(!kept.is_shown(), "requests go without again");
    // So it is where a file is in its place that is none.
    std::fs::write(store.path(), "broken").unwrap();
    std::fs::set_permissions(store.path(), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    tokio::time::advance(LOOK_EVERY).await;
    assert!(kept.is_shown());
    assert!(token(&kept, "").await.unwrap_err().contains("the kept login cannot be used"));
    std::fs::remove_file(store.path()).unwrap();
    tokio::time::timeout(LOOK_EVERY * 5, kept.came()).await.expect("the next attempt is due");
    assert!(!kept.is_shown() && !kept.look());
}

#[tokio::test(start_paused = true)]
async fn a_word_in_place_of_a_token_is_masked_nowhere_and_after_a_logout_nothing_is() {
    let scratch = Scratch::new();
    let (kept, store) = kept(&scratch.0);
    let given = record("http://127.0.0.1:1/mcp", "irreversibly", Some("4kUj-Gy9X-oT1w-g2z8B"));
    store.write(&given).unwrap();
    assert_eq!(token(&kept, "").await.as_deref(), Ok("irreversibly"));
    assert_eq!(mask::masked("irreversibly: 4kUj-Gy9X-oT1w-g2z8B"), "irreversibly: [secret]");
    store.remove().unwrap();
    kept.went().await;
    assert_eq!(mask::masked("4kUj-Gy9X-oT1w-g2z8B"), "4kUj-Gy9X-oT1w-g2z8B");
}

#[tokio::test(start_paused = true)]
async fn sessions_go_on_with_the_login_they_began_with_and_hold_calls_back_once_another_account_has_one() {
    let scratch = Scratch::new();
    let (kept, store) = kept(&scratch.0);
    let holds = || {
        let held = std::cell::Cell::new(false);
        kept.sessions.while_over(|| held.set(true));
        held.get()
    };
    let write = |access: &str, made: &str, account: Option<&str>| {
        let (made, account) = (made.to_owned(), account.map(str::to_owned));
        store.write(&Record { made, account, ..record("http://127.0.0.1:1/mcp", access, None) }).unwrap();
    };
    write("first", "1", Some("id:ada"));
    assert!(!kept.sessions.begin().await);
    assert_eq!(token(&kept, "").await.as_deref(), Ok("first"));
    // Of the same account a later login is as good.
    write("second", "2", Some("id:ada"));
    assert!(!kept.is_of_another() && !holds());
    assert_eq!(token(&kept, "").await.as_deref(), Ok("second"));
    write("third", "3", Some("id:bob"));
    assert!(!holds(), "nobody has looked");
    assert!(kept.is_of_another() && holds());
    let why = kept.token(&|_| false, &Tasks::new()).await.unwrap_err().why;
    assert_eq!(why.code(), CauseCode::LoginChanged);
    // Those of another instance end first.
    assert!(tokio::time::timeout(Duration::from_secs(10), kept.sessions.begin()).await.is_err());
    kept.sessions.ended();
    assert!(!holds(), "none is open");
    assert!(kept.sessions.begin().await && !holds());
    assert_eq!(token(&kept, "").await.as_deref(), Ok("third"));
    assert!(!kept.is_of_another());
}

#[tokio::test(start_paused = true)]
async fn a_logout_is_noticed_also_where_a_call_has_missed_the_login_first() {
    let scratch = Scratch::new();
    let (kept, store) = kept(&scratch.0);
    store.write(&record("http://127.0.0.1:1/mcp", "Lp3v-8RcD-bN6e-f1y7C", None)).unwrap();
    assert!(token(&kept, "").await.is_ok());
    let missed = async {
        store.remove().unwrap();
        assert!(token(&kept, "").await.is_err());
    };
    let both = async { tokio::join!(kept.went(), missed) };
    tokio::time::timeout(LOOK_EVERY * 5, both).await.expect("it is noticed");
}
