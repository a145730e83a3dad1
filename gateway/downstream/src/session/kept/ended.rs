//! The sessions whose sealed ids still say that they may be revived, and that have ended: in this run, or by their clients or with their token in an earlier one.

use crate::session::sealed_id::Marks;
use std::path::Path;
use std::sync::Arc;

/// The file of those that clients have ended, or that ended with their token, in the folder of our state.
const FILE: &str = "ended-sessions";

/// Those that are not revived, by the short form of their ids.
pub(crate) struct Ended(Marks);

impl Ended {
    /// Those that clients end are kept in this folder for the next run.
    pub(crate) fn kept_in(folder: Option<&Path>) -> Self {
        Self(Marks::kept_in(folder, FILE))
    }

    /// A session has ended. One that this run has opened needs no place: its id says that, and the table that it is gone.
    pub(crate) fn note(&self, short: &Arc<str>, is_revived: bool) {
        if is_revived {
            self.0.note(short);
        }
    }

    /// The client of a session has ended it, or its token is known no more: the next run does not revive it either.
    pub(crate) fn keep(&self, short: &Arc<str>) {
        if let Err(error) = self.0.keep(short) {
            tracing::debug!(%error, "an ended session is not kept: the next run would revive it for its client");
        }
    }

    /// Whether the session with this short id has ended.
    pub(crate) fn has(&self, short: &str) -> bool {
        self.0.has(short)
    }
}

#[cfg(test)]
mod tests {
    use crate::call::caller::Principal;
    use crate::call::caller::credential::Revocation;
    use crate::config::Config;
    use crate::edge::Asks;
    use crate::edge::client_era::Who;
    use crate::memory::budget::Budget;
    use crate::protocol::revision::Revision;
    use crate::response::Label;
    use crate::session::table::Sessions;
    use bytes::Bytes;

    #[tokio::test]
    async fn what_was_opened_by_what_is_revoked_ends_and_nothing_else_of_its_principal() {
        let sessions = Sessions::new(&Config::default(), Label(false), Budget::default());
        let open = |revocation: &Revocation| {
            let who = Who { revocation: revocation.clone(), ..Who::of(Principal::named("ann")) };
            let (revision, capabilities) = (Revision::V2025_11_25, Bytes::from_static(b"{}"));
            sessions.create(who, Asks { revision, is_dialect: false, capabilities, client: "".into() }).unwrap()
        };
        let (one, other) = (Revocation::possible(), Revocation::possible());
        let (first, second) = (open(&one), open(&other));
        one.revoke();
        sessions.end_revoked();
        let is_there = |id: &str| sessions.find(id, &Principal::named("ann")).is_some();
        assert_eq!([is_there(&first.id), is_there(&second.id)], [false, true]);
        // Whoever revokes has looked at the table already.
        let late = open(&one);
        assert!(!is_there(&late.id) && sessions.some(9).len() == 1);
    }
}
