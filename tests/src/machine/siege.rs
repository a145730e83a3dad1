//! Sieges: the hostile principal takes all that it can get of something, and holds it, while the others call.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, Desk, Reach, tool};
use crate::journal::now;
use crate::judge::{self, history};
use crate::machine::guest::{Guest, SPEAKS};
use crate::machine::setting::{self, ASKER, HERS, HOSTILE, INNOCENT, UPSTREAMS};
use crate::machine::stage::Stage;
use crate::revision::Revision;
use crate::seed::Seed;
use crate::within::until;

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    /// Sessions, each of them used.
    Sessions,
    /// Calls that hang at an upstream over HTTP, each on a connection.
    Calls,
    /// Bodies of which a part never comes.
    Bodies,
    /// Calls that wait for an answer of their client.
    Parked,
    /// Answers that nobody reads.
    Answers,
    /// Connections on which nothing is said.
    Connections,
}

const ALL: [Holding; 6] =
    [Holding::Sessions, Holding::Calls, Holding::Bodies, Holding::Parked, Holding::Answers, Holding::Connections];
/// So much is tried: more than one principal gets.
const SESSIONS: usize = 70;
const CALLS: usize = 280;
const BODIES: usize = 64;
const PARKED: usize = 40;
const ANSWERS: usize = 24;
const CONNECTIONS: usize = 1_100;
/// How much of a body is sent, and how much is promised.
const SENT: usize = 1024 * 1024;
const PROMISED: usize = 4 * SENT;
/// How long the arguments are whose answers nobody reads.
const UNREAD: usize = 1024 * 1024;
/// How long it may take until all is held that can be.
const PATIENCE: Duration = Duration::from_secs(5);
/// The gate at which hanging calls wait.
pub(crate) const GATE: &str = "siege";
/// What a client declares that parks calls.
const CAN_BE_ASKED: &str = "{\"elicitation\":{}}";

/// A siege under way.
pub(crate) struct Siege {
    told: history::Siege,
    guest: Guest,
    sessions: Vec<String>,
    streams: Vec<TcpStream>,
    client: Option<Client>,
    calls: tokio::task::JoinSet<()>,
}

/// Takes all that the hostile principal can get of something; then a new client of each other principal comes.
pub(crate) async fn lay(stage: &Stage, sick: &[usize], seed: &mut Seed) -> Option<Siege> {
    let (guest, endpoint) = (Guest::of(stage, HOSTILE)?, stage.endpoint()?);
    let what = ALL[seed.below(ALL.len())];
    let well = |first| (first..UPSTREAMS).step_by(2).filter(|at| !sick.contains(at) && *at != ASKER);
    // Over HTTP a call costs a connection, too.
    let well: Vec<usize> = if well(1).count() > 0 { well(1).collect() } else { well(0).collect() };
    let at = well.get(seed.below(well.len().max(1))).copied()?;
    let mut siege = Siege::new(guest, what);
    siege.told.held = match what {
        Holding::Sessions => siege.opens(SESSIONS).await,
        Holding::Calls => siege.hangs(stage, at).await,
        Holding::Bodies => siege.withholds(endpoint).await,
        Holding::Parked => siege.parks(stage).await,
        Holding::Answers => siege.reads_nothing(endpoint, at).await,
        Holding::Connections => siege.connects(endpoint).await,
    };
    siege.told.time.0 = now();
    let upstream = &stage.places[at].upstream.name;
    for principal in INNOCENT {
        let new = Guest::of(stage, principal)?.visits(Some(upstream)).await;
        siege.told.others.push((principal.to_owned(), new));
    }
    Some(siege)
}

impl Siege {
    fn new(guest: Guest, what: Holding) -> Siege {
        let told = history::Siege { of: format!("{what:?}"), ..history::Siege::default() };
        let (sessions, streams, calls) = (Vec::new(), Vec::new(), tokio::task::JoinSet::new());
        Siege { told, guest, sessions, streams, client: None, calls }
    }

    /// Since when all is held, in microseconds since the epoch.
    pub(crate) fn since(&self) -> u64 {
        self.told.time.0
    }

    /// Lets go of it all; what came of it.
    pub(crate) async fn lift(mut self) -> history::Siege {
        self.told.time.1 = now();
        self.calls.shutdown().await;
        drop((self.streams, self.client));
        for session in &self.sessions {
            // Some of them have made room for others.
            let _ = self.guest.ends(session).await;
        }
        self.told
    }

    async fn opens(&mut self, most: usize) -> usize {
        while self.sessions.len() < most
            && let Ok(session) = self.guest.opens().await
        {
            self.guest.pings(&session).await;
            self.sessions.push(session);
        }
        self.sessions.len()
    }

