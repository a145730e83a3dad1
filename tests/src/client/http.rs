//! The client's side of Streamable HTTP, and single exchanges with any headers and bytes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Uri};

use crate::client::answer::Answer;
use crate::client::desk::Desk;
use crate::client::pool::Pool;
use crate::frame::Frame;
use crate::revision::Revision;
use crate::sse::SseDecoder;
use crate::tape::Tape;

/// Name and value pairs.
pub type Headers = Vec<(String, String)>;

/// A connection to an endpoint, and the session that lives on it.
pub struct HttpWire {
    me: Weak<HttpWire>,
    uri: Uri,
    desk: Arc<Desk>,
    pool: Pool,
    revision: Revision,
    session: Mutex<Headers>,
    extra: Mutex<Headers>,
}

impl HttpWire {
    /// A wire to an endpoint; nothing is sent yet.
    #[must_use]
    pub fn new(url: &str, revision: Revision) -> Arc<HttpWire> {
        HttpWire::with_desk(url, revision, Arc::new(Desk::closed()))
    }

    /// A wire whose questions go to a desk.
    #[must_use]
    pub fn with_desk(url: &str, revision: Revision, desk: Arc<Desk>) -> Arc<HttpWire> {
        let uri: Uri = url.parse().expect("a URL");
        let pool = Pool::new(uri.authority().expect("a host and port").as_str());
        HttpWire::over(pool, uri, revision, desk)
    }

    /// A wire to the endpoint behind a Unix socket.
    #[must_use]
    pub fn at_socket(path: &Path, revision: Revision, desk: Arc<Desk>) -> Arc<HttpWire> {
        let pool = Pool::new(path.to_str().expect("a path of text"));
        HttpWire::over(pool, Uri::from_static("http://localhost/mcp"), revision, desk)
    }

    fn over(pool: Pool, uri: Uri, revision: Revision, desk: Arc<Desk>) -> Arc<HttpWire> {
        Arc::new_cyclic(|me| HttpWire {
            me: me.clone(),
            uri,
            desk,
            pool,
            revision,
            session: Mutex::default(),
            extra: Mutex::default(),
        })
    }

    /// Keeps what the handshake gave: the session id, and the version to name from now on.
    pub fn join(&self, greeting: &Answer) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.clear();
        if let Some(id) = greeting.header("mcp-session-id") {
            session.push(("mcp-session-id".into(), id.into()));
        }
        if self.revision.has_version_header() {
            session.push(("mcp-protocol-version".into(), self.revision.text().into()));
        }
    }

    /// A header for every further request, a token for example.
    pub fn always(&self, name: &str, value: &str) {
        self.extra.lock().unwrap_or_else(PoisonError::into_inner).push((name.into(), value.into()));
    }

    /// Closes the connections that wait for their next use.
    pub fn rest(&self) {
        self.pool.clear();
    }

    /// The headers of the session.
    #[must_use]
    pub fn session(&self) -> Headers {
        let mut headers = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        headers.extend(self.extra.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        headers
    }

    /// The session's id.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.session().into_iter().find(|(name, _)| name == "mcp-session-id").map(|(_, value)| value)
    }

    /// Posts a frame in the session; what comes before the answer goes to the tape.
    pub async fn post(&self, more: Headers, text: String, notices: &Tape<Frame>) -> Answer {
        let mut headers = self.session();
        headers.push(("content-type".into(), "application/json".into()));
        headers.push(("accept".into(), "application/json, text/event-stream".into()));
        headers.extend(more);
        let method = Frame::parse(text.as_bytes()).ok().and_then(|frame| frame.method);
        let answer = self.exchange(Method::POST, &headers, text.into(), notices).await;
        let answer = answer.unwrap_or_else(|error| failed(&error));
        if let Some(frame) = &answer.frame {
            self.desk.judge(frame, method.as_deref());
        }
        answer
    }

    /// Sends exactly these headers and bytes.
    pub async fn exchange(
        &self,
        method: Method,
        headers: &Headers,
        body: Bytes,
        notices: &Tape<Frame>,
    ) -> Result<Answer, String> {
        let (mut response, connection) = self.pool.send(self.build(method, headers, body)).await?;
        let mut answer = Answer {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            ..Answer::default()
        };
        if !answer.is_stream() {
            answer.body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
            answer.frame = Frame::parse(&answer.body).ok();
        } else {
            let mut decoder = SseDecoder::default();
            let mut body = response.into_body();
            while let Some(part) = body.frame().await {
                let part = part.map_err(|error| error.to_string())?;
                for event in decoder.feed(part.data_ref().map_or(&[], Bytes::as_ref)) {
                    self.take(&mut answer, event, notices);
                }
            }
        }
        self.pool.give(connection);
        Ok(answer)
    }

    /// A request for this endpoint.
    pub(crate) fn build(&self, method: Method, headers: &Headers, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str));
        if !headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", self.uri.authority().expect("a host and port").as_str());
        }
        for (name, value) in headers {
            request = request.header(name.as_str(), value.as_str());
        }
        request.body(Full::new(body)).expect("a test sends sendable headers")
    }

    /// Sorts one event of a stream: the answer, or what came before it.
    fn take(&self, answer: &mut Answer, event: crate::sse::SseEvent, notices: &Tape<Frame>) {
        if let Some(data) = event.data.as_deref().filter(|data| !data.is_empty()) {
            match Frame::parse(data.as_bytes()) {
                Ok(frame) if frame.is_answer() => {
                    if let Some(earlier) = answer.frame.replace(frame) {
                        self.desk.complain(format!("a second answer, after {earlier:?}"));
                    }
                }
                Ok(frame) => self.sort(frame, notices),
                Err(fault) => panic!("an event is not a frame: {fault}"),
            }
        }
        answer.events.push(event);
    }

    /// Has a question answered by a POST of its own; whatever else comes goes to the tape.
    pub(crate) fn sort(&self, frame: Frame, notices: &Tape<Frame>) {
        self.desk.judge(&frame, None);
        if frame.id.is_none() {
            self.desk.hear(&frame);
            notices.push(frame);
            return;
        }
        let asked = self.desk.take(&frame);
        let Some(wire) = self.me.upgrade() else { return };
        tokio::spawn(async move {
            let Some(text) = wire.desk.answer(asked).await else { return };
            let answer = wire.post(Headers::new(), text, &Tape::default()).await;
            if answer.status != 202 {
                wire.desk.complain(format!("an answer of ours got HTTP {}: {answer:?}", answer.status));
            }
        });
    }

    pub(crate) fn me(&self) -> Weak<HttpWire> {
        self.me.clone()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// The connection broke before an answer: status 0, and the reason as body.
fn failed(reason: &str) -> Answer {
    Answer { body: Bytes::from(reason.to_owned()), ..Answer::default() }
}

/// One exchange on a connection of its own, with exactly these headers (beside `host`) and bytes.
pub async fn exchange(url: &str, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let wire = HttpWire::new(url, Revision::MODERN);
    let headers: Headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let method: Method = method.parse().expect("an HTTP method");
    let exchange = async { wire.exchange(method, &headers, Bytes::from(body.to_owned()), &Tape::default()).await };
    crate::within::within("an HTTP exchange", exchange).await.unwrap_or_else(|error| failed(&error))
}
