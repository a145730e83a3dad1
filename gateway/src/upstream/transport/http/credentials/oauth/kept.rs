//! The tokens of a login while the gateway runs: read, refreshed ahead of their end by one process, kept.

use super::grant::{Endpoint, Refused};
use super::record::Record;
use super::resource::is_same;
use super::store::{Stamp, Store};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::upstream::config::Login;
use crate::upstream::transport::http::credentials::token::{Issued, Unissued};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often it is looked for a login that is missing.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The login for one upstream.
pub(crate) struct Kept {
    login: Login,
    /// What is given out is a secret of the process.
    secrets: mask::Learned,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether a person had to log in when a token was wanted last.
    is_missing: bool,
    /// What could not be written: the file holds what is good no more.
    unwritten: Option<Record>,
    /// How the file was when it was read or written last, and when it was looked at.
    seen: Option<Stamp>,
    looked: Option<Instant>,
}

impl State {
    /// What is kept, or was to be: what was given last.
    fn latest(&mut self, kept: Option<Record>) -> Option<Record> {
        match (kept, &self.unwritten) {
            (Some(kept), Some(unwritten)) if unwritten.given >= kept.given => Some(unwritten.clone()),
            (kept, _) => {
                self.unwritten = None;
                kept
            }
        }
    }
}

impl Kept {
    /// Nothing is read yet.
    pub(crate) fn new(login: Login) -> Self {
        Self { login, secrets: mask::Learned::new(), state: Mutex::default() }
    }

    /// The access token: as it is kept, where it will do, and is not the one that was refused; else a new one.
    pub(crate) async fn token(
        &self,
        refused: &(dyn Fn(&str) -> bool + Sync),
        tasks: &Tasks,
    ) -> Result<Issued, Unissued> {
        let store = Store::of(&self.login)?;
        let stamp = private::off_the_workers(|| store.stamp());
        {
            let mut state = self.lock();
            (state.is_missing, state.seen) = (false, Some(stamp));
        }
        let found = match self.read(&store) {
            Ok(record) if self.will_do(&record, refused) => Ok(record),
            // What has no successor is shown to its end.
            Ok(record) if record.refresh.is_none() && !record.is_over() && !refused(&record.access) => Ok(record),
            Ok(record) if record.refresh.is_none() => Err(self.to_log_in(": the last login has ended").into()),
            Ok(_) => self.refreshed(&store, refused, tasks).await,
            Err(why) => Err(why.into()),
        };
        if found.as_ref().is_err_and(|unissued| unissued.why.code() == CauseCode::LoginRequired) {
            self.lock().is_missing = true;
        }
        // Nought would say that its end is not known.
        let lasts = |record: &Record| Some(record.left()?.max(Duration::from_millis(1)));
        found.map(|record| Issued { lasts: lasts(&record), token: record.access })
    }

    /// Whether the file is another one than was read: a person has logged in anew, or another process has refreshed the tokens. It is looked
    /// at once a second at most.
    pub(crate) fn has_changed(&self) -> bool {
        let seen = {
            let (mut state, now) = (self.lock(), Instant::now());
            if state.looked.is_some_and(|looked| now < looked + LOOK_EVERY) {
                return false;
            }
            state.looked = Some(now);
            state.seen
        };
        let (Some(seen), Ok(store)) = (seen, Store::of(&self.login)) else { return false };
        private::off_the_workers(|| store.stamp()) != seen
    }

