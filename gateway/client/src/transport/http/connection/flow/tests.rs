//! Breaks in words, upstreams that take nothing, and ends that are noticed before a write.

use super::*;
use crate::runtime::Tasks;
use crate::transport::recorder::Recorder;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Why a request over HTTP/1.1 broke that was answered so.
async fn broken_by(answer: &'static [u8]) -> String {
    let (near, mut far) = tokio::io::duplex(1 << 14);
    let (mut requests, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(near)).await.unwrap();
    let request = http::Request::get("/").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let answers = async {
        far.write_all(answer).await.unwrap();
        drop(far);
    };
    let (sent, _connection, ()) = tokio::join!(requests.send_request(request), connection, answers);
    broken(&sent.unwrap_err()).full().into_owned()
}

#[tokio::test]
async fn what_broke_a_connection_is_said_with_what_to_do() {
    let said = broken_by(b"SSH-2.0-OpenSSH_9.6\r\n").await;
    assert!(said.starts_with("the connection broke: what it sends is no HTTP (") && said.contains("`url`"), "{said}");
    let tls = "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest";
    let ended = io::Error::new(io::ErrorKind::UnexpectedEof, tls);
    assert_eq!(causes(&ended), "it closed the connection");
    let reset = io::Error::new(io::ErrorKind::ConnectionReset, "reset by peer");
    assert_eq!(causes(&reset), "reset by peer");
    let early = broken_by(b"HTTP/1.1 200 OK\r\ncontent-le").await;
    assert_eq!(early, "the connection broke: it closed the connection before its answer was whole");
}

#[test]
fn unread_bytes_and_an_end_forbid_the_next_write_once() {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut flow = FlowWatch(Arc::new(Flow::default()));
    let mut writes = |near| {
        flow.0.check_end();
        let first = flow.before_write(near).is_ok();
        assert!(flow.before_write(near).is_ok(), "one write alone is checked");
        flow.0.share();
        flow.0.check_end();
        let shared = flow.before_write(near).is_ok();
        flow = FlowWatch(Arc::new(Flow::default()));
        (first, shared)
    };
    assert_eq!(writes(&near), (true, true));
    std::io::Write::write_all(&mut &far, b"close_notify").unwrap();
    assert_eq!(writes(&near), (false, true), "frames of HTTP/2 come at any time");
    std::io::Read::read_exact(&mut &near, &mut [0; 12]).unwrap();
    drop(far);
    assert_eq!(writes(&near), (false, false));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_takes_nothing_of_a_request_is_shown_until_it_does() {
    let (tasks, recorder) = (Tasks::new(), Arc::<Recorder>::default());
    let (flow, unread) = (Arc::new(Flow::default()), Unread::new(recorder.clone()));
    let watched = flow.clone();
    tasks.spawn_until_end(async move { watched.watch(&unread).await });
    let shown = || {
        let texts = [recorder.condition(Condition::Unread), recorder.last_failure()];
        texts.map(|text| text.map(|text| text.contains("input not read for 5 s")))
    };
    let mut way = FlowWatch(flow.clone());
    Watch::<TcpStream>::wrote(&mut way, true);
    sleep(LOOK * (SHOWN_AFTER - 1)).await;
    assert_eq!(shown(), [None, None]);
    // A byte that it takes begins the time anew.
    Watch::<TcpStream>::wrote(&mut way, false);
    Watch::<TcpStream>::wrote(&mut way, true);
    sleep(LOOK * (SHOWN_AFTER - 1)).await;
    assert_eq!(shown(), [None, None]);
    sleep(LOOK * 3).await;
    assert_eq!(shown(), [Some(true), Some(true)], "the condition says it, and the last failure");
    Watch::<TcpStream>::wrote(&mut way, false);
    sleep(LOOK * 2).await;
    assert_eq!(shown(), [None, Some(true)]);
}
