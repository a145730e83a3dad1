//! A scripted client: any revision, over stdio or HTTP, with ids of its own choosing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::frame::Frame;
use crate::process::Program;
use crate::revision::Revision;
use crate::tape::Tape;
use crate::within::within;

pub mod answer;
pub mod bridge;
pub mod changes;
pub mod converse;
pub mod desk;
mod headers;
pub mod http;
pub mod over_tls;
mod pool;
pub mod request;
pub mod stdio;
pub mod stream;

pub use answer::Answer;
pub use changes::Changes;
pub use desk::{Desk, Reply};
use http::HttpWire;
pub use request::{Request, tool};
use stdio::StdioWire;

/// So often a call is tried again whose upstream still starts; each waits for some seconds.
const STARTING_MAX: usize = 6;

/// Where a client connects to.
#[derive(Clone, Debug)]
pub enum Reach {
    /// A child of its own.
    Child(Program),
    /// A Streamable HTTP endpoint.
    Url(String),
    /// A WebSocket.
    WebSocket(String),
    /// The stream of HTTP+SSE.
    Sse(String),
    /// One of these, with this `Authorization` in each request.
    Bearing(Box<Reach>, String),
    /// A Streamable HTTP endpoint behind a Unix socket.
    Socket(PathBuf),
}

impl Reach {
    /// The same with this `Authorization` in each request.
    #[must_use]
    pub fn bearing(self, bearer: &str) -> Reach {
        Reach::Bearing(Box::new(self), bearer.to_owned())
    }
}

/// A client.
pub struct Client {
    /// The revision it speaks.
    pub revision: Revision,
    /// What came outside of any call: notifications, and questions.
    pub notices: Arc<Tape<Frame>>,
    /// What it held against its peer.
    pub complaints: Arc<Tape<String>>,
    /// Who answers what it is asked.
    pub desk: Arc<Desk>,
    /// The result of the handshake, if there was one.
    pub greeting: Option<Answer>,
    wire: Wire,
    next: AtomicU64,
}

enum Wire {
    Stdio(Arc<StdioWire>),
    Http(Arc<HttpWire>),
}

/// A call in progress.
pub struct Open<'a> {
    /// Its raw id.
    pub id: String,
    /// What has come on its behalf so far.
    pub notices: Arc<Tape<Frame>>,
    client: &'a Client,
    answer: oneshot::Receiver<Answer>,
    task: Option<AbortHandle>,
}

impl Client {
    /// Connects, and says nothing yet.
    pub async fn open(reach: &Reach, revision: Revision) -> Client {
        Client::open_with(reach, revision, Desk::closed()).await
    }

    /// Connects with a token, and shakes hands where its revision has that.
    pub async fn bearing(reach: &Reach, revision: Revision, token: &str) -> Client {
        Client::bearing_with(reach, revision, token, Desk::closed()).await
    }

    /// The same; the desk answers what it is asked.
    pub async fn bearing_with(reach: &Reach, revision: Revision, token: &str, desk: Desk) -> Client {
        let mut client = Client::open_with(reach, revision, desk).await;
        client.http().always("authorization", &format!("Bearer {token}"));
        if !revision.is_modern() {
            client.greet().await;
        }
        client
    }

    /// Connects, and says nothing yet; the desk answers what it is asked.
    pub async fn open_with(reach: &Reach, revision: Revision, desk: Desk) -> Client {
        let notices = Arc::new(Tape::default());
        let complaints = Arc::new(Tape::default());
        let desk = Arc::new(desk.at(revision, complaints.clone()));
        let (reach, bearer) = match reach {
            Reach::Bearing(reach, bearer) => (&**reach, Some(&bearer[..])),
            reach => (reach, None),
        };
        let wire = match reach {
            Reach::Bearing(..) => panic!("one token is enough"),
            Reach::Child(program) => Wire::Stdio(StdioWire::start(program, notices.clone(), desk.clone())),
            Reach::Url(url) => Wire::Http(HttpWire::with_desk(url, revision, desk.clone())),
            Reach::Socket(path) => Wire::Http(HttpWire::at_socket(path, revision, desk.clone())),
            Reach::WebSocket(url) => {
                let pipes = bridge::websocket(url.clone(), bearer);
                Wire::Stdio(StdioWire::bridged(pipes, notices.clone(), desk.clone()))
            }
            Reach::Sse(url) => {
                Wire::Stdio(StdioWire::bridged(bridge::sse(url.clone(), bearer), notices.clone(), desk.clone()))
            }
        };
        if let (Wire::Http(wire), Some(bearer)) = (&wire, bearer) {
            wire.always("authorization", bearer);
        }
        Client { revision, notices, complaints, desk, greeting: None, wire, next: AtomicU64::new(1) }
    }

