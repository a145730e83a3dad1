//! Handshake clients: what a frame of a session means, whichever transport it came by.

use crate::call::caller::trace::Trace;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::Reply;
use crate::call::{Call, LogLevel};
use crate::edge::Edge;
use crate::edge::client_era::invalid;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Body, Id};
use crate::protocol::meta::Meta;
use crate::protocol::payload::input;
use crate::protocol::value::{Key, Object};
use crate::questions::{Dialogue, LiveQuestions};
use crate::response::ResponseEncoder;
use crate::running::RunningCall;
use crate::session::client::Requester;
use crate::session::client::{Session, Stage};
use crate::session::{ForeignAnswer, SUBSCRIPTIONS_MAX, Subscribing, nothing};
use bytes::Bytes;
use std::sync::Arc;

/// What a request's transport leaves of the ways to its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Questions can be put on the request's own stream.
    Taken,
    /// The client reads a single answer, and nothing before it.
    Refused,
}

/// Makes the call of a session's request; what is refused here is answered like any other call.
pub(crate) fn request(
    edge: &Arc<Edge>,
    requester: &Requester,
    stream: Stream,
    (id, method, params, mut meta): (Id, Method, Object, Meta),
) -> RunningCall {
    let session = &requester.session;
    session.touch();
    session.reach(Stage::Used);
    let token_is_sound = meta.token_is_sound();
    let mute = mute(session, stream);
    let trace = Trace::of(&mut meta);
    let mut call = Call { trace, ..call(requester, method, own(params), meta.rest, meta.progress_token.is_some()) };
    if mute.is_some() {
        call.caller = requester.caller.mute().clone();
    }
    let mut asked = ResponseEncoder::of(id, &call, meta.progress_token);
    (asked.is_dialect, asked.mute) = (session.is_dialect, mute);
    let dialogue = call.method.is_long().then(|| LiveQuestions::new(session, &call));
    let open = match session.open.enter(&asked.id) {
        Ok(open) => open,
        Err(refusal) => {
            if refusal.reason == Reason::Busy {
                edge.refusals.turn_away("calls", &"the limit for one client is reached");
            }
            return RunningCall::refused(edge, asked, refusal);
        }
    };
    let reply = if token_is_sound {
        answer(edge, requester, call)
    } else {
        Err(invalid("`progressToken` must be an integer or a string of at most 1024 bytes"))
    };
    let reply = reply.unwrap_or_else(|refusal| Reply::refuse(asked.revision, refusal));
    let running = RunningCall::new(edge, asked, reply, Some(open));
    match dialogue {
        Some(asking) => running.asking(Dialogue::Live(asking)),
        None => running,
    }
}

/// Why nothing can be asked on the stream of a request, as the end of a sentence.
fn mute(session: &Session, stream: Stream) -> Option<&'static str> {
    match stream {
        _ if !session.lasts => {
            Some("and a client without a session cannot be asked (`server.session.required = false`)")
        }
        Stream::Refused => {
            Some("and this client cannot be asked: its request takes no event stream (`Accept: text/event-stream`)")
        }
        Stream::Taken => None,
    }
}

/// Parameters without what only stateless clients can say: it would be taken for an answer to a question.
fn own(params: Object) -> Object {
    if params.get(Key::InputResponses).is_none() && params.get(Key::RequestState).is_none() {
        return params;
    }
    input::retry(&params, &[], None)
}

/// Takes a response. One to a question that this process has not put is refused.
pub(crate) fn response(session: &Session, id: Option<&Id>, body: Body) -> Result<(), Refusal> {
    session.touch();
    session.outgoing.answer(id, body).map_err(|ForeignAnswer| {
        let why = "this answer belongs to no question of this instance in this session: another replica, or an earlier run of the \
                   gateway, has put the question, and it cannot be answered here; route all requests of a session to one replica \
                   (sticky sessions), and send the call again";
        Refusal::new(Reason::InvalidRequest, why)
    })
}

/// Takes a session's notification.
pub(crate) fn notification(edge: &Edge, requester: &Requester, method: Method, params: Object, mut meta: Meta) {
    let session = &requester.session;
    session.touch();
    match method {
        Method::Cancelled => {
            // Of a call that has ended, or never was: that is a race, not a fault.
            if let Some(id) = params.get(Key::RequestId) {
                session.open.cancel(id);
            }
        }
        // What belongs to this hop alone.
        Method::Initialized => session.reach(Stage::Initialized),
        Method::Progress => {}
        method => {
            let trace = Trace::of(&mut meta);
            let call = Call { is_notification: true, trace, ..call(requester, method, params, meta.rest, false) };
            drop(edge.call(call));
        }
    }
}

/// What the edge answers itself, and what goes on to the handler.
fn answer(edge: &Edge, requester: &Requester, call: Call) -> Result<Reply, Refusal> {
    let session = &requester.session;
    let revision = session.revision();
    let empty = || Reply::complete(revision, nothing());
    match &call.method {
        Method::Ping => Ok(empty()),
        Method::SetLevel => {
            let level = call.params.get(Key::Level).and_then(LogLevel::parse);
            let why = "`level` must be one of debug, info, notice, warning, error, critical, alert, emergency";
            Ok(Subscribing::once_written(revision, session.set_level(edge, level.ok_or_else(|| invalid(why))?)))
        }
        Method::ResourcesSubscribe | Method::ResourcesUnsubscribe if !session.lasts => {
            Err(Refusal::new(Reason::UnknownMethod, "subscriptions need a session, and this gateway issues none"))
        }
        Method::ResourcesSubscribe => {
            let uri = uri(&call)?;
            if session.notices.is_full() {
                let why =
                    format!("a session may be subscribed to {SUBSCRIPTIONS_MAX} resources; unsubscribe from some");
                return Err(Refusal::new(Reason::Busy, why));
            }
            Ok(Reply::live(Subscribing::new(edge, requester, uri)))
        }
        Method::ResourcesUnsubscribe => {
            let was_subscribed = session.notices.forget(&uri(&call)?);
            Ok(Subscribing::once_written(revision, was_subscribed.then(|| session.wishes_changed()).flatten()))
        }
        Method::Initialize => Err(Refusal::new(Reason::InvalidRequest, "this session is initialized already")),
        method if is_foreign(method) => {
            let why = format!("`{}` is not a method of revision {revision}", method.as_str());
            Err(Refusal::new(Reason::UnknownMethod, why))
        }
        _ => Ok(edge.call(call)),
    }
}

/// Methods that only later revisions have, or only the other side may ask.
fn is_foreign(method: &Method) -> bool {
    method.is_notification()
        || matches!(
            method,
            Method::Discover | Method::Listen | Method::Sampling | Method::RootsList | Method::Elicitation
        )
}

fn uri(call: &Call) -> Result<Arc<str>, Refusal> {
    call.params.text(Key::Uri).map(Into::into).ok_or_else(|| invalid("`uri` must be a string"))
}

fn call(requester: &Requester, method: Method, params: Object, meta: Bytes, progress: bool) -> Call {
    Call {
        method,
        params,
        meta,
        caller: requester.caller.caller().clone(),
        progress,
        log_level: requester.session.level(),
        is_notification: false,
        param_headers: None,
        target_name: None,
        public: None,
        bound_to: None,
        trace: None,
    }
}
