//! What is said of upstreams some of whose tools nobody has approved as they are: beside them, and in the log.

use super::why::{Unapproved, Why};
use crate::router::catalog::snapshot::Catalog;
use crate::router::names::MemberId;
use std::collections::HashSet;

/// What the remark is kept under.
const REMARK: &str = "tools to approve";
/// So many are named of each upstream.
const NAMED_MAX: usize = 3;

/// Remarks on each upstream what of it is to be approved, and warns of what was not known before.
pub(crate) fn remark(now: &Catalog, before: Option<&Catalog>) {
    if now.unapproved.is_empty() && before.is_none_or(|before| before.unapproved.is_empty()) {
        return;
    }
    for (id, member) in now.members.iter() {
        let told = of(now, id).next().map(|_| told(now, id));
        member.owner.remark(
            REMARK,
            told.as_ref().map(|told| format!("{}; run `trunkline approve {}`", told, member.owner.name())),
        );
        let was: HashSet<_> =
            before.into_iter().flat_map(|before| of(before, id)).map(|one| (&one.own, one.why)).collect();
        let is_news = |tool: &Unapproved| !was.contains(&(&tool.own, tool.why));
        if let Some(told) = told.filter(|_| of(now, id).any(is_news)) {
            let upstream = &**member.owner.name();
            tracing::warn!(upstream, "{told}; `trunkline approve {upstream}` shows and approves them");
        }
    }
}

fn of(catalog: &Catalog, id: MemberId) -> impl Iterator<Item = &Unapproved> {
    catalog.unapproved.iter().filter(move |tool| tool.member == id)
}

/// What is said of an upstream some of whose tools are to be approved.
fn told(catalog: &Catalog, id: MemberId) -> String {
    let named = |why: Why| {
        let all: Vec<_> =
            of(catalog, id).filter(|tool| tool.why == why).map(|tool| format!("`{}`", tool.own)).collect();
        let more = all.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!all.is_empty()).then(|| format!("{} {}{more}", why.as_str(), all[..all.len().min(NAMED_MAX)].join(", ")))
    };
    let parts: Vec<_> = [Why::New, Why::Changed].into_iter().filter_map(named).collect();
    let (count, is_held) = (of(catalog, id).count(), catalog.holds());
    let (tools, are) = if count == 1 { ("tool", "is") } else { ("tools", "are") };
    let what = if is_held { "held until approved" } else { "not approved" };
    format!("{count} {tools} {are} {what}: {}", parts.join("; "))
}