    /// Whether each of its messages has a request of HTTP for itself.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self.wire, Wire::Http(_))
    }

    /// Connects, and shakes hands where the revision wants it.
    pub async fn connect(reach: &Reach, revision: Revision) -> Client {
        Client::connect_with(reach, revision, Desk::closed()).await
    }

    /// Connects, and shakes hands where the revision wants it; the desk answers what it is asked.
    pub async fn connect_with(reach: &Reach, revision: Revision, desk: Desk) -> Client {
        let mut client = Client::open_with(reach, revision, desk).await;
        if !revision.is_modern() {
            client.greet().await;
        }
        client
    }

    /// Shakes hands: `initialize`, the revision agreed on, `initialized`.
    pub async fn greet(&mut self) {
        let params = format!(
            "{{\"protocolVersion\":\"{}\",\"capabilities\":{},\"clientInfo\":{{\"name\":\"scripted\",\"version\":\"1\"}}}}",
            self.revision,
            self.desk.capabilities()
        );
        let answer = self.request(Request::new("initialize", &params)).await;
        let agreed = answer.value()["protocolVersion"].as_str().map(str::to_owned);
        assert_eq!(agreed.as_deref(), Some(self.revision.text()), "the revision agreed on");
        if let Wire::Http(wire) = &self.wire {
            wire.join(&answer);
        }
        self.greeting = Some(answer);
        self.notify("notifications/initialized", "{}").await;
    }

    /// Sends a request and waits for its answer.
    pub async fn request(&self, request: Request) -> Answer {
        self.start(request).await.answer().await
    }

    /// Calls a tool with arguments (JSON text). Told that nothing was sent since the upstream still starts, as on a loaded machine, it
    /// tries again as that says, a few times.
    pub async fn call(&self, name: &str, arguments: &str) -> Answer {
        for _ in 0..STARTING_MAX {
            let answer = self.call_once(name, arguments).await;
            if !answer.is_of_a_start() {
                return answer;
            }
        }
        self.call_once(name, arguments).await
    }

    /// Calls a tool with arguments (JSON text), and takes the first answer.
    pub async fn call_once(&self, name: &str, arguments: &str) -> Answer {
        self.request(tool(name, arguments)).await
    }

    /// Sends a request; the answer is taken later.
    pub async fn start(&self, mut request: Request) -> Open<'_> {
        if request.capabilities.is_empty() {
            request.capabilities = self.desk.capabilities();
        }
        let id = request.id.clone().unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let notices = Arc::new(Tape::default());
        let text = request.text(self.revision, &id);
        let (sender, answer) = oneshot::channel();
        let task = match &self.wire {
            Wire::Stdio(wire) => {
                wire.expect(&id, &request, sender, notices.clone());
                wire.write(text.as_bytes()).await;
                None
            }
            Wire::Http(wire) => {
                let headers = headers::of_request(&request, self.revision);
                let (wire, notices) = (wire.clone(), notices.clone());
                let task = tokio::spawn(async move {
                    let answer = wire.post(headers, text, &notices).await;
                    // Whoever asked may no longer want to know.
                    let _ = sender.send(answer);
                });
                Some(task.abort_handle())
            }
        };
        Open { id, notices, client: self, answer, task }
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: &str) {
        let request = Request::new(method, params);
        let text = request.notification(self.revision);
        match &self.wire {
            Wire::Stdio(wire) => wire.write(text.as_bytes()).await,
            Wire::Http(wire) => {
                let headers = headers::of_request(&request, self.revision);
                let answer = within(method, wire.post(headers, text, &Tape::default())).await;
                assert_eq!(answer.status, 202, "{method} is accepted: {answer:?}");
            }
        }
    }

    /// The stdio side, for what only it can do.
    #[must_use]
    pub fn stdio(&self) -> &StdioWire {
        match &self.wire {
            Wire::Stdio(wire) => wire,
            Wire::Http(_) => panic!("this client speaks HTTP"),
        }
    }

    /// The HTTP side, for what only it can do.
    #[must_use]
    pub fn http(&self) -> &HttpWire {
        match &self.wire {
            Wire::Http(wire) => wire,
            Wire::Stdio(_) => panic!("this client speaks stdio"),
        }
    }

    /// All names (or URIs) of a list, page by page.
    pub async fn list(&self, method: &str, field: &str, name: &str) -> Vec<String> {
        let mut names = Vec::new();
        let mut params = "{}".to_owned();
        loop {
            let page = self.request(Request::new(method, &params)).await.value();
            let entries = page[field].as_array().unwrap_or_else(|| panic!("{method} has no {field}: {page}")).clone();
            names.extend(entries.iter().map(|entry| entry[name].as_str().expect("a name is a text").to_owned()));
            match page["nextCursor"].as_str() {
                Some(cursor) => params = format!("{{\"cursor\":{}}}", crate::frame::quote(cursor)),
                None => return names,
            }
        }
    }

    /// The names of all tools.
    pub async fn tools(&self) -> Vec<String> {
        self.list("tools/list", "tools", "name").await
    }

    /// Asks for the tools until a test is content with them.
    pub async fn tools_until(&self, what: &str, content: impl Fn(&[String]) -> bool) -> Vec<String> {
        crate::within::until(what, || async {
            let tools = self.tools().await;
            content(&tools).then_some(tools)
        })
        .await
    }
}

