//! The token that is shown now: kept until it ends, and fetched anew by one for all who wait.

use super::exchange::Exchange;
use super::oauth::Show;
use super::source;
use super::source::Source;
use super::token::{Issued, Unissued};
use crate::call::caller::Principal;
use crate::call::caller::credential::subject::Wanted;
use crate::config::{ClientCredentials, Credentials};
use crate::health::{Cause, CauseCode};
use crate::metrics::legs::TokenFetches;
use crate::metrics::sampled;
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::transport::http::{LoginAdvice, Token, TokenSource};
use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// After a failure so long nobody asks for a token, at first and at most; who needs one then is told the same.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// So often who waits begins anew where another one's level ended before the token came.
const ROUNDS_MAX: usize = 4;

/// A token, or why there is none.
type Fetched = Result<Arc<Token>, Cause>;
/// The same, once it is known.
type Later = watch::Receiver<Option<Fetched>>;

/// The token of one upstream, for all its instances.
pub struct Tokens {
    from: Source,
    now: ArcSwapOption<Token>,
    flight: Mutex<Flight>,
    /// What was given out is a secret of the process.
    secrets: mask::Learned,
    /// How often one was fetched, where that is shown.
    fetches: Option<TokenFetches>,
    /// Has the access tokens of clients kept, where they are exchanged.
    _wanted: Option<Wanted>,
}

/// What is known of fetching.
#[derive(Default)]
struct Flight {
    /// The one that is under way, or was last.
    last: Option<Later>,
    /// When a token may be asked for again, and why none came the last time.
    failed: Option<(Instant, Cause)>,
    pause: Duration,
}

/// What one finds who wants a token.
enum Found {
    There(Arc<Token>),
    Failed(Cause),
    Coming(Later),
}

impl Tokens {
    /// From there; nothing is fetched yet.
    fn new(from: Source) -> Self {
        let (now, flight, secrets) = (ArcSwapOption::empty(), Mutex::default(), mask::Learned::new());
        Self { from, now, flight, secrets, fetches: None, _wanted: None }
    }

    /// Those of an upstream, which the metrics show for as long as they are there.
    pub fn shown(from: Credentials, upstream: &str) -> Arc<Self> {
        // What clients show from now on may be exchanged.
        let wanted = from.is_exchange().then(Wanted::new);
        Self { _wanted: wanted, ..Self::new(from.into()) }.shown_at(upstream)
    }

    /// Those of one principal, for which the access tokens of its client are exchanged.
    pub fn exchanged(client: &ClientCredentials, whose: &Principal, upstream: &str) -> Arc<Self> {
        Self::new(Source::Exchange(Box::new(Exchange::new(client, whose)))).shown_at(upstream)
    }

    fn shown_at(self, upstream: &str) -> Arc<Self> {
        let tokens = Arc::new(Self { fetches: Some(TokenFetches::of(upstream)), ..self });
        let seen = Arc::downgrade(&tokens);
        sampled::token(upstream, move || {
            let now = seen.upgrade()?.now.load_full();
            Some(now.and_then(|token| token.ends_in(Instant::now())).map_or(usize::MAX, |left| left.as_secs() as usize))
        });
        tokens
    }

    /// Whether its client has shown another access token than the one that was exchanged last.
    pub fn has_another_to_exchange(&self) -> bool {
        matches!(&self.from, Source::Exchange(exchange) if exchange.has_changed())
    }

    /// The token that is there, if it can be shown. Where its end is near another one is fetched aside, in this level.
    pub(crate) fn at_hand(self: &Arc<Self>, tasks: &Tasks) -> Option<Arc<Token>> {
        let now = Instant::now();
        if let Source::Exchange(exchange) = &self.from
            && exchange.has_changed()
        {
            self.forget();
            return None;
        }
        let token = self.now.load_full().filter(|token| !token.is_over(now))?;
        if let Source::Login(kept) = &self.from
            && kept.has_changed()
            && !kept.is_of_another()
        {
            // Other tokens of the same login. What failed before says nothing of them. What is open goes on to its end with those it began with.
            self.forget();
            return None;
        }
        if token.is_near_its_end(now) {
            let mut flight = self.lock();
            // Another call may have begun it, or it may have come by now.
            let is_wanted = self.now.load().as_ref().is_some_and(|token| token.is_near_its_end(now));
            if is_wanted && flight.may_begin(now).is_none() {
                self.begin(&mut flight, tasks, None);
            }
        }
        Some(token)
    }

    /// The token is shown no more, and what failed before says nothing of the next one.
    fn forget(&self) {
        self.now.store(None);
        let mut flight = self.lock();
        (flight.failed, flight.pause) = (None, Duration::ZERO);
    }

    /// A token that can be shown: the one that is there, or the next one.
    pub(crate) async fn fetched(self: &Arc<Self>, tasks: &Tasks) -> Fetched {
        self.wait(tasks, None).await
    }

    /// Whether another token may be taken where this one, which the upstream refused, is not.
    pub(crate) fn may_replace(&self, refused: &Arc<Token>) -> bool {
        let is_current = self.now.load().as_ref().is_some_and(|now| Arc::ptr_eq(now, refused));
        !is_current || refused.may_be_replaced(Instant::now())
    }

