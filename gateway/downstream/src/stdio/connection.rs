//! One stdio client: its frames routed in order, its calls each answered when ready.

use super::parting::Parting;
use super::writer::Outlet;
use crate::call::refusal::{Reason, Refusal};
use crate::edge::client_era::Who;
use crate::edge::open_calls::OpenCalls;
use crate::edge::{Edge, client_era, handshake};
use crate::eras::{Batch, Stream, batch, legacy, modern};
use crate::metrics;
use crate::metrics::messages;
use crate::protocol::frame;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Frame, Id};
use crate::protocol::framing::Untaken;
use crate::protocol::meta::Meta;
use crate::protocol::meta::trace::Carried;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::spelling::Spots;
use crate::protocol::value::{Key, Object};
use crate::response::ResponseEncoder;
use crate::response::steps::{Cut, StepQueue, Turn};
use crate::running::RunningCall;
use crate::runtime::{Tasks, aside};
use crate::session::client::Session;
use crate::session::table::new_id;
use bytes::Bytes;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many answers may be under way; the next frame is read when there is room again.
const UNDER_WAY_MAX: usize = 4096;

/// Who is at the other end of a connection.
pub(crate) struct Client {
    pub(crate) who: Who,
    /// What its session is called.
    pub(crate) id: Arc<str>,
    /// What its transport is called in the metrics.
    pub(crate) transport: &'static str,
}

impl Client {
    /// The one on stdin and stdout.
    pub(super) fn stdio() -> Self {
        Self { who: Who::anonymous(), id: "stdio".into(), transport: "stdio" }
    }

    /// One of those that have joined a gateway which runs for them all.
    pub(super) fn joined() -> Self {
        Self { who: Who::anonymous(), id: new_id().into(), transport: "shared" }
    }
}

/// A client to which frames go one after the other, whose frames come one after the other.
pub(crate) struct Connection {
    edge: Arc<Edge>,
    outlet: Outlet,
    /// A task for each call that was not ready at once.
    calls: Tasks,
    /// Told to end when there is no more time: what still runs is answered as cut off.
    cut: Tasks,
    /// Told to end when the connection does: listen calls end in good order then, and notices stop.
    listens: Tasks,
    slots: Arc<Semaphore>,
    client: Client,
    /// The open calls of both eras.
    open: Arc<OpenCalls>,
    /// Of a client that has shaken hands.
    session: Option<Arc<Session>>,
    /// Whether the session's notices are being written.
    is_told: bool,
    /// Nothing is begun any more.
    is_ending: bool,
    /// The trace context of what brought the line that is taken now.
    ambient: Option<Box<Carried>>,
}

impl Connection {
    /// Its tasks are of the level `calls`; once `cut` is told to end, what still runs is answered as cut off.
    pub(crate) fn new(edge: Arc<Edge>, outlet: Outlet, calls: Tasks, cut: Tasks, client: Client) -> Self {
        Self {
            edge,
            outlet,
            listens: calls.child(),
            calls,
            cut,
            slots: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
            client,
            open: Arc::new(OpenCalls::on_one_pipe()),
            session: None,
            is_told: false,
            is_ending: false,
            ambient: None,
        }
    }

    /// Whether another line can be taken now.
    pub(crate) fn has_room(&self) -> bool {
        self.slots.available_permits() > 0
    }

    /// From now on its frames come with the rights of this request.
    pub(crate) fn take_rights(&mut self, who: &Who) {
        let own = &mut self.client.who;
        (own.principal, own.grants) = (who.principal.clone(), who.grants.clone());
        self.session.iter().for_each(|session| drop(session.requester_with(who)));
    }

    /// Resolves when there is room for another line.
    pub(crate) async fn room(&self) {
        // It never closes.
        let _given_back = self.slots.acquire().await;
    }

    /// Takes one line that a request with this trace context has brought.
    pub(crate) fn take_traced(&mut self, text: Bytes, ambient: Option<Box<Carried>>) {
        self.ambient = ambient;
        self.take(text);
        self.ambient = None;
    }

    /// Takes one line. Calls are handed over here, in order; what they come to is awaited elsewhere.
    pub(crate) fn take(&mut self, text: Bytes) {
        if Frame::is_batch(&text) {
            return self.batch(&text);
        }
        let mut noted = Spots::default();
        let read = aside(text.len(), || Frame::noting(&text, &mut noted));
        match read.inspect(|_| messages::CLIENT.received()) {
            Ok(Frame::Request { id, .. }) if self.is_ending => self.refuse(Some(&id), &ending()),
            Ok(Frame::Request { id, method, params }) => self.request(id, method, (params, &noted)),
            Ok(Frame::Notification { method, params }) => self.notification(method, (params, &noted)),
            Ok(Frame::Response { id, body: frame::message::Body::Neither }) => {
                // Where it was meant to answer a question, nothing better will come.
                self.response(id.as_ref(), frame::message::Body::Neither);
                self.refuse(id.as_ref(), &client_era::meaningless());
            }
            Ok(Frame::Response { id, body }) => self.response(id.as_ref(), body),
            Err(fault) => {
                let id = fault.id.clone();
                self.refuse(id.as_ref(), &client_era::unread(fault));
            }
        }
    }

