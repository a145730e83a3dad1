//! The way from nothing to a host that uses Trunkline: takes servers over, writes itself into hosts, edits the configuration.

// The hosts that are known: where each keeps its file, and what an entry of ours looks like there.
pub(crate) mod hosts;
// Writes a file whole.
pub(crate) mod save;
// `trunkline import`: takes the servers of hosts over.
pub(crate) mod import;
// `trunkline install` and `uninstall`: one entry in the file of a host.
pub(crate) mod install;
// Of several names that are given: those that are there, and the others.
mod named;
// `trunkline add` and `remove`: one upstream into the configuration, and out of it.
pub(crate) mod add;
// Whose login is meant, where each principal has its own.
mod whose;
// `trunkline login`: a person logs in to an upstream.
pub(crate) mod login;
// `trunkline logout`: logins are revoked and kept no more.
pub(crate) mod logout;
// `trunkline token new`, `ls` and `revoke`: the tokens of clients.
pub(crate) mod token;
