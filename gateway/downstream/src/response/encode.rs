//! What is remembered of a client's request, and how what comes back on it is written in the client's words.

use super::status;
use crate::call::refusal::Reason;
use crate::call::reply::{Change, Event, Failure, Outcome};
use crate::call::{Call, ListenFilter, LogLevel};
use crate::memory::budget::Charge;
use crate::memory::{Composed, charged};
use crate::protocol::frame::message::Id;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::frame::{Method, rpc_error};
use crate::protocol::meta::{Meta, SERVER_INFO, SUBSCRIPTION_ID};
use crate::protocol::revision::Revision;
use crate::protocol::translate::failure::Told;
use crate::protocol::value::{Edit, Key, Object};
use crate::protocol::{frame, json, translate};
use crate::response::dialect_2024_10_07;
use crate::runtime::aside;
use crate::secrets::visible;
use bytes::{BufMut, Bytes};
use http::StatusCode;
use std::sync::Arc;

/// A result that no cache shows to anybody else.
const PRIVATE: &[u8] = b"\"private\"";

/// The hop's part of a request: everything that the [`Call`] does not carry and the answer needs.
#[derive(Debug)]
pub(crate) struct ResponseEncoder {
    /// Echoed exactly.
    pub(crate) id: Id,
    pub(crate) method: Method,
    /// The revision that the client reads.
    pub(crate) revision: Revision,
    /// The URI of a read, in the client's words.
    uri: Option<Box<str>>,
    /// The name of a tool or prompt, raw, in the client's words.
    name: Option<Bytes>,
    /// The client's own progress token, raw.
    token: Option<Bytes>,
    /// Why the client cannot be asked on this request, as the end of a sentence; `None` where it can.
    pub(crate) mute: Option<&'static str>,
    /// The level from which on log messages are passed; `None` means all to a legacy client and none to a modern one.
    level: Option<LogLevel>,
    /// Whether results are told in the dialect of 2024-10-07.
    pub(crate) is_dialect: bool,
    /// Whether the caller is somebody: what it reads may be nothing to others, whatever an upstream says that knows no roles of ours.
    is_somebody: bool,
}

/// The end of a request: a whole response, and the status it has over HTTP where nothing was sent before.
#[derive(Debug)]
pub(crate) struct EncodedResponse {
    pub(crate) frame: Composed,
    pub(crate) status: StatusCode,
    /// So many seconds until the same may be asked again, where that is known.
    pub(crate) retry_after: Option<u64>,
    /// Counts the frame, where it is large, until it is written.
    pub(crate) charge: Charge,
}

impl EncodedResponse {
    /// An answer that is not large, or not counted yet.
    pub(crate) fn new(frame: impl Into<Composed>, status: StatusCode) -> Self {
        Self { frame: frame.into(), status, retry_after: None, charge: Charge::default() }
    }

    /// The frame in one line, counted for as long as it is kept.
    pub(crate) fn line(self) -> Bytes {
        charged(frame::message::one_line(self.frame), self.charge)
    }
}

impl ResponseEncoder {
    /// Remembers what a call leaves behind; `token` is the client's.
    pub(crate) fn of(id: Id, call: &Call, token: Option<Bytes>) -> Self {
        let uri = (call.method == Method::ResourcesRead).then(|| call.params.text(Key::Uri)).flatten();
        Self {
            id,
            method: call.method.clone(),
            revision: call.revision(),
            uri: uri.map(|uri| uri.into()),
            name: call.params.share(Key::Name),
            token,
            mute: None,
            level: call.log_level,
            is_dialect: false,
            is_somebody: !call.caller.principal.is_anonymous(),
        }
    }

    /// The client's progress token, raw, where this answer gives a task in the handshake's form; and what that is called.
    pub(crate) fn task_token(&self, result: &Object) -> Option<(Box<str>, Bytes)> {
        let token = self.token.as_ref().filter(|_| self.method == Method::ToolsCall)?;
        if result.get(Key::Content).is_some_and(|content| content != b"[]") {
            return None;
        }
        let id = json::get(result.find("task")?, "taskId").and_then(json::unquote)?;
        Some((id.into(), token.clone()))
    }

    /// The request in words: the method, and the name or URI in it.
    pub(crate) fn what(&self) -> String {
        let method = self.method.as_str();
        let named = self.name.as_deref().and_then(json::unquote);
        match named.as_deref().or(self.uri.as_deref()) {
            Some(name) => format!("`{method}` of `{}`", visible(&name.chars().take(200).collect::<String>())),
            None => format!("`{method}`"),
        }
    }

