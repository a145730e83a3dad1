//! Whose an instance of an upstream is, and what it is told that it may ask.

use super::config::{Config, Credentials};
use crate::call::caller::{ClientSession, Principal};
use crate::call::share::Share;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::capabilities::beyond::{Beyond, Declared};
use crate::protocol::revision::Era;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the one client of a gateway may take to say what it can be asked.
const SAID_WITHIN: Duration = Duration::from_millis(250);
/// All that can be passed on from a handshake upstream.
pub(crate) const BRIDGED: Capabilities = Capabilities::QUESTIONS.with(Capabilities::APPS);

/// What the one client of a gateway has declared, once it has.
pub(crate) type DeclaredLater = watch::Receiver<Option<Declared>>;

/// For whom something is that belongs to no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Nobody in particular.
    Everyone,
    /// Everyone but the handshake sessions of which this holds.
    Others(Others),
    /// The handshake session with this id.
    Session(Arc<str>),
    /// All clients of one principal, or those of them whose access tokens allow the same as its.
    Principal(Principal),
}

/// Tells handshake sessions, by their ids, that something is not for: they have it from elsewhere.
#[derive(Clone)]
pub struct Others(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Others {
    /// Those of which this does not hold.
    pub fn new(has_own: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(has_own))
    }

    /// Whether it is not for this session.
    pub fn excludes(&self, session: &str) -> bool {
        (self.0)(session)
    }
}

impl PartialEq for Others {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Others {}

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Others")
    }
}

/// Whose an instance is.
#[derive(Debug, Clone)]
pub(crate) enum Holder {
    /// Of all who call: the primary.
    Everyone,
    /// Of one handshake session.
    Session(Arc<ClientSession>),
    /// Of one principal.
    Principal(Principal),
}

/// Whose an instance is, and what it is told. Clones are the same.
#[derive(Clone)]
pub(crate) struct Ownership {
    pub(crate) holder: Holder,
    /// Whose share of what all instances have in common it takes; `None` for the primary one.
    pub(crate) share: Option<Share>,
    /// What a handshake declares where no client has said anything.
    told: Declared,
    /// Where the gateway has one client only: what that has declared.
    said: Option<DeclaredLater>,
    /// And its session, once there is one.
    only: Arc<Mutex<Option<Arc<ClientSession>>>>,
    /// The era of its clients, once it is known that they are all of one.
    era: Arc<OnceLock<Era>>,
}

impl Ownership {
    /// Of all who call.
    pub(crate) fn everyone(config: &Config) -> Self {
        let told = if config.is_http() { BRIDGED } else { config.offered() };
        Self {
            holder: Holder::Everyone,
            share: None,
            told: told.into(),
            said: None,
            only: Arc::default(),
            era: Arc::default(),
        }
    }

    /// Of the one client of this gateway.
    pub(crate) fn client(config: &Config, said: DeclaredLater) -> Self {
        Self { said: Some(said), ..Self::everyone(config) }
    }

    /// Of one session. A handshake declares what the session does: the call that it begins with may say less.
    pub(crate) fn session(tenant: &Arc<ClientSession>, beyond: &Beyond) -> Self {
        let holder = Holder::Session(tenant.clone());
        let told = Declared { can: tenant.can().and(BRIDGED), beyond: beyond.clone() };
        let owner = Self { holder, share: None, told, said: None, only: Arc::default(), era: Arc::default() };
        owner.is_of_era(Era::Legacy);
        owner
    }

    /// Of one principal, the first of whose clients declares this beyond the protocol. Over HTTP that is left to the
    /// sessions of its calls.
    pub(crate) fn principal(config: &Config, whose: &Principal, beyond: &Beyond) -> Self {
        // What an exchanged token may tell is not for those whose own allows less.
        let is_exchanged = config.credentials.as_ref().is_some_and(Credentials::is_exchange);
        let whose = if is_exchanged { whose.clone() } else { whose.in_general() };
        let mut owner = Self { holder: Holder::Principal(whose), ..Self::everyone(config) };
        if !config.is_http() {
            owner.told.beyond = beyond.clone();
        }
        owner
    }

    /// The same, in the name of this share.
    pub(crate) fn with_share(self, share: Share) -> Self {
        Self { share: Some(share), ..self }
    }

    /// All its clients are of this era.
    pub(crate) fn is_of_era(&self, era: Era) {
        let _is_first = self.era.set(era);
    }

    /// The era of its clients, where they are all of one.
    pub(crate) fn era(&self) -> Option<Era> {
        self.era.get().copied()
    }

    /// Whether several clients may have it in common.
    pub(crate) fn is_of_many(&self) -> bool {
        matches!(self.holder, Holder::Everyone) && self.said.is_none()
    }

