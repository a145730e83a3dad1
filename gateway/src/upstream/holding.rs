//! Whose an instance of an upstream is, and what it is told that it may ask.

use super::config::{Config, Transport};
use super::notice::Audience;
use crate::call::{Principal, Tenant};
use crate::protocol::capability::Capabilities;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the one client of a gateway may take to say what it can be asked.
const SAID_WITHIN: Duration = Duration::from_millis(250);
/// All that can be passed on from a handshake upstream.
pub(crate) const BRIDGED: Capabilities = Capabilities::QUESTIONS.with(Capabilities::APPS);

/// What the one client of a gateway has said that it can be asked, once it has.
pub type Said = watch::Receiver<Option<Capabilities>>;

/// Whose an instance is.
#[derive(Debug, Clone)]
pub(crate) enum Holder {
    /// Of all who call: the primary.
    Everyone,
    /// Of one handshake session.
    Session(Arc<Tenant>),
    /// Of one principal.
    Principal(Principal),
}

/// Whose an instance is, and what it is told.
pub(crate) struct Holding {
    pub(crate) holder: Holder,
    /// What a handshake declares where no client has said anything.
    told: Capabilities,
    /// Where the gateway has one client only: what that can be asked.
    said: Option<Said>,
    /// And its session, once there is one.
    only: Mutex<Option<Arc<Tenant>>>,
}

impl Holding {
    /// Of all who call.
    pub(crate) fn everyone(config: &Config) -> Self {
        let told = match config.transport {
            Transport::Stdio { .. } => config.offer,
            Transport::Http { .. } => BRIDGED,
        };
        Self { holder: Holder::Everyone, told, said: None, only: Mutex::default() }
    }

    /// Of the one client of this gateway.
    pub(crate) fn client(config: &Config, said: Said) -> Self {
        Self { said: Some(said), ..Self::everyone(config) }
    }

    /// Of one session. A handshake declares what the session does: the call that it begins with may say less.
    pub(crate) fn session(tenant: &Arc<Tenant>) -> Self {
        let holder = Holder::Session(tenant.clone());
        Self { holder, told: tenant.can().and(BRIDGED), said: None, only: Mutex::default() }
    }

    /// Of one principal.
    pub(crate) fn principal(config: &Config, whose: &Principal) -> Self {
        Self { holder: Holder::Principal(whose.clone()), ..Self::everyone(config) }
    }

    /// Whether several clients may have it in common.
    pub(crate) fn is_of_many(&self) -> bool {
        matches!(self.holder, Holder::Everyone) && self.said.is_none()
    }

    /// The one session that every question of this instance is for, whether a call of it is open or not.
    pub(crate) fn session_of_all(&self) -> Option<Arc<Tenant>> {
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
    pub(crate) fn is_of(&self, session: Option<&Arc<Tenant>>) -> bool {
        session.is_some_and(|session| self.session_of_all().is_some_and(|whose| whose.id() == session.id()))
    }

    /// The one client of this gateway has this session now.
    pub(crate) fn belongs_to(&self, tenant: &Arc<Tenant>) {
        if self.said.is_some() {
            *self.only.lock().unwrap_or_else(PoisonError::into_inner) = Some(tenant.clone());
        }
    }

    /// What a handshake declares. Where there is one client, it is given a moment to say so.
    pub(crate) async fn declares(&self) -> Capabilities {
        let Some(mut said) = self.said.clone() else { return self.told };
        match timeout(SAID_WITHIN, said.wait_for(Option::is_some)).await {
            Ok(Ok(can)) => can.unwrap_or(self.told).and(BRIDGED),
            _ => self.told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig::config;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_one_client_is_given_a_moment_to_say_what_it_can_be_asked() {
        let (say, said) = watch::channel(None);
        let holding = Holding::client(&config(), said);
        let begun = tokio::time::Instant::now();
        assert_eq!(holding.declares().await, config().offer);
        assert_eq!(begun.elapsed(), SAID_WITHIN);
        say.send_replace(Some(Capabilities::ROOTS.with(Capabilities::TASKS)));
        assert_eq!(holding.declares().await, Capabilities::ROOTS);
        assert_eq!(begun.elapsed(), SAID_WITHIN);
        drop(say);
        assert_eq!(holding.declares().await, Capabilities::ROOTS);
    }

    #[test]
    fn questions_are_for_a_session_only_where_it_has_the_instance_alone() {
        let tenant = Arc::new(Tenant::mute("s"));
        assert!(Holding::session(&tenant).session_of_all().is_some());
        let shared = Holding::everyone(&config());
        shared.belongs_to(&tenant);
        assert!(shared.session_of_all().is_none());
        let only = Holding::client(&config(), watch::channel(None).1);
        assert!(only.session_of_all().is_none());
        only.belongs_to(&tenant);
        assert!(only.session_of_all().is_some() && only.is_of(Some(&tenant)) && !only.is_of(None));
        let ann = Principal::named("ann");
        assert!(Holding::principal(&config(), &ann).session_of_all().is_none());
        assert_eq!(Holding::principal(&config(), &ann).audience(), Audience::Principal(ann));
        assert_eq!((shared.audience(), only.audience()), (Audience::Everyone, Audience::Session("s".into())));
    }

    #[tokio::test]
    async fn an_instance_of_a_session_is_told_what_that_has_declared() {
        let tenant = Tenant::mute("s").able(Capabilities::ROOTS.with(Capabilities::TASKS));
        assert_eq!(Holding::session(&Arc::new(tenant)).declares().await, Capabilities::ROOTS);
    }
}
