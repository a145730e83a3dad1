//! The tokens of a login while the gateway runs: read, refreshed ahead of their end by one process, kept.

// Whether an upstream is shown a token at all.
mod need;
// What is known of a login beside what is kept of it.
mod state;
// The sessions that are open with a login, which go on with that of no other account.
mod sessions;

pub use state::Show;

use super::challenge::{Challenge, challenge};
use super::grant::{Endpoint, Refused};
use super::record::{LoggedIn, Record, scopes_of};
use super::resource::refuses;
use super::store::Store;
use crate::config::Login;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::token::{Issued, Unissued};
use crate::transport::http::LoginAdvice;
use http::{HeaderMap, StatusCode};
use need::{ELSEWHERE, LOOK_EVERY, Need, Needs};
use sessions::Sessions;
use state::{State, forbidden, shown, unfit};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// The login for one upstream.
pub(crate) struct StoredLogin {
    login: Login,
    /// What is given out is a secret of the process.
    secrets: mask::Learned,
    state: Mutex<State>,
    /// Shows which login is used.
    show: OnceLock<Show>,
    /// Whether the upstream is shown a token.
    needs: Needs,
    /// Another login was made in this very process.
    made: Notify,
    /// Whose sessions are open.
    pub(crate) sessions: Sessions,
}

/// The login that is kept for an upstream; none where it may need none. Else why there is none that can be used.
pub fn logged_in(login: &Login) -> Result<Option<LoggedIn>, Cause> {
    if login.is_found && !Store::keeps(login) {
        return Ok(None);
    }
    let kept = StoredLogin::new(login.clone());
    let record = kept.read(&Store::of(login)?)?;
    match record.is_over() && record.refresh.is_none() {
        true => Err(kept.to_log_in(": the last login has ended")),
        false => Ok(Some((&record).into())),
    }
}

impl StoredLogin {
    /// Nothing is read yet.
    pub(crate) fn new(login: Login) -> Self {
        let needs = Needs::new(if login.is_found { Need::Unasked } else { Need::Shown });
        let (secrets, show, made) = (mask::Learned::new(), OnceLock::new(), Notify::new());
        Self { login, secrets, state: Mutex::default(), show, needs, made, sessions: Sessions::default() }
    }

    /// What a person runs to log in.
    pub(crate) fn command(&self) -> String {
        self.login.command()
    }

    /// Whether the upstream is shown a token: one that nothing says it of is once somebody has logged in.
    pub(crate) fn is_shown(&self) -> bool {
        match self.needs.now() {
            Need::Shown => true,
            Need::Unasked | Need::Asked => self.needs.may_look() && self.look(),
        }
    }

    /// Looks whether somebody has logged in: then the upstream is shown a token. Where no login is left it is asked without one again.
    pub(crate) fn look(&self) -> bool {
        if !self.login.is_found {
            return true;
        }
        let is_there = self.is_kept();
        match self.needs.now() {
            Need::Shown if !is_there => self.needs.becomes(Need::Unasked),
            Need::Unasked | Need::Asked if is_there => self.needs.becomes(Need::Shown),
            _ => {}
        }
        is_there
    }

    /// Whether any login is kept, or was to be.
    pub(crate) fn is_kept(&self) -> bool {
        Store::keeps(&self.login) || self.lock().unwritten.is_some()
    }

    /// What a refusal of the upstream says of its login; nothing where it is about something else.
    pub(crate) async fn refused(
        &self,
        (status, headers): (StatusCode, &HeaderMap),
        is_of_client: bool,
        tasks: &Tasks,
    ) -> Option<LoginAdvice> {
        let run = format!("run `{}`", self.login.command());
        match (status, self.needs.now() == Need::Shown) {
            (StatusCode::UNAUTHORIZED, true) => Some(LoginAdvice::Hint(run)),
            (StatusCode::UNAUTHORIZED, false) => {
                let said = challenge(headers).resource_metadata;
                match self.needs.is_asked(said.as_deref(), &self.login, is_of_client, tasks).await {
                    true => Some(LoginAdvice::Required(self.asked())),
                    false => said.map(|_| LoginAdvice::Hint(ELSEWHERE.to_owned())),
                }
            }
            (StatusCode::FORBIDDEN, true) => {
                let Challenge { scope, error, .. } = challenge(headers);
                let scope = scope.filter(|_| error.as_deref() == Some("insufficient_scope"));
                let is_more_wanted = match scope {
                    Some(scope) => self.wants(&scope).await,
                    None => false,
                };
                // What it asks for are its own words, and may be those of another client's call: `status` and `login` show them to a person.
                Some(match is_more_wanted {
                    true => LoginAdvice::MoreScope(format!("{run}, which asks for more")),
                    false => LoginAdvice::Hint(forbidden(&self.login)),
                })
            }
            _ => None,
        }
    }

    /// The upstream asks for a login. One that was made meanwhile is used from now on.
    fn asked(&self) -> Cause {
        let is_there = self.look();
        if !is_there {
            self.needs.becomes(Need::Asked);
        }
        // Whoever waits for a login goes on at once where one is there.
        let mut state = self.lock();
        (state.is_missing, state.seen) = (true, Some(None));
        drop(state);
        match is_there {
            true => Cause::new(CauseCode::LoginRequired, "a login was made just now").advise("try again"),
            false => self.to_log_in(""),
        }
    }

