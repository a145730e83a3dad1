//! The token that an upstream is shown, where that is fetched while the gateway runs.

// A token as it was given out, or the reason why none was.
mod token;
// How long it lasts, by the words of who gives it out.
mod times;
// What the command of a token says on its stderr, without what may be a token.
mod stderr;
// A token from a command.
mod command;
// What the token end point of an authorization server answers, whatever it is asked by.
mod granted;
// A token from there for a client of its own.
mod endpoint;
// A token for one principal, for which its client's access token is exchanged.
mod exchange;
// A login of a person at an authorization server: made once, kept, and used until it ends.
pub(crate) mod oauth;
// Where a token comes from.
mod source;
// The token that is shown now: kept until it ends, and fetched anew by one for all who wait.
mod tokens;

pub(crate) use tokens::{OfLogin, SharedTokens, Tokens};
