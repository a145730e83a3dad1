//! What reads states, batches, hosts and origins here, as plain functions, for programs that test it.

use super::config::{Config, SigningKey};
use super::edge::Asks;
use super::edge::client_era::Who;
use super::listen::Rules;
use super::parking::seal::{Bond, Seal, State, Way};
use super::response::Label;
use super::session::table::SealedIds;
use crate::call::caller::Principal;
use crate::eras::batch;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use bytes::Bytes;
use std::net::SocketAddr;
use std::time::Duration;

/// A state sealed for a request.
pub fn close(secret: &[u8], principal: &str, upstream: &str, inner: &[u8], nonce: [u8; 12]) -> String {
    Seal::new(&[secret.to_vec()]).close(&state(principal, upstream, inner), nonce)
}

/// Whether a text is the state that was sealed so; `None` where it is none at all.
pub fn open(secret: &[u8], text: &str, principal: &str, upstream: &str, inner: &[u8]) -> Option<bool> {
    Seal::new(&[secret.to_vec()]).open(text).ok().map(|opened| opened == state(principal, upstream, inner))
}

fn state(principal: &str, upstream: &str, inner: &[u8]) -> State {
    let principal = if principal.is_empty() { Principal::anonymous() } else { Principal::named(principal) };
    let bond = Bond { principal, method: Method::ToolsCall, digest: [7; 32] };
    let way = Way::Passed(Bytes::copy_from_slice(inner));
    State { bond, upstream: upstream.into(), expires: Duration::from_millis(1 << 40), way }
}

/// The sealed id of a session that declares this.
pub fn session_id(secret: &str, principal: &str, capabilities: &[u8], client: &str) -> Option<String> {
    let capabilities = Bytes::copy_from_slice(capabilities);
    let asks = Asks { revision: Revision::V2025_06_18, is_dialect: false, capabilities, client: client.into() };
    let who = Who::of(Principal::named(principal));
    session_ids(secret).give_out(&who, &asks)
}

/// What the session of an id has declared, read by another run of the gateway.
pub fn session(secret: &str, id: &str, principal: &str) -> Option<(Bytes, String)> {
    let (asks, _) = session_ids(secret).read(id, &Principal::named(principal))?;
    Some((asks.capabilities, asks.client.to_string()))
}

fn session_ids(secret: &str) -> SealedIds {
    let mut config = Config::default();
    config.session.signing_keys = SigningKey::new(secret.repeat(SigningKey::BYTES_MIN)).into_iter().collect();
    SealedIds::new(&config)
}

/// Whether an array of frames is one of a handshake session, and may be begun.
pub fn batch(text: &Bytes) -> (bool, bool) {
    let read = batch::Frames::read(text);
    let belongs = read.as_ref().is_ok_and(|frames| frames.belongs(None).is_ok());
    (belongs, read.and_then(|frames| frames.judge(Revision::V2025_03_26)).is_ok())
}

/// A question, and all questions of a result, with their upstream named.
pub fn label(upstream: &str, method: &Method, object: &Object) -> [Object; 2] {
    [Label(true).put(upstream, method, object.clone()), Label(true).put_all(upstream, object.clone())]
}

/// Whether a host may be asked for, and a page of an origin may call.
pub fn admits(listen: SocketAddr, listed: &[String], host: &str, origin: &str) -> (bool, bool) {
    let rules = Rules::new(listen, listed, listed);
    (rules.admits_host(host), rules.admits_origin(origin, host))
}
