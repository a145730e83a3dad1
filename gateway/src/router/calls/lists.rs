//! What concerns all upstreams: the four lists.

use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::Reply;
use crate::protocol::value::Key;
use crate::router::catalog::snapshot::Catalog;
use crate::router::catalog::{Current, Kind};
use crate::router::names::MemberId;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What a list waits for beside inventories that were never known; then the catalog that it is answered from.
pub(crate) type Unread = Pin<Box<dyn Future<Output = Arc<Current>> + Send>>;

/// Answers a list from the catalog; waits only for inventories that were never known, and for each of them only once.
pub(crate) fn list(
    current: &Arc<Current>,
    kind: Kind,
    call: &Call,
    (wait, unread): (Duration, Option<Unread>),
) -> Reply {
    let (catalog, era) = (current.load(), call.revision().era());
    let sees = |id: &MemberId| catalog.sees(*id, &call.caller.grants);
    // An upstream need not announce changes: old inventories are read again behind the answer.
    for (_, member) in catalog.members.iter().filter(|(id, _)| sees(id)) {
        member.owner.expect_era(era);
        member.owner.refresh(call);
    }
    let now = Instant::now();
    let awaited = catalog.unseen().filter(|id| sees(id) && catalog.is_awaited(*id));
    let awaited = awaited.map(|id| (id, catalog.members[id].patience(wait)));
    let of_era = catalog.members.ids().filter(|id| sees(id) && catalog.awaits_era(*id, era));
    let of_era = of_era.map(|id| (id, catalog.members[id].patience_of_era(era, wait)));
    let limits: Vec<_> = awaited.chain(of_era).filter(|(_, limit)| *limit > now).collect();
    let limit = limits.iter().map(|(_, limit)| *limit).max();
    if limit.is_none() && unread.is_none() {
        tell_limit(current, &catalog, kind, call);
        return answer(&catalog, kind, call);
    }
    let (mut current, call) = (current.clone(), call.clone());
    Reply::deferred(async move {
        if let Some(unread) = unread {
            current = unread.await;
        }
        let Some(limit) = limit else {
            let catalog = current.keep();
            tell_limit(&current, &catalog, kind, &call);
            return answer(&catalog, kind, &call);
        };
        let is_good = |now: &Catalog| limits.iter().all(|(id, _)| !now.is_awaited(*id) && !now.awaits_era(*id, era));
        let catalog = current.until(limit, is_good).await;
        tell_limit(&current, &catalog, kind, &call);
        answer(&catalog, kind, &call)
    })
}

fn answer(catalog: &Catalog, kind: Kind, call: &Call) -> Reply {
    let revision = call.revision();
    let Ok(list) = catalog.shelf(kind).list(revision, &call.caller.grants) else {
        let why = format!(
            "`{}` is too large for the memory that the gateway has left (`server.memory_limit`)",
            call.method.as_str()
        );
        return Reply::refuse(revision, Refusal::new(Reason::Busy, why));
    };
    let cursor = call.params.get(Key::Cursor);
    match list.encoded().page(cursor) {
        Ok(page) => match holds(catalog, kind, call) {
            0 => Reply::complete(revision, page.clone()),
            left => Reply::complete(revision, page.clone().set(Key::TtlMs, left.to_string().as_bytes())),
        },
        Err(refusal) => Reply::refuse(revision, refusal),
    }
}

/// Says once that there are more tools than the host of this client takes: it leaves some out, and nobody sees which.
fn tell_limit(current: &Current, catalog: &Catalog, kind: Kind, call: &Call) {
    let Some(host) = call.caller.tenant.as_ref().filter(|_| kind == Kind::Tools).and_then(|tenant| tenant.host())
    else {
        return;
    };
    let shelf = catalog.shelf(kind);
    if shelf.entries().len() <= host.tools {
        return;
    }
    let now = call.caller.grants.now();
    let tools = shelf.view(now.rights()).count();
    if tools > host.tools && current.is_first_told(host.bit) {
        let (host, limit) = (host.title, host.tools);
        tracing::warn!(
            host,
            tools,
            limit,
            "more tools than this host takes; leave some out with `tools.allow` or `tools.deny`"
        );
    }
}

/// For how many milliseconds the list will still be as it is: as long as every part of it, by what its upstream said when it
/// was read. Nothing where one says nothing, or was never seen.
fn holds(catalog: &Catalog, kind: Kind, call: &Call) -> u128 {
    if !call.revision().is_modern() {
        return 0;
    }
    let mut least = None;
    for (_, known) in catalog.known_to(&call.caller.grants) {
        let Some(inventory) = known else { return 0 };
        if kind.is_of(&inventory.supports) {
            let left = inventory.fresh.left(&call.method);
            least = Some(least.map_or(left, |least: Duration| least.min(left)));
        }
    }
    least.unwrap_or_default().as_millis()
}
