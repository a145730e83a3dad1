//! What reads names, URIs and ids here, as plain functions: see [`crate::fuzzing`].

use super::calls::rewrite;
use super::catalog::{Cursor, apps};
use super::config::{Naming, Strategy};
use super::names::uri::{Marked, Tag, origin};
use super::names::{Looks, Party, Template, assign};
use super::tasks::{Secret, TaskIds};
use crate::call::caller::Principal;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use crate::protocol::value::splice;
use std::collections::HashSet;
use std::ops::Range;

/// An upstream with its prefix and its own names.
pub type Named<'a> = (&'a str, &'a str, Vec<&'a str>);

/// The public names of what these upstreams have.
pub fn names(strategy: Strategy, max_length: usize, upstreams: &[Named<'_>]) -> Vec<Vec<Option<String>>> {
    let parties: Vec<_> =
        upstreams.iter().map(|(upstream, prefix, names)| Party { upstream, prefix, names: names.clone() }).collect();
    assign(&Naming { strategy, max_length, ..Naming::default() }, &parties)
}

/// Whether a URI may come from a template.
pub fn matches(template: &str, uri: &str) -> bool {
    Template::parse(template).matches(uri, &mut Looks::default())
}

/// A URI of an upstream with its mark.
pub fn mark(upstream: &str, own: &str) -> Option<String> {
    Tag::of(upstream).mark(own)
}

/// A marked URI without its mark.
pub fn unmark(upstream: &str, public: &str) -> Option<String> {
    Tag::of(upstream).unmark(public)
}

/// The scheme and authority of a URI.
pub fn origin_of(uri: &str) -> Option<&str> {
    origin(uri)
}

/// Where the value at a path stands.
pub fn find(raw: &[u8], path: &[&str]) -> Option<Range<usize>> {
    splice::find(raw, path)
}

/// The text with some places written anew.
pub fn replace(raw: &[u8], changes: &[(Range<usize>, String)]) -> Vec<u8> {
    splice::replace(raw, changes)
}

/// A result with the URIs of an upstream marked, of which these are contested.
pub fn publish(upstream: &str, contested: &[&str], method: &Method, result: Object) -> Object {
    let uris = contested.iter().map(|uri| (*uri).into()).collect();
    let templates = contested.iter().map(|uri| Template::parse(uri)).collect();
    let marked = Marked { tag: Tag::of(upstream), plain: HashSet::new(), uris, templates };
    rewrite::publish(&marked, method, result)
}

/// The pages that a tool definition names.
pub fn pages(definition: &[u8]) -> Vec<(String, Range<usize>)> {
    apps::pages(definition)
}

/// A cursor read, and written again.
pub fn cursor(text: &str) -> Option<String> {
    Cursor::decode(text).map(|cursor| cursor.encode())
}

/// The public id of a task.
pub fn close(secret: &[u8], upstream: &str, principal: &str, own: &str) -> String {
    wrap(secret).close(upstream, &Principal::named(principal), own)
}

/// What a public id leads to.
pub fn open(secret: &[u8], public: &str, principal: &str, upstreams: &[&str]) -> Option<(usize, String)> {
    wrap(secret).open(public, &Principal::named(principal), upstreams.iter().copied().enumerate())
}

fn wrap(secret: &[u8]) -> TaskIds {
    let secrets = vec![secret.to_vec()];
    TaskIds::new(Secret::found_by(move || secrets.clone()))
}
