//! A client that leaves, whatever the bridge waits for; and how soon one gateway is followed by the next.

use super::*;
use std::io::Write;
use std::os::fd::AsFd;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, DuplexStream};
use tokio::net::UnixStream;

#[test]
fn gateways_that_end_at_once_are_followed_ever_more_slowly() {
    let rests: Vec<_> = (0..=9).map(|short| rest(short).as_secs()).collect();
    assert_eq!(rests, [0, 0, 0, 0, 1, 2, 4, 8, 8, 8]);
    assert_eq!(rest(u32::MAX), REST_MAX);
}

const MAX: usize = 1 << 20;

/// A bridge with a client on a pipe, what that reads on stdout, and its end of stdin.
fn bridge<J>(held: usize, joiner: J) -> (Bridge<Input, DuplexStream, J>, BufReader<DuplexStream>, io::PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let (stdin, budget) = (Input::of(reader.as_fd()).unwrap(), Budget::default());
    let (stdout, read) = tokio::io::duplex(held);
    let bridge = Bridge {
        parting: Parting::of(&stdin),
        client: Reader::new(stdin, &budget, MAX),
        max: MAX,
        stdout,
        budget,
        ledger: RefCell::default(),
        joiner,
    };
    (bridge, BufReader::new(read), writer)
}

fn call(id: usize, bytes: usize) -> String {
    let words = "x".repeat(bytes);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{words}\"}}}}\n")
}

/// A gateway at the other end of a connection.
fn gateway() -> (Gateway, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (BufReader::new(near), far)
}

/// Bridges a client that writes this, and leaves, to a gateway: how that ended, after how long, and what the client was told.
async fn left(lines: String, near: Gateway, held: usize) -> (End, Duration, String) {
    let (mut bridge, mut read, mut stdin) = bridge(held, Joiner::new(&Shared::default()));
    // It writes for as long as it is read, and the rest lies in the pipe.
    let writing = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).map(|()| drop(stdin)));
    let began = Instant::now();
    let bridging = async {
        let end = bridged(bridge.between(), near).await.unwrap();
        if end == End::Client {
            bridge.part().await.unwrap();
        }
        drop(bridge);
        (end, began.elapsed())
    };
    let mut told = String::new();
    // A client with little room does not read before all is over.
    let (end, took) = match held {
        MAX.. => tokio::join!(bridging, async { read.read_to_string(&mut told).await.unwrap() }).0,
        _ => {
            let ended = bridging.await;
            read.read_to_string(&mut told).await.unwrap();
            ended
        }
    };
    writing.join().unwrap().unwrap();
    (end, took, told)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_the_gateway_does_not_read_ends_the_bridge_in_time() {
    let (near, mut far) = gateway();
    // More than the connection holds, and a line that is not read any more.
    let (end, took, told) = left(call(1, MAX / 2) + &call(2, 10), near, MAX).await;
    assert_eq!((end, took), (End::Client, Duration::from_secs(5)));
    assert!(told.contains("\"id\":1,") && told.contains("may or may not have run"), "{told}");
    let mut sent = Vec::new();
    far.read_to_end(&mut sent).await.unwrap();
    assert!(!sent.is_empty() && sent.last() != Some(&b'\n'), "nothing more goes to it than it took");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_with_all_the_requests_open_that_may_be_is_told_of_each() {
    let (near, far) = gateway();
    // It reads, and answers nothing.
    let (reading, _writing) = far.into_split();
    let mut sent = BufReader::new(reading).lines();
    let reading = async { while sent.next_line().await.is_ok_and(|line| line.is_some()) {} };
    let lines: String = (0..4100).map(|id| call(id, 1)).collect();
    let ((end, took, told), ()) = tokio::join!(left(lines, near, MAX), reading);
    assert_eq!((end, took), (End::Client, Duration::from_secs(5)));
    assert_eq!(told.lines().filter(|line| line.contains("stdin was closed")).count(), 4096);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_and_reads_nothing_ends_the_bridge_in_time_and_half_a_line_is_not_gone_on_with() {
    let (near, mut far) = gateway();
    let answering = async {
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"text\":\"{}\"}}}}\n", "y".repeat(1000));
        tokio::io::AsyncWriteExt::write_all(&mut far, answer.as_bytes()).await.unwrap();
        far
    };
    let ((end, took, told), _far) = tokio::join!(left(call(1, 1), near, 64), answering);
    assert_eq!((end, took), (End::Unread, Duration::from_secs(5)));
    assert_eq!(told.len(), 64, "what it had room for: {told}");
}

/// A way on which a gateway stands whenever it is looked for: each lives so long.
struct Always {
    lives: std::vec::IntoIter<Duration>,
    started: tokio::sync::mpsc::Sender<(Duration, UnixStream)>,
    joined: Vec<Instant>,
}

impl Joins for Always {
    async fn join(&mut self) -> Result<Gateway, anyhow::Error> {
        self.joined.push(Instant::now());
        let Some(life) = self.lives.next() else { return std::future::pending().await };
        let (near, far) = gateway();
        self.started.try_send((life, far)).unwrap();
        Ok(near)
    }

    fn given_up(&self, why: &str) -> anyhow::Error {
        anyhow::anyhow!("{why}")
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_but_the_start_of_the_next_gateway_is_waited_for_when_one_has_ended() {
    let (long, short) = (Duration::from_secs(10), Duration::from_millis(10));
    let lives = vec![long, long, short, short, short, long, short, short, short, short, short, long];
    let (started, mut coming) = tokio::sync::mpsc::channel(1);
    let always = Always { lives: lives.into_iter(), started, joined: Vec::new() };
    let (mut bridge, _read, _stdin) = bridge(MAX, always);
    let mut ends = Vec::new();
    let living = async {
        while let Some((life, far)) = coming.recv().await {
            sleep(life).await;
            drop(far);
            ends.push(Instant::now());
            if ends.len() == 12 {
                break;
            }
        }
        // The last one is looked for now.
        sleep(long).await;
    };
    tokio::select! {
        ended = bridge.run() => panic!("{ended:?}"),
        () = living => {}
    }
    let joined = &bridge.joiner.joined[1..];
    let pauses: Vec<_> = joined.iter().zip(&ends).map(|(joined, end)| (*joined - *end).as_secs_f64()).collect();
    // Only who ends at once for the fourth time in a row is followed later.
    assert_eq!(pauses, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0]);
}
