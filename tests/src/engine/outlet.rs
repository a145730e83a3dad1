//! Where an answer goes: the one channel between the interpreter and a transport.

use std::sync::Arc;

use tokio::sync::mpsc;

/// Something to send.
#[derive(Debug)]
pub enum Out {
    /// A notification that belongs to the call.
    Notice(String),
    /// Questions that belong to the call, in one write.
    Together(Vec<String>),
    /// An error that goes with this HTTP status; elsewhere an answer as any other.
    Refused(u16, String),
    /// The answer; nothing comes after it.
    Answer(String),
    /// Bytes as they are (stdio).
    Raw(Vec<u8>),
    /// An HTTP answer of its own kind.
    Status {
        /// The status code.
        status: u16,
        /// The content type; empty sends none.
        kind: String,
        /// The body.
        body: String,
        /// One more header.
        header: Option<(&'static str, String)>,
    },
    /// HTTP: the stream begins and ends here; with `true`, it can be resumed.
    Cut(bool),
}

/// The sending side.
#[derive(Clone)]
pub struct Outlet {
    sender: mpsc::Sender<Out>,
    closing_cancels: bool,
    session: String,
    given: Arc<str>,
}

impl Outlet {
    /// An outlet; `closing_cancels` says whether a reader that goes away means a cancel.
    #[must_use]
    pub fn new(closing_cancels: bool) -> (Outlet, mpsc::Receiver<Out>) {
        let (sender, receiver) = mpsc::channel(64);
        (Outlet { sender, closing_cancels, session: String::new(), given: Arc::from("") }, receiver)
    }

    /// An outlet onto a channel that is there already.
    #[must_use]
    pub fn onto(sender: mpsc::Sender<Out>) -> Outlet {
        Outlet { sender, closing_cancels: false, session: String::new(), given: Arc::from("") }
    }

    /// The same, into this session.
    #[must_use]
    pub fn of(mut self, session: &str) -> Outlet {
        self.session = session.into();
        self
    }

    /// The same for a request with this head.
    #[must_use]
    pub fn given(mut self, head: &str) -> Outlet {
        self.given = head.into();
        self
    }

    /// The head of the request; empty where there is none.
    #[must_use]
    pub fn head(&self) -> &str {
        &self.given
    }

    /// The session it leads into; empty where there is none.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Sends; to nobody when the reader has gone.
    pub async fn send(&self, out: Out) {
        let _ = self.sender.send(out).await;
    }

    /// Ends when the reader has gone and that means a cancel.
    pub(crate) async fn gone(&self) {
        if self.closing_cancels {
            self.sender.closed().await;
        } else {
            std::future::pending::<()>().await;
        }
    }
}
