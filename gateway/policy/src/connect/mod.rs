//! Pages of the gateway where a person logs in to an upstream that a call needs a login for.

// Who may be sent to which page, and what its visit has come to.
mod flows;
// One login that waits for its person.
mod flow;
// Who may call, by all listeners together.
mod callers;
// Logs in on behalf of a person.
mod logins;
// The cookie that binds a page to the browser that opened it first.
mod cookie;
// The pages in words.
mod page;
// All pages of one gateway: begun, visited, finished.
mod pages;
// What a browser asks a page for.
mod visit;
// Tells the caller of a refused call where its person can log in.
mod sender;
// Serves the pages before anybody is asked for a token: a browser has none.
mod service;

pub use callers::Callers;
pub use logins::{Begun, Doing, Ended, Entry, Finish, Logins, Registrant};
pub use pages::Connect;
pub use service::ConnectLayer;