    /// The hop's part of an `initialize`, which agreed on `revision`.
    pub(crate) fn handshake(id: Id, revision: Revision) -> Self {
        let method = Method::Initialize;
        Self {
            id,
            method,
            revision,
            uri: None,
            name: None,
            token: None,
            mute: None,
            level: None,
            is_dialect: false,
            is_somebody: false,
        }
    }

    /// The same for a client that speaks the dialect of 2024-10-07, or not.
    pub(crate) fn in_dialect(self, is_dialect: bool) -> Self {
        Self { is_dialect, ..self }
    }

    /// The notification that an event becomes; `None` where this client did not ask for it.
    pub(crate) fn event(&self, event: Event, from: Revision) -> Option<Vec<u8>> {
        match event {
            Event::Progress(params) => self.progress(&params, from),
            Event::Log(level, params) => {
                let wanted = self.level.map_or(!self.revision.is_modern(), |least| level >= least);
                (wanted && self.method != Method::Listen).then(|| notification(&Method::Message, params.raw()))
            }
            Event::Change(change) => Some(tagged_change(&change, self.id.raw())),
            // Whoever reads the reply asks, or lets the answer drop.
            Event::Ask(_) => None,
        }
    }

    fn progress(&self, params: &Object, from: Revision) -> Option<Vec<u8>> {
        let token = self.token.as_ref().filter(|_| self.method != Method::Listen)?;
        let written = translate::params(&Method::Progress, params, from, self.revision);
        let params = written.as_ref().unwrap_or(params);
        let mut out = Vec::with_capacity(params.raw().len() + 96);
        frame::message::open_notification(&Method::Progress, &mut out);
        params.write(&[(Key::ProgressToken, Edit::Set(token))], &mut out);
        frame::message::close(&mut out);
        Some(frame::message::one_line(out))
    }

    /// The response that an outcome becomes; `owner` is the upstream that had the call.
    pub(crate) fn answer(
        &self,
        outcome: Outcome,
        from: Revision,
        owner: Option<&Arc<str>>,
        identity: &[u8],
    ) -> EncodedResponse {
        match outcome {
            Outcome::Complete(_) if self.method == Method::Listen => self.listen_end(identity),
            Outcome::Complete(result) => self.result(&result, from, identity),
            Outcome::InputRequired(result) if self.revision.is_modern() => self.result(&result, from, identity),
            Outcome::InputRequired(_) => {
                let upstream = owner.map_or("an upstream", |name| name);
                self.cannot(&format!(
                    "The upstream `{upstream}` asks for input, and this client cannot be asked through the gateway."
                ))
            }
            Outcome::Error(Failure::Refused(refusal))
                if matches!(refusal.reason, Reason::Login | Reason::Held)
                    && refusal.page.is_none()
                    && self.method == Method::ToolsCall =>
            {
                self.result(&refusal.to_tool_result(), Revision::V2025_11_25, identity)
            }
            Outcome::Error(Failure::Refused(refusal)) => {
                let answer = self.error(&refusal.to_rpc(self.revision));
                let Some((status, retry_after)) = status::of_refused_call(&refusal.reason) else { return answer };
                EncodedResponse { status, retry_after, ..answer }
            }
            Outcome::Error(Failure::Upstream(rpc)) => {
                let is_lacking = rpc.code() == Some(rpc_error::MISSING_CAPABILITY) && !self.revision.is_modern();
                if let Some(mute) = self.mute.filter(|_| is_lacking) {
                    let what = rpc.message().unwrap_or_default();
                    return self.cannot(&format!(
                        "The upstream needs a capability that this client does not have: {what}, {mute}"
                    ));
                }
                self.told(translate::failure::failure(&self.method, &rpc, self.uri.as_deref(), from, self.revision))
            }
        }
    }

    /// The graceful end of a listen call.
    pub(crate) fn listen_end(&self, identity: &[u8]) -> EncodedResponse {
        let mut result = format!("{{\"resultType\":\"complete\",\"_meta\":{{\"{SUBSCRIPTION_ID}\":").into_bytes();
        result.extend_from_slice(self.id.raw());
        result.extend_from_slice(format!(",\"{SERVER_INFO}\":").as_bytes());
        result.extend_from_slice(identity);
        result.extend_from_slice(b"}}");
        EncodedResponse::new(frame::message::result(self.id.raw(), &result), StatusCode::OK)
    }

