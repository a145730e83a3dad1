//! Streamable HTTP as a link: our own connections, sessions, streams.

mod advice;
mod answer;
mod aside;
mod body;
mod credentials;
mod dial;
mod exchange;
mod idle;
mod leave;
mod listener;
mod lives;
mod names;
mod pool;
mod refused;
mod restraint;
mod retry_after;
mod session;
mod stream;
mod turnstile;
mod wire;

pub(crate) use advice::advice;
pub(crate) use exchange::HttpExchange;
pub(crate) use listener::listen;
pub(crate) use session::Http;
pub(crate) use wire::Wire;
