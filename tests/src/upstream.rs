//! An upstream in the hand of a test: start it, see what it saw, tell it what to do.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::authority::Authority;
use crate::certificates;
use crate::engine::Engine;
use crate::journal::{Event, Journal, Order, What};
use crate::process::Program;
use crate::scratch::Scratch;
use crate::script::Script;
use crate::tape::Tape;

mod body;
pub mod child;
pub mod http;
mod hub;
mod legacy;
mod lines;
mod listener;
mod modern;
mod socket;
mod stream;
mod two_endpoints;

use hub::Hub;

/// How a gateway or a client reaches an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As a child process.
    Stdio,
    /// By Streamable HTTP on loopback.
    Http,
    /// By Streamable HTTP on loopback, within TLS, in HTTP/2.
    Secured,
    /// By HTTP+SSE on loopback.
    Sse,
    /// By WebSocket on loopback.
    WebSocket,
    /// By lines over a Unix socket.
    Unix,
    /// By lines over TCP on loopback.
    Tcp,
}

impl Way {
    /// Whether each message has a request of HTTP for itself.
    #[must_use]
    pub fn is_http(self) -> bool {
        matches!(self, Way::Http | Way::Secured)
    }
}

/// How long an order may take to be obeyed on a crowded machine.
const MOMENT: Duration = Duration::from_secs(10);

/// A scripted upstream.
pub struct Upstream {
    /// Its name in the script, and in a gateway's configuration.
    pub name: String,
    /// What happened to it.
    pub events: Arc<Tape<Event>>,
    place: Place,
}

enum Place {
    Child {
        file: PathBuf,
        hub: Hub,
        _scratch: Scratch,
    },
    Loopback {
        way: Way,
        address: SocketAddr,
        host: Arc<http::Host>,
        stop: CancellationToken,
        scratch: Scratch,
        /// The file of who has signed its certificate, where it has one.
        ca: Option<PathBuf>,
    },
}

impl Upstream {
    /// Makes an upstream for either way.
    pub async fn start(way: Way, script: Script) -> Upstream {
        match way {
            Way::Stdio => Upstream::stdio(script).await,
            way => Upstream::loopback(way, script).await,
        }
    }

    /// Prepares an upstream that runs as a child of whoever starts [`Upstream::program`].
    pub async fn stdio(mut script: Script) -> Upstream {
        let events = Arc::new(Tape::default());
        let hub = Hub::open(events.clone()).await;
        script.control = Some(hub.address);
        script.schemas = crate::schema::folder();
        let scratch = Scratch::new();
        let text = serde_json::to_string_pretty(&script).expect("a script is plain data");
        let file = scratch.file("script.json", &text);
        Upstream { name: script.name, events, place: Place::Child { file, hub, _scratch: scratch } }
    }

    /// Starts an upstream that is reached by Streamable HTTP.
    pub async fn http(script: Script) -> Upstream {
        Upstream::loopback(Way::Http, script).await
    }

    /// Starts an upstream on loopback.
    async fn loopback(way: Way, script: Script) -> Upstream {
        let events = Arc::new(Tape::default());
        let name = script.name.clone();
        let host = http::Host::new(Engine::new(script, Journal::Here(events.clone())));
        let stop = CancellationToken::new();
        let scratch = Scratch::new();
        let mut ca = None;
        let address = match way {
            Way::Unix | Way::Tcp => lines::open(way, &socket(&scratch), host.clone(), stop.clone()).await,
            Way::Secured => {
                let authority = certificates::Authority::new();
                ca = Some(scratch.file("ca.pem", &authority.pem));
                let acceptor = certificates::offering(&authority.certify("127.0.0.1", 2999), &[b"h2"]);
                http::open_secured(host.clone(), &socket(&scratch), stop.clone(), acceptor).await
            }
            _ => http::open(host.clone(), &socket(&scratch), stop.clone()).await,
        };
        events.push(Event { instance: 0, at: crate::journal::now(), what: What::Started { pid: std::process::id() } });
        Upstream { name, events, place: Place::Loopback { way, address, host, stop, scratch, ca } }
    }

    /// The program to start for a stdio upstream.
    #[must_use]
    pub fn program(&self) -> Program {
        match &self.place {
            Place::Child { file, .. } => Program::ours("script-upstream", &[&file.display().to_string()]),
            Place::Loopback { .. } => panic!("{} is reached by HTTP", self.name),
        }
    }

