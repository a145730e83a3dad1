//! Who made the last call on a connection.

use crate::call::caller::{Caller, Can, Grants, Principal};
use crate::protocol::revision::Revision;
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use std::net::IpAddr;
use std::sync::Arc;

/// Who made the last call of a client: most say the same of themselves each time, and are the same caller then.
#[derive(Debug, Default)]
pub(crate) struct LastCaller(ArcSwapOption<Caller>);

impl LastCaller {
    /// The caller without a session that says this of itself.
    pub(crate) fn again(
        &self,
        (principal, address, grants): (&Principal, Option<IpAddr>, &Grants),
        revision: Revision,
        capabilities: &[u8],
    ) -> Arc<Caller> {
        let last = self.0.load();
        let is_same = |last: &&Arc<Caller>| {
            last.revision == revision
                && last.address == address
                && last.principal.is_as(principal)
                && last.grants.is(grants)
                && last.capabilities == capabilities
        };
        if let Some(same) = last.as_ref().filter(is_same) {
            return same.clone();
        }
        let caller = Arc::new(Caller {
            principal: principal.clone(),
            address,
            grants: grants.clone(),
            revision,
            // It lives on, and a part of a request would keep all of it.
            capabilities: Bytes::copy_from_slice(capabilities),
            tenant: None,
            can: Can::default(),
        });
        self.0.store(Some(caller.clone()));
        caller
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_the_last_one_only_where_nothing_differs() {
        let last = LastCaller::default();
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let (all, some) = (Grants::all(), Grants::of(None));
        let here = Some(IpAddr::from([127, 0, 0, 1]));
        let [newest, older] = [Revision::NEWEST_MODERN, Revision::NEWEST_LEGACY];
        let scoped = ann.clone().allowed("x");
        let first = last.again((&ann, here, &all), newest, b"{}");
        assert!(Arc::ptr_eq(&first, &last.again((&Principal::named("ann"), here, &all), newest, b"{}")));
        for (who, revision, capabilities) in [
            ((&bob, here, &all), newest, &b"{}"[..]),
            ((&scoped, here, &all), newest, b"{}"),
            ((&ann, None, &all), newest, b"{}"),
            ((&ann, here, &some), newest, b"{}"),
            ((&ann, here, &all), older, b"{}"),
            ((&ann, here, &all), newest, b"{\"roots\":{}}"),
        ] {
            let first = last.again((&ann, here, &all), newest, b"{}");
            let other = last.again(who, revision, capabilities);
            assert!(!Arc::ptr_eq(&first, &other));
            let (principal, address, grants) = who;
            assert!(other.principal == *principal && other.address == address && other.grants.is(grants));
            assert_eq!((other.revision, &other.capabilities[..]), (revision, capabilities));
        }
    }
}
