//! What the browser brings back, and what others bring.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn denial(error: &str, description: Option<&str>) -> Denial {
    Denial { error: error.to_owned(), description: description.map(str::to_owned) }
}

fn state() -> [u8; 32] {
    Sha256::digest(b"s").into()
}

#[test]
fn only_the_state_that_was_given_counts_and_each_parameter_once() {
    let of = |query: &str| read(query, &state()).map(|brought| (brought.code, brought.iss));
    assert_eq!(of("code=a%2Bb&state=s"), Some((Ok("a+b".to_owned()), None)));
    assert_eq!(
        of("state=s&error=access_denied&iss=x"),
        Some((Err(denial("access_denied", None)), Some("x".to_owned())))
    );
    let said = "state=s&error=access_denied&error_description=not+you%1b";
    assert_eq!(of(said), Some((Err(denial("access_denied", Some("not you\u{1b}"))), None)));
    for query in [
        "code=a",
        "code=a&state=",
        "code=a&state=t",
        "code=a&state=s&state=s",
        "code=a&code=b&state=s",
        "code=&state=s",
        "code=a&error=b&state=s",
        "state=s",
        "iss=a&iss=b&code=a&state=s",
        "error=a&error_description=b&error_description=c&state=s",
        "",
    ] {
        assert_eq!(of(query), None, "{query}");
    }
}

#[test]
fn a_code_of_another_authorization_server_is_not_used_and_its_words_are_not_told() {
    let brought = |iss: Option<&str>| {
        let code = Err(denial("canary", Some("a\u{1b}[31m word that is \u{202e} turned")));
        AuthorizationResponse { code, iss: iss.map(str::to_owned) }
    };
    for (iss, names_itself) in [(Some("https://b"), false), (Some("https://a/"), true), (None, true)] {
        let why = brought(iss).from("https://a", names_itself).unwrap_err();
        assert!(why.full().contains("nothing of it is used") && !why.full().contains("canary"), "{iss:?}");
    }
    for (iss, names_itself) in [(Some("https://a"), true), (Some("https://a"), false), (None, false)] {
        let why = brought(iss).from("https://a", names_itself).unwrap_err();
        assert!(why.full().ends_with(": `canary`: `a\\u{1b}[31m word that is \\u{202e} turned`"), "{why:?}");
        assert!(!why.public().contains("canary") && !why.public().contains("turned"));
    }
}

async fn ask(at: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn one_answer_is_taken_and_another_program_on_this_machine_changes_nothing() {
    let (callback, tasks) = (Callback::open(Some("up")).await.unwrap(), Tasks::new());
    let at = callback.at;
    assert!(at.ip().is_loopback() && callback.url() == format!("http://{at}/callback/up"));
    let get = |host: &str, path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let own = at.to_string();
    // A connection that says nothing is no hindrance.
    let silent = TcpStream::connect(at).await.unwrap();
    let asking = async {
        for (head, status) in [
            (get(&own, "/"), "404"),
            (get(&own, "/callback/up"), "400"),
            (get(&own, "/callback/up?code=evil&state=t"), "400"),
            (get("evil.example", "/callback/up?code=evil&state=s"), "404"),
            (get(&own, "/callback/other?code=evil&state=s"), "404"),
            (get(&own, "/callback?code=evil&state=s"), "404"),
            (
                format!("POST /callback/up?code=evil&state=s HTTP/1.1\r\nHost: {own}\r\nContent-Length: 0\r\n\r\n"),
                "404",
            ),
            (get(&own, "/callback/up?code=good&state=s&iss=x"), "200"),
        ] {
            let answer = ask(at, &head).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
            assert!(!answer.contains("evil") && !answer.contains("good"), "{answer}");
        }
    };
    let (brought, ()) = tokio::join!(callback.brought(("up".into(), "s"), mpsc::channel(1).1, |_| (), &tasks), asking);
    assert_eq!(brought.unwrap(), AuthorizationResponse { code: Ok("good".to_owned()), iss: Some("x".to_owned()) });
    // A child that another test starts holds the port, too, until it has become another program.
    let closed = async {
        while TcpStream::connect(at).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(REQUEST_TIME, closed).await.expect("it listens no more");
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn what_the_browser_brings_counts_once_its_answer_is_written_and_one_that_reads_nothing_waits_in_vain() {
    let tasks = Tasks::new();
    for reads in [true, false] {
        let (found, mut brought) = mpsc::channel(1);
        let expected = Expected {
            upstream: "up".into(),
            host: "127.0.0.1:1".to_owned(),
            path: PATH.to_owned(),
            state: state(),
            found,
        };
        // So little is taken at once: the answer is written when most of it is read.
        let (mut browser, ours) = tokio::io::duplex(64);
        let begun = tokio::time::Instant::now();
        tasks.spawn(serve(ours, Arc::new(expected)));
        browser.write_all(b"GET /callback?code=good&state=s HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n").await.unwrap();
        browser.read_u8().await.unwrap();
        assert!(brought.try_recv().is_err(), "the command could end before the page is shown");
        if reads {
            browser.read_to_end(&mut Vec::new()).await.unwrap();
        }
        assert_eq!(brought.recv().await.unwrap().code, Ok("good".to_owned()));
        assert_eq!(begun.elapsed().as_secs(), if reads { 0 } else { REQUEST_TIME.as_secs() });
    }
}

#[tokio::test]
async fn the_address_that_the_browser_was_sent_back_to_can_be_pasted_and_nothing_else_counts() {
    let (callback, tasks) = (Callback::open(None).await.unwrap(), Tasks::new());
    let (own, (paste, pasted), mut odd) = (callback.url(), mpsc::channel(8), Vec::new());
    for line in [
        "hello".to_owned(),
        "http://127.0.0.1:1/callback?code=evil&state=s".to_owned(),
        format!("{own}?code=evil&state=t"),
        format!("{own}.evil.example/?code=evil&state=s"),
        format!("  {own}?code=good&state=s\n"),
    ] {
        paste.send(line).await.unwrap();
    }
    let brought = callback.brought(("up".into(), "s"), pasted, |why| odd.push(why), &tasks).await.unwrap();
    assert_eq!((brought.code, odd.len()), (Ok("good".to_owned()), 4));
    assert_eq!(odd[2], "it breaks off, or it is that of another login");
}

#[tokio::test(start_paused = true)]
async fn a_person_has_ten_minutes() {
    let (begun, callback) = (tokio::time::Instant::now(), Callback::open(None).await.unwrap());
    let why = callback.brought(("up".into(), "s"), mpsc::channel(1).1, |_| (), &Tasks::new()).await.unwrap_err();
    assert_eq!(why.full(), "nobody has logged in within 10 min");
    assert_eq!(begun.elapsed().as_secs(), 600);
}