    /// Resolves when another login is there than the one that a person was to make; never where none is missing.
    pub(crate) async fn came(&self) {
        let seen = |state: &State| state.seen.filter(|_| state.is_missing);
        let Some(before) = seen(&self.lock()) else { return std::future::pending().await };
        let Ok(store) = Store::of(&self.login) else { return std::future::pending().await };
        while private::off_the_workers(|| store.stamp()) == before {
            sleep(LOOK_EVERY).await;
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
        let mut record = self.read(store)?;
        if self.will_do(&record, refused) {
            return Ok(record);
        }
        let Some(refresh) = record.refresh.clone() else {
            return Err(self.to_log_in(": the last login has ended").into());
        };
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
                if is_good {
                    Ok(record)
                } else {
                    Err(self.to_log_in(": the last login has ended or was revoked").into())
                }
            }
            // What is there is good for a little longer.
            Err(Refused::Now(Unissued { why, .. })) if is_good => {
                tracing::warn!(upstream = &*self.login.upstream, cause = &*why.full(), "no other access token yet");
                Ok(record)
            }
            Err(Refused::Now(unissued)) => Err(unissued),
        }
    }

    fn will_do(&self, record: &Record, refused: &(dyn Fn(&str) -> bool + Sync)) -> bool {
        !record.is_near_its_end() && !refused(&record.access)
    }

    /// What is kept, or was to be. What is read is a secret before anybody is shown it.
    fn read(&self, store: &Store) -> Result<Record, Cause> {
        let read = private::off_the_workers(|| store.read());
        let read = read.map_err(|error| self.to_log_in(&format!(": the kept login cannot be used: {error}")));
        let record = self.lock().latest(read?);
        // A file of another resource says nothing of this one.
        let record = record.filter(|record| record.resource == self.login.resource);
        let record = record.ok_or_else(|| self.to_log_in(""))?;
        if self.login.issuer.as_ref().is_some_and(|issuer| !is_same(issuer, &record.issuer)) {
            return Err(self.to_log_in(": the last login was at another authorization server than `issuer`"));
        }
        if self.login.client.as_ref().is_some_and(|client| client.id != record.client_id) {
            return Err(self.to_log_in(": the last login was that of another client than `client_id`"));
        }
        private::off_the_workers(|| record.secrets().for_each(|secret| self.secrets.note(secret)));
        Ok(record)
    }

    fn keep(&self, store: &Store, record: &Record) {
        private::off_the_workers(|| record.secrets().for_each(|secret| self.secrets.note(secret)));
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
            .advise(&format!("run `trunkline login {}`", self.login.upstream))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::super::way::tests::login;
    use super::*;
    use crate::runtime::Scratch;
    use crate::upstream::config::Registered;
    use std::path::Path;

    fn kept(state: &Path) -> (Kept, Store) {
        let login = Login { state: Some(state.to_owned()), ..login("up", 1) };
        (Kept::new(login.clone()), Store::of(&login).unwrap())
    }

    async fn token(kept: &Kept, refused: &str) -> Result<String, String> {
        let issued = kept.token(&|token| token == refused, &Tasks::new()).await;
        issued.map(|issued| issued.token).map_err(|unissued| unissued.why.full().into_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn who_needs_a_login_is_told_of_the_next_one() {
        let scratch = Scratch::new();
        let (kept, store) = kept(&scratch.0);
        assert_eq!(token(&kept, "").await.unwrap_err(), "needs login; run `trunkline login up`");
        let mut came = std::pin::pin!(kept.came());
        assert!(tokio::time::timeout(LOOK_EVERY * 5, &mut came).await.is_err());
        store.write(&record("http://127.0.0.1:1/mcp", "canary-of-kept-a", None)).unwrap();
        came.await;
        assert_eq!(token(&kept, "").await.as_deref(), Ok("canary-of-kept-a"));
        assert_eq!(mask::masked("canary-of-kept-a"), "[secret]");
        assert!(tokio::time::timeout(LOOK_EVERY * 5, kept.came()).await.is_err(), "none is missing");
        let why = token(&kept, "canary-of-kept-a").await.unwrap_err();
        assert_eq!(why, "needs login: the last login has ended; run `trunkline login up`");
    }

    #[tokio::test]
    async fn a_login_at_another_server_or_of_another_client_than_is_configured_is_not_shown() {
        let scratch = Scratch::new();
        let (before, store) = kept(&scratch.0);
        store.write(&record("http://127.0.0.1:1/mcp", "canary-of-kept-c", None)).unwrap();
        let client = |id: &str| Some(Registered { id: id.to_owned(), secret: None, is_in_body: false });
        for (issuer, client, why) in [
            (Some("https://as.example"), client("me"), None),
            (Some("https://other.example"), None, Some("at another authorization server than `issuer`")),
            (None, client("other"), Some("of another client than `client_id`")),
        ] {
            let issuer = issuer.map(str::to_owned);
            let kept = Kept::new(Login { issuer, client, ..before.login.clone() });
            match (token(&kept, "").await, why) {
                (Ok(_), None) => {}
                (Err(said), Some(why)) => assert!(said.contains(why) && said.contains("trunkline login"), "{said}"),
                (found, why) => panic!("{found:?} {why:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_login_is_noticed_and_what_one_has_written_oneself_is_none() {
        let scratch = Scratch::new();
        let (kept, store) = kept(&scratch.0);
        let mut first = record("http://127.0.0.1:1/mcp", "canary-of-kept-d", None);
        token(&kept, "").await.unwrap_err();
        kept.keep(&store, &first);
        assert!(tokio::time::timeout(LOOK_EVERY * 5, kept.came()).await.is_err(), "nobody has logged in");
        token(&kept, "").await.unwrap();
        assert!(!kept.has_changed());
        kept.keep(&store, &first);
        tokio::time::advance(LOOK_EVERY).await;
        assert!(!kept.has_changed());
        first.access = "canary-of-kept-e".to_owned();
        store.write(&first).unwrap();
        assert!(!kept.has_changed(), "it was looked at just now");
        tokio::time::advance(LOOK_EVERY).await;
        assert!(kept.has_changed());
        assert_eq!(token(&kept, "").await.as_deref(), Ok("canary-of-kept-e"));
        tokio::time::advance(LOOK_EVERY).await;
        assert!(!kept.has_changed());
    }

    #[tokio::test]
    async fn a_login_of_another_resource_is_not_shown() {
        let scratch = Scratch::new();
        let (kept, store) = kept(&scratch.0);
        store.write(&record("http://127.0.0.1:2/mcp", "canary-of-kept-b", None)).unwrap();
        assert_eq!(token(&kept, "").await.unwrap_err(), "needs login; run `trunkline login up`");
    }

    #[test]
    fn tokens_that_cannot_be_written_are_used_by_this_process_until_others_are_there() {
        let scratch = Scratch::new();
        let (kept, store) = kept(&scratch.0);
        let (folder, aside) = (scratch.0.join("logins"), scratch.0.join("aside"));
        let mut first = record("http://127.0.0.1:1/mcp", "a", Some("r"));
        first.given -= 10;
        store.write(&first).unwrap();
        let second = record("http://127.0.0.1:1/mcp", "b", Some("s"));
        std::fs::rename(&folder, &aside).unwrap();
        std::fs::write(&folder, "in the way").unwrap();
        kept.keep(&store, &second);
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(&aside, &folder).unwrap();
        assert!(kept.read(&store).unwrap() == second);
        let mut third = record("http://127.0.0.1:1/mcp", "c", None);
        third.given += 10_000;
        store.write(&third).unwrap();
        assert!(kept.read(&store).unwrap() == third && kept.lock().unwritten.is_none());
    }
}
