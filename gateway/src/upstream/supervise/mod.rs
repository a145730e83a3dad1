//! Keeps an upstream alive: started, met, watched, started again within a budget, and stopped with proof.

// The phases of an upstream's life.
mod phase;
// What each phase leads to, and what is done in it, from the first start to the proven end.
mod supervisor;
// How one life of an upstream begins: a link is opened, and it is met.
mod life;
// What is kept up for a live peer: its lists are read, and it tells of what is wanted.
mod upkeep;
// What follows the end of one life of an upstream: the next one, when it begins, and whether it counts.
mod restart;
// When an upstream does not run, though nothing is wrong with it.
pub(crate) mod control;
// A restart that was ordered lets running calls end first, for a bounded time.
pub(crate) mod grace;
// Asks an upstream of which nothing is heard whether it is there, and acts on its silence.
mod ping;
// Asks an upstream anew whether it leads back to this gateway, once something says that one does.
mod loop_detection;

#[cfg(test)]
pub(crate) use control::Told;
pub(crate) use supervisor::supervise;
#[cfg(test)]
pub(crate) use upkeep::{keep_inventory, keep_wanted};