    /// The upstream wants a token that allows this, too: that is kept for the next login. Whether it wants anything beyond what there is.
    async fn wants(&self, scope: &str) -> bool {
        let asked: Vec<String> = scopes_of(scope);
        let known = self.lock().wanted.clone();
        if asked.iter().all(|scope| known.contains(scope)) {
            return !known.is_empty();
        }
        let Ok(store) = Store::of(&self.login) else { return false };
        let Ok(_lock) = store.locked().await else { return false };
        let Ok(mut record) = self.own(&store) else { return false };
        if record.wants(&asked) {
            self.keep(&store, &record);
        }
        self.lock().wanted.clone_from(&record.wanted);
        self.shows(Some(&record));
        !record.wanted.is_empty()
    }

    fn shows(&self, record: Option<&Record>) {
        if let Some(show) = self.show.get() {
            show(record.map(shown));
        }
    }

    /// Shows from now on which login is used.
    pub(crate) fn shown_by(&self, show: Show) {
        let _first = self.show.set(show);
    }

    /// The access token: as it is kept, where it will do, and is not the one that was refused; else a new one.
    pub(crate) async fn token(
        &self,
        refused: &(dyn Fn(&str) -> bool + Sync),
        tasks: &Tasks,
    ) -> Result<Issued, Unissued> {
        let store = Store::of(&self.login)?;
        let stamp = private::off_the_workers(|| store.stamp());
        let dead = {
            let mut state = self.lock();
            (state.is_missing, state.seen) = (false, Some(stamp));
            state.dead.clone()
        };
        let refused = &|token: &str| refused(token) || dead.as_deref() == Some(token);
        let found = match self.own(&store) {
            Ok(record) if self.will_do(&record, refused) => Ok(record),
            // What has no successor is shown to its end.
            Ok(record) if record.refresh.is_none() && !record.is_over() && !refused(&record.access) => Ok(record),
            Ok(record) if record.refresh.is_none() => Err(self.ended(&record, tasks).await.into()),
            Ok(_) => self.refreshed(&store, refused, tasks).await,
            Err(why) => Err(why.into()),
        };
        match &found {
            Ok(record) => {
                self.lock().wanted.clone_from(&record.wanted);
                self.shows(Some(record));
            }
            Err(unissued) if unissued.why.code() == CauseCode::LoginRequired => {
                self.lock().is_missing = true;
                // Where none is left at all, the next request goes without.
                self.look();
                self.shows(None);
            }
            // A server that is down, or one request that is refused, takes the login from nobody.
            Err(_) => {}
        }
        // Nought would say that its end is not known.
        let lasts = |record: &Record| Some(record.left()?.max(Duration::from_millis(1)));
        found.map(|record| Issued { lasts: lasts(&record), token: record.access })
    }

    /// Whether the file is another one than was read: of a person, or of another process. It is looked at once a second at most.
    pub(crate) fn has_changed(&self) -> bool {
        if !self.needs.may_look() {
            return false;
        }
        let seen = self.lock().seen;
        let (Some(seen), Ok(store)) = (seen, Store::of(&self.login)) else { return false };
        private::off_the_workers(|| store.stamp()) != seen
    }

    /// Another login was made in this very process: whoever waits for one need not look for it.
    pub(crate) fn was_made(&self) {
        self.look();
        self.made.notify_waiters();
    }

