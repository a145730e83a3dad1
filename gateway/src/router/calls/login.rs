//! Calls at upstreams that each principal logs in to for itself, by names that are not offered to the caller now.

use crate::call::caller::{Grants, Principal};
use crate::health::CauseCode;
use crate::router::catalog::Member;
use crate::router::catalog::snapshot::Catalog;
use crate::router::names::MemberId;
use crate::upstream::inventory::Inventory;

/// The upstream whose tool to log in a name is, though it is not offered: its caller may have logged in by now.
pub(crate) fn by_tool(catalog: &Catalog, public: &str, grants: &Grants) -> Option<MemberId> {
    let (prefix, naming) = (public.strip_suffix(Inventory::LOGIN)?, &catalog.rules.naming);
    let is_alone = naming.is_transparent(catalog.members.len());
    let is_its = |own: &str| match is_alone {
        true => prefix.is_empty(),
        false => prefix.strip_suffix(&*naming.separator) == Some(own),
    };
    let own = |member: &Member| match member.owner.prefix() {
        "" => member.owner.name().to_string(),
        prefix => prefix.to_owned(),
    };
    let mut personal = catalog.members.iter().filter(|(_, member)| member.owner.is_personal());
    personal.find(|(id, member)| is_its(&own(member)) && catalog.sees(*id, grants)).map(|(id, _)| id)
}

/// The upstream that offers a caller nothing but to log in, where a name could be of it.
pub(crate) fn wanted(catalog: &Catalog, public: &str, grants: &Grants) -> Option<MemberId> {
    let mut all = catalog.members.ids().filter(|id| is_all(catalog, *id));
    all.find(|id| catalog.may_own(*id, public) && catalog.sees(*id, grants))
}

/// Whether that is all that an upstream offers.
pub(crate) fn is_all(catalog: &Catalog, id: MemberId) -> bool {
    catalog.known.get(id).is_some_and(|known| known.as_deref().is_some_and(Inventory::offers_login))
}

/// Whether a principal has to log in to an upstream before anything else, as far as that is known.
pub(crate) fn is_needed(catalog: &Catalog, id: MemberId, principal: &Principal) -> bool {
    let cause = catalog.members[id].owner.cause_for(principal);
    cause.is_some_and(|cause| cause.codes().contains(&CauseCode::LoginRequired))
}
