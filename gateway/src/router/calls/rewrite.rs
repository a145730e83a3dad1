//! Gives the results of an upstream with marked URIs their public URIs; all other results are never looked into.

use super::timing::Stopwatch;
use crate::call::reply::{Failure, Outcome, Reply, Source, Step};
use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::protocol::value::splice;
use crate::router::catalog::snapshot::Catalog;
use crate::router::names::uri::Marked;
use crate::router::names::{Looks, MemberId};
use crate::runtime::aside;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A reply whose outcome is given public URIs.
pub(crate) struct Rewritten {
    reply: Reply,
    watch: Stopwatch,
    catalog: Arc<Catalog>,
    member: MemberId,
    method: Method,
}

impl Rewritten {
    /// The reply of a member, seen from outside.
    pub(crate) fn reply(reply: Reply, catalog: Arc<Catalog>, member: MemberId, method: Method) -> Reply {
        let (reply, watch) = Stopwatch::on(reply);
        Reply::live(Self { reply, watch, catalog, member, method })
    }
}

impl Source for Rewritten {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let step = self.reply.poll_step(cx);
        let Some(marked) = self.catalog.marked(self.member) else { return step };
        step.map(|step| match step {
            Step::Done(Outcome::Complete(result)) => {
                let bytes = result.raw().len();
                Step::Done(Outcome::Complete(aside(bytes, || publish(marked, &self.method, result))))
            }
            Step::Done(Outcome::Error(Failure::Upstream(error))) => {
                Step::Done(Outcome::Error(Failure::Upstream(publish_error(marked, error))))
            }
            other => other,
        })
    }

    fn revision(&self) -> Revision {
        self.reply.revision()
    }

    fn upstream_time(&self) -> Duration {
        self.watch.time()
    }

    fn queue_time(&self) -> Duration {
        self.watch.queued()
    }
}

pub(crate) fn publish(marked: &Marked, method: &Method, result: Object) -> Object {
    let raw = result.raw();
    let (mut changes, mut looks) = (Vec::new(), Looks::default());
    for place in places(method, raw) {
        if let Some(public) = json::unquote(&raw[place.clone()]).and_then(|own| marked.publish(&own, &mut looks)) {
            changes.push((place, json::quote(&public)));
        }
    }
    if changes.is_empty() {
        return result;
    }
    Object::parse(splice::replace(raw, &changes).into()).unwrap_or(result)
}

fn publish_error(marked: &Marked, error: RpcError) -> RpcError {
    let found = splice::text(error.raw(), &["data", "uri"]);
    match found.and_then(|(own, place)| Some((marked.publish(&own, &mut Looks::default())?, place))) {
        Some((public, place)) => {
            RpcError::from_raw(splice::replace(error.raw(), &[(place, json::quote(&public))]).into())
        }
        None => error,
    }
}

/// Where a result names resources, in order.
fn places(method: &Method, raw: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    match method {
        Method::ResourcesRead => each(raw, &["contents"], |place| found.extend(inside(raw, place, &["uri"]))),
        Method::ToolsCall => each(raw, &["content"], |place| found.extend(block(raw, place))),
        Method::PromptsGet => each(raw, &["messages"], |message| {
            let Some(content) = inside(raw, message, &["content"]) else { return };
            match raw[content.start] {
                b'[' => each_in(raw, content, |place| found.extend(block(raw, place))),
                _ => found.extend(block(raw, content)),
            }
        }),
        _ => {}
    }
    found
}

/// The URI of a resource link or an embedded resource.
fn block(raw: &[u8], place: Range<usize>) -> Option<Range<usize>> {
    let kind = inside(raw, place.clone(), &["type"])?;
    match json::unquote(&raw[kind])?.as_ref() {
        "resource_link" => inside(raw, place, &["uri"]),
        "resource" => inside(raw, place, &["resource", "uri"]),
        _ => None,
    }
}

fn inside(raw: &[u8], place: Range<usize>, path: &[&str]) -> Option<Range<usize>> {
    let found = splice::find(&raw[place.clone()], path)?;
    Some(place.start + found.start..place.start + found.end)
}

fn each(raw: &[u8], path: &[&str], visit: impl FnMut(Range<usize>)) {
    if let Some(array) = inside(raw, 0..raw.len(), path) {
        each_in(raw, array, visit);
    }
}

fn each_in(raw: &[u8], array: Range<usize>, mut visit: impl FnMut(Range<usize>)) {
    for element in json::elements(&raw[array.clone()]).unwrap_or_default() {
        visit(array.start + element.start..array.start + element.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::names::uri::Tag;
    use std::collections::HashSet;

    fn published(method: Method, raw: &'static str) -> String {
        let uris = HashSet::from([Arc::from("m:1"), Arc::from("m:2")]);
        let marked = Marked { tag: Tag::of("b"), plain: HashSet::new(), uris, templates: Vec::new() };
        let result = Object::parse(raw.into()).unwrap();
        String::from_utf8(publish(&marked, &method, result).raw().to_vec()).unwrap()
    }

    #[test]
    fn uris_are_published_where_results_name_resources() {
        assert_eq!(
            published(Method::ResourcesRead, r#"{"contents":[{"uri":"m:1","text":"m:1"},{"uri":"m:3"}]}"#),
            r#"{"contents":[{"uri":"b+m:1","text":"m:1"},{"uri":"m:3"}]}"#
        );
        assert_eq!(
            published(
                Method::ToolsCall,
                r#"{"content":[{"uri":"m:1","type":"resource_link"},{"type":"resource","resource":{"uri":"m:2"}},{"type":"text","uri":"m:1"}]}"#
            ),
            r#"{"content":[{"uri":"b+m:1","type":"resource_link"},{"type":"resource","resource":{"uri":"b+m:2"}},{"type":"text","uri":"m:1"}]}"#
        );
        assert_eq!(
            published(
                Method::PromptsGet,
                r#"{"messages":[{"content":{"type":"resource_link","uri":"m:1"}},{"content":[{"type":"resource_link","uri":"m:2"}]}]}"#
            ),
            r#"{"messages":[{"content":{"type":"resource_link","uri":"b+m:1"}},{"content":[{"type":"resource_link","uri":"b+m:2"}]}]}"#
        );
    }

    #[test]
    fn errors_name_the_uri_that_was_asked_for() {
        let marked = Marked {
            tag: Tag::of("b"),
            plain: HashSet::new(),
            uris: HashSet::from([Arc::from("m:1")]),
            templates: Vec::new(),
        };
        let error = RpcError::new(-32002, "gone", Some(r#"{"uri":"m:1"}"#));
        assert_eq!(publish_error(&marked, error).data(), Some(&br#"{"uri":"b+m:1"}"#[..]));
    }
}