    /// How many bytes an outcome takes, at most, while it is put into the client's words and written.
    pub(crate) fn composed_max(&self, outcome: &Outcome, from: Revision) -> usize {
        match outcome {
            Outcome::Complete(result) | Outcome::InputRequired(result) if Composed::is_large(result.raw().len()) => {
                let told = translate::composed_max(&self.method, result, from, self.revision);
                let is_dressed = self.is_dialect && self.method == Method::ToolsCall;
                // Its text, once more as one, quoted, and in the result; and that as it is written.
                if is_dressed { told + 4 * result.raw().len() } else { told }
            }
            outcome => outcome.bytes(),
        }
    }

    fn result(&self, result: &Object, from: Revision, identity: &[u8]) -> EncodedResponse {
        let dressed = self.is_dialect.then(|| dialect_2024_10_07::dress(&self.method, result));
        let result = dressed.as_ref().unwrap_or(result);
        let frame = aside(result.raw().len(), || {
            let told = translate::result(&self.method, result, from, self.revision);
            let result = told.as_ref().unwrap_or(result);
            let own = self.is_own(result).then(|| result.clone().set(Key::CacheScope, PRIVATE));
            let result = own.as_ref().unwrap_or(result);
            let bytes = result.raw().len() + self.id.raw().len();
            // A buffer that is filled to its end becomes the response's body without one more allocation.
            let adds = match from == self.revision && !from.is_modern() {
                true => frame::message::RESULT_AROUND,
                false => identity.len() + translate::RESULT_ADDS,
            };
            Composed::of(bytes + adds, |out| self.write(result, from, identity, out))
        });
        EncodedResponse::new(frame, StatusCode::OK)
    }

    /// Whether a result is for everybody by the words of its upstream, and for its caller alone here.
    fn is_own(&self, result: &Object) -> bool {
        let is_read = self.is_somebody && self.method == Method::ResourcesRead && self.revision.is_modern();
        is_read && result.get(Key::CacheScope).is_some_and(|scope| scope != PRIVATE)
    }

    fn write<B: BufMut>(&self, result: &Object, from: Revision, identity: &[u8], out: &mut B) {
        frame::message::open_result(self.id.raw(), out);
        translate::write_result(&self.method, result, (from, self.revision), identity, out);
        frame::message::close(out);
    }

    /// A tool says it to the model, everything else to the program.
    pub(crate) fn cannot(&self, why: &str) -> EncodedResponse {
        self.told(translate::failure::cannot(&self.method, why))
    }

    fn told(&self, told: Told) -> EncodedResponse {
        match told {
            Told::Error(rpc) => self.error(&rpc),
            Told::Result(result) => {
                EncodedResponse::new(frame::message::result(self.id.raw(), result.raw()), StatusCode::OK)
            }
        }
    }

    fn error(&self, rpc: &RpcError) -> EncodedResponse {
        let status = status::of_answer(rpc.code(), self.revision);
        EncodedResponse::new(frame::message::error(Some(self.id.raw()), rpc.raw()), status)
    }
}

/// A whole notification in one line.
fn notification(method: &Method, params: &[u8]) -> Vec<u8> {
    frame::message::one_line(Vec::from(frame::message::notification(method, params)))
}

/// A change as a legacy client is told it; `None` for what only listen calls hear.
pub(crate) fn plain_change(change: &Change) -> Option<Vec<u8>> {
    let params = match change {
        Change::Acknowledged(_) | Change::Task(_) => return None,
        Change::Updated(uri) => format!("{{\"uri\":{}}}", json::quote(uri)),
        Change::Tools | Change::Prompts | Change::Resources => "{}".to_owned(),
    };
    Some(notification(&change_method(change), params.as_bytes()))
}

/// A log message with no call of its own.
pub(crate) fn plain_log(params: &Object) -> Vec<u8> {
    notification(&Method::Message, params.raw())
}

/// A change as a listen call hears it: tagged with the raw id of that call.
fn tagged_change(change: &Change, id: &[u8]) -> Vec<u8> {
    if let Change::Task(params) = change {
        return notification(&Method::TaskChanged, &retagged(params, id));
    }
    let mut params = format!("{{\"_meta\":{{\"{SUBSCRIPTION_ID}\":").into_bytes();
    params.extend_from_slice(id);
    params.push(b'}');
    match change {
        Change::Acknowledged(filter) => params.extend(format!(",\"notifications\":{}", filter.to_json()).bytes()),
        Change::Updated(uri) => params.extend(format!(",\"uri\":{}", json::quote(uri)).bytes()),
        Change::Tools | Change::Prompts | Change::Resources | Change::Task(_) => {}
    }
    params.push(b'}');
    notification(&change_method(change), &params)
}