    /// Another token than the one that the upstream refused.
    pub(crate) async fn in_place_of(self: &Arc<Self>, refused: &Arc<Token>, tasks: &Tasks) -> Fetched {
        self.wait(tasks, Some(refused)).await
    }

    /// Shows from now on which login of a person is used, where one is.
    pub fn login_shown_by(&self, show: Show) {
        if let Source::Login(kept) = &self.from {
            kept.shown_by(show);
        }
    }

    /// Whether requests are shown a token: where nothing says so but the upstream, once somebody has logged in.
    pub(crate) fn are_shown(&self) -> bool {
        match &self.from {
            Source::Login(kept) => kept.is_shown(),
            Source::Command(_) | Source::Client(_) | Source::Exchange(_) => true,
        }
    }

    /// A connection is about to be made: somebody may have logged in.
    pub fn look(&self) {
        if let Source::Login(kept) = &self.from {
            kept.look();
        }
    }

    /// What a person runs to log in, where that is where they come from.
    pub fn login_command(&self) -> Option<String> {
        match &self.from {
            Source::Login(kept) => Some(kept.command()),
            Source::Command(_) | Source::Client(_) | Source::Exchange(_) => None,
        }
    }

    /// A person has logged in by this very process: what was known before counts no more.
    pub fn login_was_made(&self) {
        let Source::Login(kept) = &self.from else { return };
        if !kept.is_of_another() {
            self.forget();
        }
        kept.was_made();
    }

    /// Sessions are about to be opened, with the login of whoever has logged in last: they go on with that to their end.
    pub async fn opens(self: &Arc<Self>) -> Option<OfLogin> {
        let Source::Login(kept) = &self.from else { return None };
        let is_another = kept.sessions.begin().await;
        match is_another {
            true => self.forget(),
            // Whatever is kept by now is read anew.
            false => self.now.store(None),
        }
        Some(OfLogin { tokens: self.clone(), is_another })
    }

    /// Keeps calls from going out in sessions that are to end, since a login was made that may be of another account.
    pub fn while_login_is_over(&self, hold_back: impl FnOnce()) {
        if let Source::Login(kept) = &self.from {
            kept.sessions.while_over(hold_back);
        }
    }

    /// Resolves when the sessions that are open are to end, since a login was made that may be of another account.
    pub async fn login_became_another(&self) {
        match &self.from {
            Source::Login(kept) => kept.sessions.over().await,
            Source::Command(_) | Source::Client(_) | Source::Exchange(_) => std::future::pending().await,
        }
    }

    /// What a refusal of the upstream says of a login, where that is where its token comes from.
    pub(crate) async fn refused(
        &self,
        answer: (StatusCode, &HeaderMap),
        is_of_client: bool,
        tasks: &Tasks,
    ) -> Option<LoginAdvice> {
        match &self.from {
            Source::Login(kept) => kept.refused(answer, is_of_client, tasks).await,
            Source::Command(_) | Source::Client(_) | Source::Exchange(_) => None,
        }
    }

    /// Resolves when a person has logged in, or a client has shown another token to be exchanged; never where nobody has to.
    pub async fn login_came(&self) {
        match &self.from {
            Source::Login(kept) => kept.came().await,
            Source::Exchange(exchange) => exchange.changed().await,
            Source::Command(_) | Source::Client(_) => std::future::pending().await,
        }
    }

    /// Whether a person has to log in, and no login is kept.
    pub fn is_logged_out(&self) -> bool {
        matches!(&self.from, Source::Login(kept) if !kept.is_kept())
    }

    /// Resolves when a person has logged out; never where nobody has logged in.
    pub async fn login_went(&self) {
        match &self.from {
            Source::Login(kept) => kept.went().await,
            Source::Command(_) | Source::Client(_) | Source::Exchange(_) => std::future::pending().await,
        }
        self.now.store(None);
        self.secrets.forget();
    }

    async fn wait(self: &Arc<Self>, tasks: &Tasks, refused: Option<&Arc<Token>>) -> Fetched {
        for _ in 0..ROUNDS_MAX {
            let mut coming = match self.find(tasks, refused) {
                Found::There(token) => return Ok(token),
                Found::Failed(why) => return Err(why),
                Found::Coming(coming) => coming,
            };
            let found = coming.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
            // Where it belonged to a level that has ended, another one fetches it.
            match found {
                Some(found) => return found,
                None if tasks.is_ending() => break,
                None => {}
            }
        }
        Err(Cause::new(CauseCode::Stopping, "no access token: upstream stopping"))
    }

    /// The token that is there, unless it is over or the refused one; else what is under way, begun here where nothing is.
    fn find(self: &Arc<Self>, tasks: &Tasks, refused: Option<&Arc<Token>>) -> Found {
        let now = Instant::now();
        let mut flight = self.lock();
        let is_good =
            |token: &Arc<Token>| !token.is_over(now) && refused.is_none_or(|refused| !Arc::ptr_eq(refused, token));
        if let Some(token) = self.now.load_full().filter(is_good) {
            return Found::There(token);
        }
        flight.may_begin(now).unwrap_or_else(|| Found::Coming(self.begin(&mut flight, tasks, refused.cloned())))
    }