impl Open<'_> {
    /// Waits for the answer.
    pub async fn answer(self) -> Answer {
        let what = format!("the answer to request {}", self.id);
        let answer = within(&what, self.answer).await;
        answer.unwrap_or_else(|_| panic!("the connection ended before {what}"))
    }

    /// Waits for the answer, or for the end of the connection without one.
    pub async fn outcome(self) -> Option<Answer> {
        within(&format!("the outcome of request {}", self.id), self.answer).await.ok()
    }

    /// Waits for the answer, `None` where the connection ended without one; giving up the wait loses nothing.
    pub async fn settles(&mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }

    /// Waits so long for the answer. What came is given, `None` where the connection ended without one; nothing at all where
    /// the time is up.
    pub async fn settled(self, limit: std::time::Duration) -> Option<Option<Answer>> {
        tokio::time::timeout(limit, self.answer).await.ok().map(Result::ok)
    }

    /// Cancels the call the way that its revision and transport have for it.
    pub async fn cancel(&self) {
        match &self.task {
            Some(task) if self.client.revision.is_modern() => task.abort(),
            _ => {
                let mut params = format!("{{\"requestId\":{}", self.id);
                params.push_str(",\"reason\":\"no longer wanted\"}");
                self.client.notify("notifications/cancelled", &params).await;
            }
        }
    }

    /// Goes away without a word: closes the call's connection, where it has one of its own.
    pub fn abandon(&self) {
        self.task.as_ref().expect("an HTTP call has a connection of its own").abort();
    }

    /// Waits for a notice of progress with this value, and gives its parameters.
    pub async fn progress(&self, value: u64) -> serde_json::Value {
        let what = format!("progress {value} of request {}", self.id);
        let pick = |frame: &Frame| {
            let params: serde_json::Value = serde_json::from_str(frame.params.as_ref()?.get()).ok()?;
            (frame.is_notice("notifications/progress") && params["progress"] == value).then_some(params)
        };
        self.notices.wait(&what, pick).await
    }
}