/// Parameters that were tied to a listen call of ours, tied to the one with this raw id.
fn retagged(params: &Object, id: &[u8]) -> Bytes {
    let rest = params.share(Key::Meta).and_then(|raw| Meta::parse(&raw).ok()).map(|meta| meta.rest).unwrap_or_default();
    let comma: &[u8] = if rest.is_empty() { b"" } else { b"," };
    let meta = [b"{\"", SUBSCRIPTION_ID.as_bytes(), b"\":", id, comma, &rest, b"}"].concat();
    params.with(&[(Key::Meta, Edit::Set(&meta))])
}

fn change_method(change: &Change) -> Method {
    match change {
        Change::Acknowledged(ListenFilter { .. }) => Method::Acknowledged,
        Change::Tools => Method::ToolsChanged,
        Change::Prompts => Method::PromptsChanged,
        Change::Resources => Method::ResourcesChanged,
        Change::Updated(_) => Method::ResourceUpdated,
        Change::Task(_) => Method::TaskChanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(revision: Revision, level: Option<LogLevel>) -> ResponseEncoder {
        let id = Id::from_raw(Bytes::from_static(b"1")).unwrap();
        ResponseEncoder { method: Method::ToolsCall, level, ..ResponseEncoder::handshake(id, revision) }
    }

    #[test]
    fn messages_are_passed_at_and_above_the_level_that_was_asked_for() {
        use LogLevel::{Debug, Error, Warning};
        use Revision::{V2025_11_25 as Legacy, V2026_07_28 as Modern};
        for (revision, asked_for, level, is_passed) in [
            (Modern, None, Error, false),
            (Modern, Some(Warning), Warning, true),
            (Modern, Some(Error), Warning, false),
            (Legacy, None, Debug, true),
            (Legacy, Some(Error), Debug, false),
        ] {
            let event = Event::Log(level, Object::empty());
            assert_eq!(asked(revision, asked_for).event(event, revision).is_some(), is_passed);
        }
    }

    #[test]
    fn progress_without_a_token_is_nobodys() {
        let event = Event::Progress(Object::empty());
        assert!(asked(Revision::V2025_11_25, None).event(event, Revision::V2025_11_25).is_none());
    }

    #[test]
    fn pages_to_visit_pass_where_they_are_known_and_are_written_out_elsewhere() {
        let data =
            r#"{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://h/?a=1","message":"Sign in"}]}"#;
        let rpc = RpcError::new(crate::protocol::frame::rpc_error::URL_ELICITATION_REQUIRED, "Not yet", Some(data));
        let answer = |method, revision| {
            let asked = ResponseEncoder { method, ..asked(revision, None) };
            let outcome = Outcome::Error(Failure::Upstream(rpc.clone()));
            String::from_utf8(asked.answer(outcome, Revision::V2025_11_25, None, b"{}").frame.as_ref().to_vec())
                .unwrap()
        };
        assert!(answer(Method::ToolsCall, Revision::V2025_11_25).ends_with(&format!("\"error\":{}}}", text_of(&rpc))));
        let words = r"Not yet\nSign in: https://h/?a=1";
        let told = answer(Method::ToolsCall, Revision::V2025_06_18);
        assert!(told.contains(words) && told.contains("\"isError\":true"), "{told}");
        let told = answer(Method::PromptsGet, Revision::V2024_11_05);
        assert!(told.contains(words) && told.contains("\"code\":-32603"), "{told}");
    }

    fn text_of(rpc: &RpcError) -> &str {
        std::str::from_utf8(rpc.raw()).unwrap()
    }

    #[test]
    fn what_a_legacy_client_cannot_know_is_said_in_its_words() {
        let refuse = |method| {
            let asked = ResponseEncoder { method, ..asked(Revision::V2025_06_18, None) };
            let rpc = RpcError::new(crate::protocol::frame::rpc_error::MISSING_CAPABILITY, "sampling", None);
            let outcome = Outcome::Error(Failure::Upstream(rpc));
            String::from_utf8(asked.answer(outcome, Revision::V2026_07_28, None, b"{}").frame.as_ref().to_vec())
                .unwrap()
        };
        assert!(refuse(Method::ToolsCall).contains("\"isError\":true"));
        assert!(refuse(Method::PromptsGet).contains("\"code\":-32603"));
    }
}
