//! Hearing of changes, the way that a client's revision and transport have for it.

use std::sync::Arc;

use hyper::Method;

use crate::client::stream::EventStream;
use crate::client::{Client, Open, Request, Wire};
use crate::frame::{Frame, quote};
use crate::tape::Tape;

/// An ear for changes; closed when dropped.
pub struct Changes<'a> {
    /// What was heard.
    pub heard: Arc<Tape<Frame>>,
    /// The listen call of a stateless client.
    pub listen: Option<Open<'a>>,
    stream: Option<EventStream>,
}

impl Client {
    /// Begins to listen for changed lists, and for updates of these resources.
    pub async fn listen(&self, uris: &[&str]) -> Changes<'_> {
        if self.revision.is_modern() {
            return self.listen_by_call(uris).await;
        }
        let stream = match &self.wire {
            Wire::Stdio(_) => None,
            Wire::Http(wire) => {
                let mut headers = wire.session();
                headers.push(("accept".into(), "text/event-stream".into()));
                let stream = EventStream::open(wire, Method::GET, &headers, "", self.notices.clone()).await;
                assert_eq!(stream.status, 200, "a GET stream opens");
                Some(stream)
            }
        };
        for uri in uris {
            let subscribed =
                self.request(Request::new("resources/subscribe", &format!("{{\"uri\":{}}}", quote(uri)))).await;
            assert_eq!(subscribed.result(), "{}");
        }
        Changes { heard: self.notices.clone(), listen: None, stream }
    }

    async fn listen_by_call(&self, uris: &[&str]) -> Changes<'_> {
        let uris = uris.iter().map(|uri| quote(uri)).collect::<Vec<_>>().join(",");
        let mut filter =
            "\"toolsListChanged\":true,\"promptsListChanged\":true,\"resourcesListChanged\":true".to_owned();
        if !uris.is_empty() {
            filter.push_str(&format!(",\"resourceSubscriptions\":[{uris}]"));
        }
        self.listen_by(Request::new("subscriptions/listen", &format!("{{\"notifications\":{{{filter}}}}}"))).await.0
    }

    /// Makes a listen call of a stateless client; gives the acknowledgement too.
    pub async fn listen_by(&self, request: Request) -> (Changes<'_>, Frame) {
        let listen = self.start(request).await;
        let heard = listen.notices.clone();
        let first = heard.wait("the listen is acknowledged", |frame| Some(frame.clone())).await;
        assert!(
            first.is_notice("notifications/subscriptions/acknowledged"),
            "an acknowledgement comes first: {first:?}"
        );
        let tag = first.meta("io.modelcontextprotocol/subscriptionId");
        assert_eq!(tag.map(|raw| raw.get().to_owned()).as_deref(), Some(listen.id.as_str()), "its tag");
        (Changes { heard, listen: Some(listen), stream: None }, first)
    }
}

impl Changes<'_> {
    /// Waits for a notification of this method that came after `mark`.
    pub async fn hears(&self, mark: usize, method: &str) -> Frame {
        let pick = |frame: &Frame| frame.is_notice(method).then(|| frame.clone());
        self.heard.wait_from(mark, &format!("the client hears {method}"), pick).await
    }

    /// Whether this ear is a GET stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.stream.is_some()
    }
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        if let Some(listen) = &self.listen
            && let Some(task) = &listen.task
        {
            task.abort();
        }
    }
}