    /// Says that a line, or a message, was not taken.
    pub(crate) fn refuse_line(&mut self, why: Untaken, max: usize) {
        let refusal = match why {
            Untaken::TooLong => {
                let why = format!("a line is longer than {max} bytes, the limit set by `server.max_body`");
                Refusal::new(Reason::InvalidRequest, why)
            }
            Untaken::NoRoom => Refusal::new(Reason::Busy, format!("a message was dropped: {why}")),
        };
        self.refuse(None, &refusal);
    }

    /// Begins nothing any more; listen calls are ended now, and nobody is asked any more. A client that is still there is told
    /// so, and is heard further: it may answer what it was asked, and withdraw what it has asked for.
    pub(crate) fn retire(&mut self, is_there: bool) {
        self.is_ending = true;
        if let Some(session) = self.session.clone() {
            if is_there {
                // What was asked on behalf of an open call is withdrawn by that call.
                for frame in session.outgoing.retire() {
                    self.write(frame.into());
                }
            } else {
                session.outgoing.close();
            }
        }
        self.listens.end();
    }

    /// Ends the session.
    pub(crate) fn close(&mut self) {
        if let Some(session) = self.session.take() {
            session.end();
        }
    }

    /// Resolves when nothing runs any more.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let (calls, listens) = (self.calls.clone(), self.listens.clone());
        async move {
            calls.ended().await;
            listens.ended().await;
        }
    }

    fn response(&self, id: Option<&Id>, body: frame::message::Body) {
        if let Some(session) = &self.session {
            // A response has no answer here, and the session is of this connection alone.
            let _refused = legacy::response(session, id, body);
        }
    }

    fn request(&mut self, id: Id, method: Method, (params, noted): (Object, &Spots)) {
        if let Err(refusal) = self.open.admits(&id) {
            return self.refuse(Some(&id), &refusal);
        }
        let running = match self.see(&method, (&params, noted)) {
            Ok((Era::Legacy, _)) if batch::is_method(&method) && self.session.is_some() => {
                return self.batch_method(&id, &params);
            }
            Ok((Era::Modern, meta)) => self.modern(&id, method, params, meta),
            Ok((Era::Legacy, meta)) => self.legacy(&id, method, params, meta),
            Err(refusal) => Err(refusal),
        };
        match running {
            Ok(running) => self.run(Parting::new(running.listening_until(&self.listens))),
            Err(refusal) => self.refuse(Some(&id), &refusal),
        }
    }

    fn see(&self, method: &Method, params: (&Object, &Spots)) -> Result<(Era, Meta), Refusal> {
        let (era, mut meta) = client_era::see(method, params, None)?;
        meta.ambient = self.ambient.clone();
        Ok((era, meta))
    }

    fn modern(&mut self, id: &Id, method: Method, params: Object, meta: Meta) -> Result<RunningCall, Refusal> {
        let open = self.open.enter(id)?;
        modern::request(&self.edge, &self.client.who, (id.clone(), method, params, meta), None, Some(open))
    }

    fn legacy(&mut self, id: &Id, method: Method, params: Object, meta: Meta) -> Result<RunningCall, Refusal> {
        match &self.session {
            Some(session) => {
                let request = (id.clone(), method, params, meta);
                let running = legacy::request(&self.edge, &session.requester(), Stream::Taken, request);
                self.tell();
                Ok(running)
            }
            None if method == Method::Initialize => self.initialize(id, &params, meta),
            None if method == Method::Ping => {
                let alone =
                    Arc::new(Session::single(self.client.who.clone(), Revision::NEWEST_LEGACY, &self.edge.budget));
                Ok(legacy::request(&self.edge, &alone.requester(), Stream::Taken, (id.clone(), method, params, meta)))
            }
            None => {
                let why = "send `initialize` first, or name a revision in `_meta` as stateless clients do";
                Err(Refusal::new(Reason::InvalidRequest, why))
            }
        }
    }

    fn initialize(&mut self, id: &Id, params: &Object, meta: Meta) -> Result<RunningCall, Refusal> {
        let open = self.open.enter(id)?;
        let asks = handshake::read(params)?;
        let asked = ResponseEncoder::handshake(id.clone(), asks.revision).in_dialect(asks.is_dialect);
        let mut session = {
            let Client { who, id, .. } = &self.client;
            Session::new(id.clone(), who.clone(), asks, (self.edge.label, 0), &self.edge.budget)
        };
        session.open = self.open.clone();
        session.notices.listen(&self.edge, &session.caller(), None);
        let reply = handshake::answer(&self.edge, &session.caller(), meta);
        self.session = Some(Arc::new(session));
        if self.client.transport == "stdio" {
            metrics::sessions("stdio").set(1.0);
        }
        Ok(RunningCall::new(&self.edge, asked, reply, Some(open)))
    }

    fn notification(&mut self, method: Method, (params, noted): (Object, &Spots)) {
        // Both eras withdraw calls in the same words, and stateless ones may leave the revision out.
        if method == Method::Cancelled {
            if let Some(id) = params.get(Key::RequestId) {
                self.open.cancel(id);
            }
            return;
        }
        match (self.see(&method, (&params, noted)), &self.session) {
            // What is wrong with a notification cannot be answered.
            (Err(_), _) | (Ok((Era::Legacy, _)), None) => {}
            (Ok((Era::Modern, meta)), _) => {
                let _unanswered = modern::notification(&self.edge, &self.client.who, method, params, meta);
            }
            (Ok((Era::Legacy, meta)), Some(session)) => {
                legacy::notification(&self.edge, &session.requester(), method, params, meta);
                self.tell();
            }
        }
    }

    fn batch(&mut self, text: &Bytes) {
        let revision = self.session.as_ref().map_or(Revision::NEWEST_LEGACY, |session| session.revision());
        match (batch::Frames::read(text).and_then(|frames| frames.judge(revision)), &self.session) {
            (Ok(array), Some(session)) => {
                let array = if self.is_ending { array.without_requests(ending) } else { array };
                let array = array.caused_by(self.ambient.as_deref());
                if let Some(batch) = Batch::of_array(&self.edge, &session.requester(), Stream::Taken, array) {
                    self.run(batch);
                }
            }
            (Ok(_), None) => {}
            (Err(refusal), _) => self.refuse(None, &refusal),
        }
    }

    fn batch_method(&mut self, id: &Id, params: &Object) {
        let Some(session) = self.session.clone() else { return };
        self.tell();
        match batch::begin(&self.edge, &session.requester(), Stream::Taken, (id, params)) {
            Ok(batch) => self.run(batch),
            Err(refusal) => self.refuse(Some(id), &refusal),
        }
    }

    /// Starts to write the session's notices: not before the client has gone on after the handshake.
    fn tell(&mut self) {
        let Some(session) = self.session.clone().filter(|_| !std::mem::replace(&mut self.is_told, true)) else {
            return;
        };
        let outlet = self.outlet.clone();
        let reader = session.notices.take_over();
        self.listens.spawn_until_end(async move {
            while let Some(frame) = std::future::poll_fn(|cx| session.notices.poll_next(reader, cx)).await {
                if outlet.send(frame.into()).await.is_err() {
                    return;
                }
            }
        });
    }

    fn refuse(&mut self, id: Option<&Id>, refusal: &Refusal) {
        let revision = self.session.as_ref().map_or(Revision::NEWEST_MODERN, |session| session.revision());
        let text = frame::message::error(id.map(|id| &id.raw()[..]), refusal.to_rpc(revision).raw());
        self.write(text);
    }

    /// Answers at once what is ready at once; the rest gets a task.
    fn run(&mut self, mut work: impl Cut) {
        let turn = work.poll_turn(&mut Context::from_waker(Waker::noop()));
        let first = match turn {
            Poll::Ready(Turn::End(answer)) => return self.write(answer.line()),
            Poll::Ready(Turn::Cancelled) => return,
            Poll::Ready(Turn::Event(frame)) => Some(frame),
            Poll::Pending => None,
        };
        let (slot, outlet, cut) = (self.slot(), self.outlet.clone(), self.cut.clone());
        self.calls.spawn_until_end(async move {
            let _slot = slot;
            let is_done = tokio::select! {
                biased;
                () = drive(&mut work, first, &outlet) => true,
                () = cut.ending() => false,
            };
            // The words for one that was cut off are made for no other.
            if !is_done && let Some(answer) = work.cut() {
                let _unread = outlet.send(answer.line()).await;
            }
        });
    }

    /// Queues a frame, and never waits for a host that does not read: it may have more to say, or go.
    fn write(&mut self, frame: Bytes) {
        if let Err(tokio::sync::mpsc::error::TrySendError::Full(frame)) = self.outlet.try_send(frame) {
            let (slot, outlet) = (self.slot(), self.outlet.clone());
            self.calls.spawn_until_end(async move {
                let _slot = slot;
                let _unread = outlet.send(frame).await;
            });
        }
    }

    /// Taken where there is one: whoever reads has waited for room, and the few frames that one line may come to are not lost.
    fn slot(&self) -> Option<OwnedSemaphorePermit> {
        self.slots.clone().try_acquire_owned().ok()
    }
}

/// What is asked for when nothing is begun any more.
fn ending() -> Refusal {
    let why = "the gateway is shutting down; nothing was run";
    Refusal::new(Reason::Unavailable, why)
}

/// Writes what a call comes to.
async fn drive(work: &mut impl StepQueue, first: Option<Vec<u8>>, outlet: &Outlet) {
    let mut turn = first.map(Turn::Event);
    loop {
        let next = match turn.take() {
            Some(turn) => turn,
            None => work.turn().await,
        };
        let sent = match next {
            Turn::Event(frame) => outlet.send(frame.into()).await,
            Turn::End(answer) => return drop(outlet.send(answer.line()).await),
            Turn::Cancelled => return,
        };
        if sent.is_err() {
            return;
        }
    }
}