    /// The one session that every question of this instance is for, whether a call of it is open or not.
    pub(crate) fn session_of_all(&self) -> Option<Arc<ClientSession>> {
        match &self.holder {
            Holder::Session(tenant) => Some(tenant.clone()),
            _ => self.only.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// For whom what it tells is that belongs to no call.
    pub(crate) fn audience(&self) -> Audience {
        match (&self.holder, self.session_of_all()) {
            (_, Some(tenant)) => Audience::Session(tenant.id().clone()),
            (Holder::Principal(whose), None) => Audience::Principal(whose.clone()),
            _ => Audience::Everyone,
        }
    }

    /// Whether it is this session's alone.
    pub(crate) fn is_of(&self, session: Option<&Arc<ClientSession>>) -> bool {
        session.is_some_and(|session| self.session_of_all().is_some_and(|whose| whose.id() == session.id()))
    }

    /// The one client of this gateway has this session now.
    pub(crate) fn belongs_to(&self, tenant: &Arc<ClientSession>) {
        if self.said.is_some() {
            *self.only.lock().unwrap_or_else(PoisonError::into_inner) = Some(tenant.clone());
        }
    }

    /// What a handshake declares, where it does not depend on what a client has yet to say.
    pub(crate) fn declares_now(&self) -> Option<Declared> {
        match &self.said {
            Some(said) => said.borrow().clone().map(Self::told_by),
            None => Some(self.told.clone()),
        }
    }

    /// What a handshake declares where the one client has said this.
    pub(crate) fn told_by(said: Declared) -> Declared {
        Declared { can: said.can.and(BRIDGED), ..said }
    }

    /// What a handshake declares. Where there is one client, it is given a moment to say so.
    pub(crate) async fn declares(&self) -> Declared {
        let Some(mut said) = self.said.clone() else { return self.told.clone() };
        let said = match timeout(SAID_WITHIN, said.wait_for(Option::is_some)).await {
            Ok(Ok(declared)) => declared.clone(),
            _ => None,
        };
        said.map_or_else(|| self.told.clone(), Self::told_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::tests::rig::config;

    #[tokio::test(start_paused = true)]
    async fn the_one_client_is_given_a_moment_to_say_what_it_can_be_asked() {
        let (say, said) = watch::channel(None);
        let owner = Ownership::client(&config(), said);
        let begun = tokio::time::Instant::now();
        assert_eq!(owner.declares().await, config().offered().into());
        assert_eq!(begun.elapsed(), SAID_WITHIN);
        let beyond = Beyond::parse(br#"{"experimental":{"x":{}}}"#);
        let can = Capabilities::ROOTS.with(Capabilities::TASKS);
        say.send_replace(Some(Declared { can, beyond: beyond.clone() }));
        let told = Declared { can: Capabilities::ROOTS, beyond };
        assert_eq!(owner.declares().await, told);
        assert_eq!(begun.elapsed(), SAID_WITHIN);
        drop(say);
        assert_eq!(owner.declares().await, told);
    }

    #[test]
    fn a_child_of_several_principals_is_promised_nothing_that_is_not_configured() {
        let many = |offer| Config { principals: 2, offer, ..config() };
        assert_eq!(Ownership::everyone(&many(None)).told, Capabilities::NONE.into());
        assert_eq!(Ownership::everyone(&many(Some(Capabilities::ROOTS))).told, Capabilities::ROOTS.into());
        let all = [many(None), many(Some(Capabilities::ROOTS)), many(Some(Capabilities::NONE)), config()];
        assert_eq!(all.map(|one| one.doubt().is_some()), [true, true, false, false]);
        let own = Config { sharing: crate::upstream::config::Sharing::PerPrincipal, ..many(None) };
        assert!(own.doubt().is_none() && own.offered() == config().offered());
    }

    #[test]
    fn questions_are_for_a_session_only_where_it_has_the_instance_alone() {
        let tenant = Arc::new(ClientSession::mute("s"));
        assert!(Ownership::session(&tenant, &Beyond::default()).session_of_all().is_some());
        let shared = Ownership::everyone(&config());
        shared.belongs_to(&tenant);
        assert!(shared.session_of_all().is_none());
        let only = Ownership::client(&config(), watch::channel(None).1);
        assert!(only.session_of_all().is_none());
        only.belongs_to(&tenant);
        assert!(only.session_of_all().is_some() && only.is_of(Some(&tenant)) && !only.is_of(None));
        let ann = Principal::named("ann");
        let of_ann = Ownership::principal(&config(), &ann, &Beyond::default());
        assert!(of_ann.session_of_all().is_none());
        assert_eq!(of_ann.audience(), Audience::Principal(ann.clone()));
        let reader = ann.allowed("read");
        let of_reader = Ownership::principal(&config(), &reader, &Beyond::default());
        let Audience::Principal(whose) = of_reader.audience() else { panic!("it is a principal's") };
        assert!(whose.includes(&reader) && whose.includes(&Principal::named("ann").allowed("write")));
        assert_eq!((shared.audience(), only.audience()), (Audience::Everyone, Audience::Session("s".into())));
    }

    #[tokio::test]
    async fn an_instance_of_a_session_is_told_what_that_has_declared() {
        let tenant = Arc::new(ClientSession::mute("s").able(Capabilities::ROOTS.with(Capabilities::TASKS)));
        let beyond = Beyond::parse(br#"{"experimental":{"x":{}}}"#);
        let told = Ownership::session(&tenant, &beyond).declares().await;
        assert_eq!(told, Declared { can: Capabilities::ROOTS, beyond });
    }
}
