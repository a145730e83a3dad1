//! Streamable HTTP as a link: our own connections, sessions, streams.

mod answer;
mod aside;
mod body;
mod dial;
mod exchange;
mod listener;
mod pool;
mod refused;
mod session;
mod stream;
mod turnstile;
mod wire;

pub(crate) use exchange::HttpExchange;
pub(crate) use listener::listen;
pub(crate) use session::Http;
pub(crate) use wire::Wire;