    /// The address of an HTTP upstream.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.place {
            Place::Loopback { way: Way::Sse, address, .. } => format!("http://{address}/sse"),
            Place::Loopback { way: Way::Secured, address, .. } => format!("https://{address}/mcp"),
            Place::Loopback { way: Way::WebSocket, address, .. } => format!("ws://{address}/ws"),
            Place::Loopback { way: Way::Unix, scratch, .. } => format!("unix:{}", socket(scratch).display()),
            Place::Loopback { way: Way::Tcp, address, .. } => format!("tcp://{address}"),
            Place::Loopback { address, .. } => format!("http://{address}/mcp"),
            Place::Child { .. } => panic!("{} is reached by stdio", self.name),
        }
    }

    /// The file of who has signed its certificate, where it has one.
    #[must_use]
    pub fn ca(&self) -> Option<&Path> {
        let Place::Loopback { ca, .. } = &self.place else { return None };
        ca.as_deref()
    }

    /// The socket of this machine where one that is not a child listens, too.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        match &self.place {
            Place::Loopback { scratch, .. } => socket(scratch),
            Place::Child { .. } => panic!("{} is reached by stdio", self.name),
        }
    }

    /// The sessions of an HTTP upstream, in order.
    #[must_use]
    pub fn sessions(&self) -> Vec<String> {
        self.sessions_that(|_| true)
    }

    /// Those of its sessions that were opened to be kept, in order: not those that only lists were read in, for a client that declares
    /// less than the gateway, and not those whose client never heard of them.
    #[must_use]
    pub fn kept_sessions(&self) -> Vec<String> {
        self.sessions_that(|session| session.is_kept)
    }

    fn sessions_that(&self, counts: impl Fn(&http::Session) -> bool) -> Vec<String> {
        match &self.place {
            Place::Loopback { host, .. } => {
                let sessions = host.sessions();
                let mut all: Vec<String> =
                    sessions.iter().filter(|(_, session)| counts(session)).map(|(id, _)| id.clone()).collect();
                all.sort();
                all
            }
            Place::Child { .. } => panic!("{} is reached by stdio", self.name),
        }
    }

    /// Where an HTTP upstream listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        match &self.place {
            Place::Loopback { address, .. } => *address,
            Place::Child { .. } => panic!("{} is reached by stdio", self.name),
        }
    }

    /// Lets only those in that bear a token of this authorization server.
    pub fn guarded_by(&self, authority: &Arc<Authority>) {
        match &self.place {
            Place::Loopback { host, .. } => host.guarded_by(authority.clone()),
            Place::Child { .. } => panic!("{} is reached by stdio", self.name),
        }
    }

    /// Shows a document to everybody who asks for this path; one with a status of a redirect says where to.
    pub fn shows(&self, path: &str, status: u16, document: &str) {
        match &self.place {
            Place::Loopback { host, .. } => host.shows(path, status, document),
            Place::Child { .. } => panic!("{} is reached by stdio", self.name),
        }
    }

    /// Says this in its refusals.
    pub fn challenges(&self, challenge: &str) {
        match &self.place {
            Place::Loopback { host, .. } => host.challenges(challenge),
            Place::Child { .. } => panic!("{} is reached by stdio", self.name),
        }
    }

    /// Which way it is reached.
    #[must_use]
    pub fn way(&self) -> Way {
        match &self.place {
            Place::Child { .. } => Way::Stdio,
            Place::Loopback { way, .. } => *way,
        }
    }

    /// Tells it what to do. A child that starts later learns of lasting orders too.
    pub async fn order(&self, order: Order) {
        match &self.place {
            Place::Child { hub, .. } => drop(hub.order(order).await),
            Place::Loopback { host, .. } => host.order(order).await,
        }
    }

    /// Waits until everything that it saw and did up to now stands among the events, also what its dead processes told. What a
    /// child tells arrives on its own, maybe after an answer that it gave later: a test that counts events waits for this first.
    /// No living child may be stopped by a signal: it tells nothing.
    pub async fn caught_up(&self) {
        let Place::Child { hub, .. } = &self.place else { return };
        let mark = self.events.mark();
        for instance in hub.order(Order::Report).await {
            // The report comes after all that was told before it; a child that is gone has told all there is.
            let is_last = |what: &What| matches!(what, What::Report { .. } | What::Gone);
            let pick = |event: &Event| (event.instance == instance && is_last(&event.what)).then_some(());
            self.events.wait_from(mark, &format!("process {instance} of {} has told all", self.name), pick).await;
        }
    }

    /// Everything that it saw and did up to now: [`Upstream::caught_up`], and then its events. Who counts them, or looks for what must
    /// not be among them, takes these.
    pub async fn seen(&self) -> Vec<Event> {
        self.caught_up().await;
        self.events.all()
    }

    /// As [`Upstream::order`], and waits until it is obeyed, a moment long where nobody may be alive to obey.
    pub async fn order_now(&self, order: Order) {
        let mark = self.events.mark();
        self.order(order).await;
        self.order(Order::Report).await;
        let pick = |event: &Event| matches!(event.what, What::Report { .. }).then_some(());
        let obeyed = self.events.wait_from(mark, "an order is obeyed", pick);
        let _ = tokio::time::timeout(MOMENT, obeyed).await;
    }

    /// An HTTP upstream: closes the door and every connection.
    pub fn stop(&self) {
        match &self.place {
            Place::Loopback { stop, .. } => stop.cancel(),
            Place::Child { .. } => panic!("{} is stopped by its parent", self.name),
        }
    }

    /// Waits until a call or rule waits at this gate, and gives the raw id of its request.
    pub async fn waiting_at(&self, gate: &str) -> String {
        self.waiting_at_from(0, gate).await
    }

    /// As [`Upstream::waiting_at`], but only what came after this mark counts.
    pub async fn waiting_at_from(&self, mark: usize, gate: &str) -> String {
        let what = format!("{} waits at gate {gate:?}", self.name);
        let pick = |event: &Event| match &event.what {
            What::Waiting { gate: at, id } if at == gate => Some(id.clone()),
            _ => None,
        };
        self.events.wait_from(mark, &what, pick).await
    }

    /// Waits until so many calls have come to a gate.
    pub async fn waiting(&self, count: usize) {
        let mut waiting = 0;
        let enough = |event: &Event| {
            waiting += usize::from(matches!(event.what, What::Waiting { .. }));
            (waiting >= count).then_some(())
        };
        self.events.wait(&format!("{count} calls of {} wait", self.name), enough).await;
    }

    /// Waits until a frame of this method has arrived, and gives its bytes and headers.
    pub async fn received(&self, method: &str) -> (String, Vec<(String, String)>) {
        let wanted = format!("\"{method}\"");
        let pick = |event: &Event| match &event.what {
            What::Frame { raw, headers } if raw.contains(&wanted) => Some((raw.clone(), headers.clone())),
            _ => None,
        };
        self.events.wait(&format!("{} receives {method}", self.name), pick).await
    }

    /// Waits for a cancelled call, and gives its raw id and how it was cancelled.
    pub async fn cancelled(&self, mark: usize) -> (String, String) {
        let pick = |event: &Event| match &event.what {
            What::Cancelled { id, how } => Some((id.clone(), how.clone())),
            _ => None,
        };
        self.events.wait_from(mark, &format!("a call of {} is cancelled", self.name), pick).await
    }

    /// Waits until its n-th process (from 0) runs, and gives the process id and the time.
    pub async fn started(&self, instance: usize) -> (u32, u64) {
        let pick = |event: &Event| match event.what {
            What::Started { pid } if event.instance == instance => Some((pid, event.at)),
            _ => None,
        };
        self.events.wait(&format!("process {instance} of {} runs", self.name), pick).await
    }

    /// How often it received a frame with this text.
    pub fn frames_with(&self, text: &str) -> usize {
        let fits = |event: &&Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains(text));
        self.events.all().iter().filter(fits).count()
    }

    /// How often a stream or a connection to it was opened.
    pub fn visits(&self) -> usize {
        self.events.all().iter().filter(|event| matches!(event.what, What::Visit { .. })).count()
    }

    /// Waits until its n-th process (from 0) is gone.
    pub async fn gone(&self, instance: usize) {
        let pick = |event: &Event| (event.instance == instance && matches!(event.what, What::Gone)).then_some(());
        self.events.wait(&format!("process {instance} of {} is gone", self.name), pick).await;
    }

    /// Waits until a call with this nonce has run. What a child tells arrives on its own, maybe after its answer.
    pub async fn ran(&self, nonce: &str) {
        let pick = |event: &Event| matches!(&event.what, What::Executed { nonce: ran } if ran == nonce).then_some(());
        self.events.wait(&format!("{} runs {nonce}", self.name), pick).await;
    }

    /// The nonces of the calls that ran up to now, in order.
    pub async fn executed(&self) -> Vec<String> {
        let pick = |event: Event| match event.what {
            What::Executed { nonce } => Some(nonce),
            _ => None,
        };
        self.seen().await.into_iter().filter_map(pick).collect()
    }

    /// The number of calls that ran and how many of them ran twice, by its own count.
    pub async fn report(&self) -> (u64, u64) {
        let mark = self.events.mark();
        self.order(Order::Report).await;
        let pick = |event: &Event| match event.what {
            What::Report { calls, doubled } => Some((calls, doubled)),
            _ => None,
        };
        self.events.wait_from(mark, &format!("{} reports", self.name), pick).await
    }

    /// What it held against its peer up to now.
    pub async fn complaints(&self) -> Vec<String> {
        let pick = |event: Event| match event.what {
            What::Complaint(text) => Some(text),
            _ => None,
        };
        self.seen().await.into_iter().filter_map(pick).collect()
    }
}

fn socket(scratch: &Scratch) -> PathBuf {
    scratch.path().join("upstream.sock")
}
