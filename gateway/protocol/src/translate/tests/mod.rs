//! The translator, part by part, and its laws.

// Definitions and capabilities: each receiver has what its revision knows.
mod definitions;
// Errors in their receiver's codes.
mod failures;
// The laws of translation, on payloads that are made up: equal revisions change nothing, there and back keeps what both have, and whatever comes in, JSON comes out.
mod laws;
// Questions and answers: what each revision can be asked and told.
mod questions;
// Results: what stateless revisions say around them, and their contents.
mod results;
// What the translator's tests share: objects of text, and every kind of payload in every pair of revisions.
mod rig;
