//! Looks at a running gateway.

// What a gateway says of one upstream.
mod row;
// Looks at a running gateway: what `ls` and `status` show.
mod page;
// The way to a running gateway: its control socket, else its admin address; one request and its answer.
mod reach;
// `trunkline ls`: every upstream of a running gateway, a line each.
pub(crate) mod ls;
// The screen of a terminal while a command has it.
mod screen;
// `trunkline top`: the upstreams of a running gateway and its calls, drawn again each second.
mod top;
// `trunkline status NAME`: all that a running gateway knows of one upstream.
pub(crate) mod status;
// What goes on while it is looked at: `trunkline logs` and `calls`, what a running gateway keeps of its upstreams and its calls; `top`.
pub(crate) mod follow;

pub(crate) use page::{Whole, counted, get, page, post, time};
pub(crate) use row::Row;