    /// Fetches one in a task of this level.
    fn begin(self: &Arc<Self>, flight: &mut Flight, tasks: &Tasks, refused: Option<Arc<Token>>) -> Later {
        let (found, later) = watch::channel(None);
        flight.last = Some(later.clone());
        let (this, level, replaces) = (self.clone(), tasks.clone(), refused.is_some());
        tasks.spawn(async move {
            let issued = source::fetch(&this.from, refused, level.clone()).await;
            // A level that ends says nothing of tokens.
            if !(issued.is_err() && level.is_ending()) {
                let landed = this.landed(issued, replaces);
                found.send_replace(Some(landed));
            }
        });
        later
    }

    /// Keeps what came.
    fn landed(&self, issued: Result<Issued, Unissued>, replaces: bool) -> Fetched {
        let made = issued.and_then(|issued| {
            // What is refused is shown to nobody, and would be looked for in the words of all upstreams.
            let token = Token::new(&issued.token, issued.lasts, replaces)?;
            // Before anybody is shown it.
            private::off_the_workers(|| match &self.from {
                Source::Command(_) | Source::Client(_) | Source::Exchange(_) => self.secrets.note(&issued.token),
                Source::Login(kept) => kept.note(&self.secrets, &issued.token),
            });
            Ok(Arc::new(token))
        });
        let is_failure = |unissued: &Unissued| !is_of_disk(&unissued.why);
        if let Some(fetches) = self.fetches.as_ref().filter(|_| made.as_ref().err().is_none_or(is_failure)) {
            fetches.ended(made.is_ok());
        }
        let mut flight = self.lock();
        flight.last = None;
        match &made {
            Ok(token) => {
                (flight.failed, flight.pause) = (None, Duration::ZERO);
                self.now.store(Some(token.clone()));
            }
            // Whether a person has logged in is asked of nobody but the disk.
            Err(Unissued { why, .. }) if is_of_disk(why) => {
                (flight.failed, flight.pause) = (None, Duration::ZERO);
                // What the upstream takes for nothing is shown no more.
                if replaces {
                    self.now.store(None);
                }
            }
            Err(Unissued { why, pause }) => {
                flight.pause = (flight.pause * 2).clamp(PAUSE.0, PAUSE.1);
                let pause = pause.unwrap_or_default().max(flight.pause);
                flight.failed = Some((Instant::now() + pause, why.clone()));
            }
        }
        made.map_err(|unissued| unissued.why)
    }

    fn lock(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tokens of an upstream as the source of its transport. Shared, because a fetch keeps them while its task runs.
pub struct SharedTokens(pub Arc<Tokens>);

impl TokenSource for SharedTokens {
    fn is_active(&self) -> bool {
        self.0.are_shown()
    }

    fn current(&self, tasks: &Tasks) -> Option<Arc<Token>> {
        self.0.at_hand(tasks)
    }

    fn fetch<'a>(&'a self, tasks: &'a Tasks) -> BoxFuture<'a, Fetched> {
        Box::pin(self.0.fetched(tasks))
    }

    fn can_replace(&self, refused: &Arc<Token>) -> bool {
        self.0.may_replace(refused)
    }

    fn replace<'a>(&'a self, refused: &'a Arc<Token>, tasks: &'a Tasks) -> BoxFuture<'a, Fetched> {
        Box::pin(self.0.in_place_of(refused, tasks))
    }

    fn explain<'a>(
        &'a self,
        refusal: (StatusCode, &'a HeaderMap),
        is_of_client: bool,
        tasks: &'a Tasks,
    ) -> BoxFuture<'a, Option<LoginAdvice>> {
        Box::pin(self.0.refused(refusal, is_of_client, tasks))
    }
}

/// Whether it was the disk that said so, and nobody was asked for a token.
fn is_of_disk(why: &Cause) -> bool {
    matches!(why.code(), CauseCode::LoginRequired | CauseCode::LoginChanged)
}

/// Sessions of one login are open in an instance, for as long as it is there.
pub struct OfLogin {
    tokens: Arc<Tokens>,
    /// Whether it may be of another account than the last one.
    pub is_another: bool,
}

impl Drop for OfLogin {
    fn drop(&mut self) {
        if let Source::Login(kept) = &self.tokens.from {
            kept.sessions.ended();
        }
    }
}

impl Flight {
    /// What there is in place of another attempt; `None` where one may begin.
    fn may_begin(&self, now: Instant) -> Option<Found> {
        // One that ended with its level without a word is none.
        let runs = |later: &&Later| later.has_changed().is_ok();
        if let Some(later) = self.last.as_ref().filter(runs) {
            return Some(Found::Coming(later.clone()));
        }
        let failed = self.failed.as_ref().filter(|(until, _)| now < *until);
        failed.map(|(_, why)| Found::Failed(why.clone()))
    }
}

#[cfg(test)]
mod tests;
