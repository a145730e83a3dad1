//! Looks at a running gateway.

// Looks at a running gateway: what `ls` and `status` show.
mod page;
// The way to a running gateway: its control socket, else its admin address; one request and its answer.
mod reach;

pub(crate) use page::{Row, Whole, counted, page, parse, post, time};
