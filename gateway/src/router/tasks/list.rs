//! `tasks/list`: the tasks that a caller was given, each as its upstream says that it stands now.

use super::granted::Task;
use super::routes;
use super::routes::{Named, Wrapped};
use crate::call::Call;
use crate::call::caller::Grants;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Outcome, Reply, Source, Step};
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Edit, Key, Object};
use crate::router::catalog::snapshot::Catalog;
use crate::runtime::timer::late::Alarm;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// So many are on one page: that many are asked after at once.
const PAGE: usize = 50;
/// An upstream that does not say within so long how its tasks stand is listed without them.
const WAIT: Duration = Duration::from_secs(5);

/// Whether a caller is told that tasks can be listed: some upstream that it may see has them in the one form that lists them.
fn is_offered(catalog: &Catalog, grants: &Grants) -> bool {
    let mut known = catalog.known_to(grants).filter_map(|(_, known)| known);
    known.any(|known| known.supports.tasks && known.revision == Revision::V2025_11_25)
}

/// Answers `tasks/list`; nothing where its caller was never told of it.
pub(crate) fn list(catalog: &Arc<Catalog>, call: &Call) -> Option<Reply> {
    let revision = call.revision();
    if revision != Revision::V2025_11_25 || !is_offered(catalog, &call.caller.grants) {
        return None;
    }
    let Ok(last) = last_of(catalog, call) else { return Some(no_such_page(revision)) };
    let Some(mut page) = catalog.rules.ledger.after(&call.caller, last.as_ref(), PAGE + 1) else {
        return Some(no_such_page(revision));
    };
    let has_more = page.len() > PAGE;
    page.truncate(PAGE);
    let name = |(upstream, own): &Task| catalog.rules.wrap.close(upstream, &call.caller.principal, own);
    let next = has_more.then(|| page.last().map(name)).flatten();
    let replies = page.iter().filter_map(|task| ask(catalog, call, task)).map(|reply| Part { reply, task: None });
    let limit = Alarm::after(WAIT);
    Some(Reply::live(Listing { parts: replies.collect(), next, limit, revision }))
}

/// The last task on the page before, which the cursor is.
fn last_of(catalog: &Catalog, call: &Call) -> Result<Option<Task>, ()> {
    // As in the other lists, null is no cursor.
    let Some(cursor) = call.params.get(Key::Cursor).filter(|raw| *raw != b"null") else { return Ok(None) };
    let cursor = json::unquote(cursor).ok_or(())?;
    let (member, own) = routes::find(catalog, &call.caller, &cursor).ok_or(())?;
    Ok(Some((catalog.members[member].owner.name().clone(), own.into())))
}

fn no_such_page(revision: Revision) -> Reply {
    Reply::refuse(revision, Refusal::new(Reason::InvalidParams, "`cursor` is unknown: list from the beginning"))
}

/// Asks how a task stands; nothing where its upstream is no longer configured, or speaks otherwise now.
fn ask(catalog: &Arc<Catalog>, call: &Call, (upstream, own): &Task) -> Option<Reply> {
    let (member, _) = catalog.members.iter().find(|(_, member)| member.owner.name() == upstream)?;
    catalog.sees(member, &call.caller.grants).then_some(())?;
    catalog.known[member].as_ref().filter(|known| known.revision == call.revision())?;
    let params = Object::parse(format!("{{\"taskId\":{}}}", json::quote(own)).into()).ok()?;
    let call = Call { method: Method::TasksGet, params, progress: false, ..call.clone() };
    let named = Named::new(catalog, member, call.caller.clone()).about(own.to_string());
    Some(Wrapped::reply(named, call, |call| catalog.members[member].owner.handle(call)))
}

/// A page that is put together.
struct Listing {
    parts: Vec<Part>,
    next: Option<String>,
    limit: Alarm,
    revision: Revision,
}

struct Part {
    reply: Reply,
    task: Option<Object>,
}

impl Part {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.reply.has_ended() {
            // What its upstream no longer knows, or cannot say now, is not listed.
            if let Step::Done(Outcome::Complete(task)) = std::task::ready!(self.reply.poll_step(cx)) {
                self.task = Object::parse(task.with(&[(Key::Meta, Edit::Drop)])).ok();
            }
        }
        Poll::Ready(())
    }
}

impl Source for Listing {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let waits = self.parts.iter_mut().filter_map(|part| part.poll(cx).is_pending().then_some(())).count();
        if waits > 0 {
            std::task::ready!(self.limit.poll(cx));
        }
        let tasks: Vec<_> = self.parts.drain(..).filter_map(|part| part.task).collect();
        let tasks: Vec<_> = tasks.iter().map(|task| &**task.raw()).collect();
        let next = self.next.take().map(|next| format!(",\"nextCursor\":{}", json::quote(&next))).unwrap_or_default();
        let page = [&b"{\"tasks\":["[..], &tasks.join(&b','), b"]", next.as_bytes(), b"}"].concat();
        Poll::Ready(Step::Done(Outcome::Complete(Object::parse(page.into()).unwrap_or_default())))
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}
