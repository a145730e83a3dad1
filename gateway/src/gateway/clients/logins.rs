//! Logins that people make at pages of the gateway, as upstreams make them.

use super::place::Place;
use crate::call::caller::Principal;
use crate::config::Config;
use crate::downstream::config::Address;
use crate::gateway::upstreams::Upstreams;
use crate::health::Cause;
use crate::health::row::State;
use crate::policy::connect::{Begun, Callers, Connect, Doing, Ended, Entry, Logins, Registrant};
use crate::runtime::Tasks;
use crate::upstream;
use crate::upstream::Upstream;
use crate::upstream::config::Login;
use crate::upstream::logins::{BegunLogin, Reached};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// So long whoever has logged in waits at most for the upstream to be connected.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// How callers come in at a listener.
pub(super) struct Way<'a> {
    /// The address, as bound.
    pub(super) at: &'a Address,
    /// The names of the tokens that count.
    pub(super) tokens: Option<Vec<Arc<str>>>,
    pub(super) asks_certificate: bool,
}

/// The logins of these upstreams.
pub(crate) struct PersonalLogins {
    upstreams: Arc<Upstreams>,
    tasks: Tasks,
}

impl PersonalLogins {
    /// Made by tasks of this level.
    pub(crate) fn new(upstreams: &Arc<Upstreams>, tasks: &Tasks) -> Self {
        Self { upstreams: upstreams.clone(), tasks: tasks.clone() }
    }

    /// Tells where browsers reach the pages: where the configuration says it, else on this machine, if
    /// clients can be nowhere else: a link that leads to the machine of another would be shown to whatever listens there.
    pub(crate) fn reached(connect: &Connect, config: &Config, places: &[Place]) {
        if config.server.path.starts_with("/connect/") {
            return;
        }
        let is_near = |place: &Place| match &place.address {
            Address::Tcp(address) => address.ip().is_loopback() && !place.is_tls,
            Address::Unix(_) => true,
            Address::Handed(_) => false,
        };
        let tcp = |place: &Place| match &place.address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) | Address::Handed(_) => None,
        };
        let near = places.iter().all(is_near).then(|| places.iter().find_map(tcp)).flatten();
        match (&config.server.public_url, near) {
            (Some(public), _) => connect.reached_at(&public.to_string()),
            (None, Some(address)) => connect.reached_at(&format!("http://{address}")),
            (None, None) => {}
        }
    }

    /// Tells who may call, by which listeners there are, and whether they log in for themselves.
    pub(super) fn called<'a>(connect: &Connect, config: &Config, ways: impl Iterator<Item = Way<'a>>) {
        let mut callers = Callers::default();
        for Way { at, tokens, asks_certificate } in ways {
            callers.come_in(&config.auth.only(tokens.as_deref()), matches!(at, Address::Unix(_)), asks_certificate);
        }
        let has_own = config.upstreams.iter().any(upstream::config::Config::has_personal_logins);
        connect.called_by(callers, has_own);
    }

    /// The upstream of a name, and the login that is meant for a principal there.
    fn find(&self, name: &str, principal: &Principal) -> Option<(Upstream, Login)> {
        let upstream = self.upstreams.find(name)?;
        let login = upstream.config().may_log_in()?.of(principal.name());
        Some((upstream, login))
    }
}

impl Logins for PersonalLogins {
    fn entry(&self, upstream: &str, principal: &Principal) -> Option<Entry> {
        let login = self.find(upstream, principal)?.1;
        let client = login.client.as_ref().map(|client| &client.id);
        let place = format!("{} {:?} {:?} {client:?}", login.at.url, login.resource, login.issuer);
        Some(Entry { is_own: login.principal.is_some(), command: login.command(), place })
    }

    fn begin(&self, upstream: &str, principal: &Principal, client: Registrant) -> Doing<Begun> {
        let (found, tasks) = (self.find(upstream, principal), self.tasks.clone());
        let principal = principal.clone();
        Box::pin(async move {
            let (upstream, login) = found.ok_or("the gateway has no such upstream any more")?;
            let reached = Reached { redirect: &client.redirect, document: client.document.as_deref() };
            let begun = BegunLogin::begin(&login, reached, &tasks).await.map_err(|why| told(&upstream, &why))?;
            Ok(Begun {
                url: begun.url().to_owned(),
                state: begun.state().to_owned(),
                issuer: begun.issuer().to_owned(),
                elsewhere: begun.elsewhere(),
                scopes: begun.scopes().to_vec(),
                whose: login.principal.as_deref().map(str::to_owned),
                finish: Box::new(move |query, ended| {
                    Box::pin(async move { finish((upstream, principal), begun, (query, ended), tasks).await })
                }),
            })
        })
    }
}

/// Why a login that was begun is not finished.
const OVER: &str = "since it was begun the upstream was removed or leads elsewhere, or whoever the link was told may not log in there any more";

async fn finish(
    (upstream, principal): (Upstream, Principal),
    begun: BegunLogin,
    (query, ended): (String, Ended),
    tasks: Tasks,
) -> Result<bool, String> {
    let made = tokio::select! {
        biased;
        () = ended => return Err(OVER.to_owned()),
        made = begun.finish(&query, &tasks) => made.map_err(|why| told(&upstream, &why))?,
    };
    tracing::info!(
        upstream = &**upstream.name(),
        principal = principal.name(),
        issuer = made.issuer,
        "a person has logged in by a page"
    );
    // Before it is looked: what happens meanwhile is not missed.
    let mut changes = upstream.changes();
    upstream.seat(&principal).login_was_made();
    let is_settled = || matches!(upstream.seat(&principal).state(), State::Ready | State::Idle | State::Stopped);
    let settled = async { while !is_settled() && changes.changed().await.is_ok() {} };
    let _in_time = timeout(CONNECTED_WITHIN, settled).await;
    Ok(upstream.seat(&principal).state() == State::Ready)
}

/// For the person: our words alone. The log has all of them.
fn told(upstream: &Upstream, why: &Cause) -> String {
    tracing::warn!(upstream = &**upstream.name(), cause = &*why.full(), "a person could not log in by a page");
    why.public().into_owned()
}
