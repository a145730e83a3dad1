//! The sessions that are open with a login. They go on with its tokens, and with those of no login that may be of another account: that one has
//! sessions of its own once these have ended.

use crate::health::{Cause, CauseCode};
use crate::oauth::record::{Record, Whose};
use crate::runtime::timer::late::within;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// So long the sessions of one instance wait for those of another one to end, before they begin with another account.
const OTHERS_END: Duration = Duration::from_secs(15);

/// Whose sessions are open, and in how many instances.
#[derive(Default)]
pub(crate) struct Sessions {
    /// The login that they are of, once its tokens were read.
    of: Mutex<Option<Whose>>,
    open: watch::Sender<usize>,
    /// Whether a login was made that may be of another account.
    are_over: watch::Sender<bool>,
}

impl Sessions {
    /// An instance is about to open sessions: with another login, if one was made, once nobody has any of the one before. Whether that is of another
    /// account.
    pub(crate) async fn begin(&self) -> bool {
        if *self.are_over.borrow() {
            let mut others = self.open.subscribe();
            let _in_time = within(OTHERS_END, others.wait_for(|open| *open == 0)).await.is_ok();
        }
        let mut of = self.lock();
        let is_another = self.are_over.send_replace(false);
        if is_another || *self.open.borrow() == 0 {
            *of = None;
        }
        self.open.send_modify(|open| *open += 1);
        is_another
    }

    /// Those of one instance have ended.
    pub(crate) fn ended(&self) {
        self.open.send_modify(|open| *open -= 1);
    }

    /// Keeps calls from going out in sessions that are to end.
    pub(crate) fn while_over(&self, hold_back: impl FnOnce()) {
        if *self.are_over.borrow() {
            // The next sessions do not begin meanwhile: they let calls out.
            let _of = self.lock();
            if *self.are_over.borrow() && *self.open.borrow() > 0 {
                hold_back();
            }
        }
    }

    /// Resolves when those that are open are to end, since another account has logged in.
    pub(crate) async fn over(&self) {
        let mut are_over = self.are_over.subscribe();
        // Who tells it lies here.
        let _ = are_over.wait_for(|are_over| *are_over).await;
    }

    /// Whether those that are open are to end, since the login that is kept may be of another account.
    pub(super) fn are_over_by(&self, kept: impl FnOnce() -> Option<Record>) -> bool {
        if *self.are_over.borrow() {
            return true;
        }
        let is_known = self.lock().is_some();
        is_known && kept().is_some_and(|record| self.may_differ(&record))
    }

    /// A login, where it is of the account whose sessions are open.
    pub(super) fn own(&self, record: Record) -> Result<Record, Cause> {
        match self.may_differ(&record) {
            true => {
                let said = "another login was made; it is used in a session of its own";
                Err(Cause::new(CauseCode::LoginChanged, said).advise("try again"))
            }
            false => Ok(record),
        }
    }

    fn may_differ(&self, record: &Record) -> bool {
        let (mut of, whose) = (self.lock(), record.whose());
        let may_differ = of.as_ref().is_some_and(|of| of.may_differ(&whose));
        if may_differ {
            self.are_over.send_if_modified(|are_over| !std::mem::replace(are_over, true));
        } else {
            // Of the same account a later login is as good.
            *of = Some(whose);
        }
        may_differ
    }

    fn lock(&self) -> MutexGuard<'_, Option<Whose>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