    async fn hangs(&mut self, stage: &Stage, at: usize) -> usize {
        let (place, before) = (&stage.places[at], stage.places[at].besieged());
        let name = format!("{}__wait", place.upstream.name);
        let Some(client) = client(stage).await else { return 0 };
        let client = std::sync::Arc::new(client);
        for _ in 0..CALLS {
            let arguments = format!("{{\"nonce\":\"{}\",\"gate\":\"{GATE}\"}}", judge::nonce());
            let (client, call) = (client.clone(), tool(&name, &arguments));
            self.calls.spawn(async move {
                let open = Leaves(client.start(call).await);
                std::future::pending::<()>().await;
                drop(open);
            });
        }
        let (begun, mut last) = (Instant::now(), 0);
        // Until no more of them come.
        loop {
            tokio::time::sleep(PATIENCE / 20).await;
            let held = place.besieged() - before;
            if held > 0 && held == last || begun.elapsed() > PATIENCE {
                return held;
            }
            last = held;
        }
    }

    async fn parks(&mut self, stage: &Stage) -> usize {
        let Some(client) = client(stage).await else { return 0 };
        let client = self.client.insert(client);
        let (mut held, begun) = (0, Instant::now());
        // Those of an earlier siege may still wait.
        while held == 0 && begun.elapsed() < PATIENCE {
            for _ in 0..PARKED {
                held += usize::from(is_parked(client).await);
            }
        }
        held
    }

    async fn withholds(&mut self, endpoint: SocketAddr) -> usize {
        let body = vec![b' '; SENT];
        for _ in 0..BODIES {
            self.writes(endpoint, None, PROMISED, &body).await;
        }
        self.streams.len()
    }

    async fn reads_nothing(&mut self, endpoint: SocketAddr, at: usize) -> usize {
        let Ok(session) = self.guest.opens().await else { return 0 };
        let filling = "f".repeat(UNREAD);
        for number in 0..ANSWERS {
            let arguments = format!("{{\"nonce\":\"{}\",\"filling\":\"{filling}\"}}", judge::nonce());
            let call = tool(&format!("u{at}__echo"), &arguments).text(SPEAKS, &number.to_string());
            self.writes(endpoint, Some(&session), call.len(), call.as_bytes()).await;
        }
        self.sessions.push(session);
        self.streams.len()
    }

    /// Begins a request, and reads nothing of its answer.
    async fn writes(&mut self, endpoint: SocketAddr, session: Option<&str>, length: usize, body: &[u8]) {
        let Ok(mut stream) = TcpStream::connect(endpoint).await else { return };
        let headers = self.guest.headers(session).into_iter();
        let headers: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("POST /mcp HTTP/1.1\r\nhost: {endpoint}\r\n{headers}content-length: {length}\r\n\r\n");
        let written = async { stream.write_all(head.as_bytes()).await.is_ok() && stream.write_all(body).await.is_ok() };
        if tokio::time::timeout(PATIENCE, written).await == Ok(true) {
            self.streams.push(stream);
        }
    }

    async fn connects(&mut self, endpoint: SocketAddr) -> usize {
        for _ in 0..CONNECTIONS {
            self.streams.extend(TcpStream::connect(endpoint).await);
        }
        self.streams.len()
    }
}

/// Has the gateway open what it keeps for questions of [`HERS`], and start the threads that it keeps for a while for what is large,
/// before anybody counts what it has.
pub(crate) async fn first(stage: &Stage) {
    if let (Some(guest), Some(endpoint)) = (Guest::of(stage, HOSTILE), stage.endpoint()) {
        let mut siege = Siege::new(guest, Holding::Answers);
        siege.reads_nothing(endpoint, 1).await;
        siege.lift().await;
    }
    if let Some(client) = client(stage).await {
        let asks = || async { is_parked(&client).await.then_some(()) };
        until("the hostile principal's upstream asks", asks).await;
    }
}

/// Has a stateless client of the hostile principal call each upstream over HTTP: the gateway keeps a session there for it, which a fault
/// may have ended, and which no siege may have opened yet. With it whatever is counted is comparable.
pub(crate) async fn calls_each(stage: &Stage) {
    let Some(client) = client(stage).await else { return };
    for place in stage.places.iter().filter(|place| place.upstream.way().is_http()) {
        let call = tool(&format!("{}__echo", place.upstream.name), &judge::arguments(&judge::nonce()));
        drop(client.start(call).await.settled(PATIENCE).await);
    }
}

/// Whether a call that asks is parked.
async fn is_parked(client: &Client) -> bool {
    let arguments = format!("{{\"plan\":\"form\",\"who\":\"{HOSTILE}\",\"nonce\":\"{}\"}}", judge::nonce());
    let asked = tool(&format!("{HERS}__ask"), &arguments).capabilities(CAN_BE_ASKED);
    let frame = client.start(asked).await.settled(PATIENCE).await.flatten().and_then(|answer| answer.frame);
    frame.and_then(|frame| frame.result).is_some_and(|result| result.get().contains("\"input_required\""))
}

/// A stateless client of the hostile principal, for which nothing is left behind when it goes.
async fn client(stage: &Stage) -> Option<Client> {
    let reach = Reach::Url(format!("http://{}/mcp", stage.endpoint()?));
    let client = Client::open_with(&reach, Revision::MODERN, Desk::closed().unjudging()).await;
    client.http().always("authorization", &setting::bearer(HOSTILE));
    Some(client)
}

/// A call whose connection is closed when this is dropped.
struct Leaves<'a>(crate::client::Open<'a>);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