    /// Resolves when another login is there than the one that a person was to make; never where none is missing.
    pub(crate) async fn came(&self) {
        let seen = |state: &State| state.seen.filter(|_| state.is_missing);
        let Some(before) = seen(&self.lock()) else { return std::future::pending().await };
        let Ok(store) = Store::of(&self.login) else { return std::future::pending().await };
        loop {
            // Before it is looked: what is made meanwhile is not missed.
            let made = self.made.notified();
            if private::off_the_workers(|| store.stamp()) != before {
                break;
            }
            tokio::select! {
                () = made => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
        self.look();
    }

    /// Resolves when the login that is used is kept no more: a person has logged out, whether a call has missed it first or not.
    pub(crate) async fn went(&self) {
        let Ok(store) = Store::of(&self.login) else { return std::future::pending().await };
        let mut was_kept = false;
        loop {
            self.needs.until_shown().await;
            was_kept |= self.is_kept();
            sleep(LOOK_EVERY).await;
            let (stamp, used) = (private::off_the_workers(|| store.stamp()), self.lock().used());
            if (was_kept || used.is_some()) && !self.is_kept() {
                self.look();
                self.secrets.forget();
                self.shows(None);
                return;
            }
            if used.is_some_and(|used| used != stamp) {
                self.is_of_another();
            }
        }
    }

    /// Asks for the next tokens, where no other process has done that meanwhile.
    async fn refreshed(
        &self,
        store: &Store,
        refused: &(dyn Fn(&str) -> bool + Sync),
        tasks: &Tasks,
    ) -> Result<Record, Unissued> {
        let _lock = store.locked().await?;
        let mut record = self.own(store)?;
        if self.will_do(&record, refused) {
            return Ok(record);
        }
        let Some(refresh) = record.refresh.clone() else {
            return Err(self.ended(&record, tasks).await.into());
        };
        // What is asked for now would come too late to be kept.
        if tasks.is_ending() {
            return Err(Cause::new(CauseCode::Stopping, "upstream stopping").into());
        }
        // A secret that was put right in the configuration counts.
        let client = self.login.client.clone().unwrap_or_else(|| record.client());
        let is_registered = self.login.client.is_none();
        let (url, audience) = (&*record.token_endpoint, &*record.audience);
        let endpoint = Endpoint { login: &self.login, url, client: &client, is_registered, audience, tasks };
        let given = endpoint.for_refresh(&refresh).await;
        let is_good = !record.is_over() && !refused(&record.access);
        match given {
            Ok(given) => {
                record.renewed(given.access, given.refresh, given.lasts);
                self.keep(store, &record);
                Ok(record)
            }
            Err(Refused::Over(why)) => {
                // Nobody shows it again: some servers take that for a theft.
                record.refresh = None;
                self.keep(store, &record);
                tracing::warn!(upstream = &*self.login.upstream, cause = &*why.full(), "a login has ended");
                if is_good { Ok(record) } else { Err(self.ended(&record, tasks).await.into()) }
            }
            // What is there is good for a little longer.
            Err(Refused::Now(Unissued { why, .. })) if is_good => {
                tracing::warn!(upstream = &*self.login.upstream, cause = &*why.full(), "no other access token yet");
                Ok(record)
            }
            Err(Refused::Now(unissued)) => Err(unissued),
        }
    }

    /// Why a login without a successor is of no use. Where the upstream refused its token, and that has not ended, the upstream is asked
    /// once whether it takes it for nothing any more: then nothing is sent with it. A refusal of one request alone says nothing of others.
    async fn ended(&self, record: &Record, tasks: &Tasks) -> Cause {
        let is_dead = || self.lock().dead.as_deref() == Some(&*record.access);
        if record.is_over() || is_dead() {
            return self.to_log_in(": the last login has ended or was revoked");
        }
        if refuses(&self.login, &record.access, tasks).await == Some(true) {
            self.lock().dead = Some(record.access.clone());
            return self.to_log_in(": the last login has ended or was revoked");
        }
        let said = "the upstream refuses this request, and not its login as a whole";
        Cause::new(CauseCode::HttpStatus(StatusCode::UNAUTHORIZED.as_u16()), said).advise(&forbidden(&self.login))
    }

    fn will_do(&self, record: &Record, refused: &(dyn Fn(&str) -> bool + Sync)) -> bool {
        !record.is_near_its_end() && !refused(&record.access)
    }

    /// What is kept, or was to be. What is read is a secret before anybody is shown it.
    fn read(&self, store: &Store) -> Result<Record, Cause> {
        let read = private::off_the_workers(|| store.read()).map_err(|error| {
            let path = format!(" ({})", store.path().display());
            self.to_log_in(&format!(": the kept login cannot be used: {error}")).foreign(&path)
        });
        let record = self.lock().latest(read?).ok_or_else(|| self.to_log_in(""))?;
        if let Some(why) = unfit(&record, &self.login) {
            return Err(self.to_log_in(why));
        }
        private::off_the_workers(|| record.secrets().for_each(|secret| self.note(&self.secrets, secret)));
        Ok(record)
    }

    /// The same, where it is of the account whose sessions are open.
    fn own(&self, store: &Store) -> Result<Record, Cause> {
        self.sessions.own(self.read(store)?)
    }

    /// Whether the login that is kept may be of another account than the sessions that are open.
    pub(crate) fn is_of_another(&self) -> bool {
        self.sessions.are_over_by(|| self.read(&Store::of(&self.login).ok()?).ok())
    }

    /// What was given out is a secret of the process: in all texts where the operator has named who gives it out.
    pub(crate) fn note(&self, secrets: &mask::Learned, secret: &str) {
        match self.login.issuer {
            Some(_) => secrets.note(secret),
            None => secrets.note_given(secret),
        }
    }

    fn keep(&self, store: &Store, record: &Record) {
        private::off_the_workers(|| record.secrets().for_each(|secret| self.note(&self.secrets, secret)));
        let written = private::off_the_workers(|| store.write(record));
        if let Err(error) = &written {
            let upstream = &*self.login.upstream;
            tracing::error!(upstream, %error, "a login cannot be kept: other processes will need a new one");
        }
        let stamp = private::off_the_workers(|| store.stamp());
        let mut state = self.lock();
        (state.unwritten, state.seen) = (written.is_err().then(|| record.clone()), Some(stamp));
    }

    /// A person is to log in, and why.
    fn to_log_in(&self, why: &str) -> Cause {
        Cause::new(CauseCode::LoginRequired, format!("needs login{why}"))
            .advise(&format!("run `{}`", self.login.command()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
