//! All authorization servers, and the tokens that were judged.

use super::issuer::KnownIssuer;
use super::provider::Provider;
use super::questions::{self, KEPT_MAX, Turn};
use super::refused::{Refused, UNKNOWN};
use super::token::{self, Judged, TOKEN_MAX, Unjudged};
use crate::call::caller::Peer;
use crate::call::caller::credential::{Credential, Revocation, subject};
use crate::call::share::Share;
use crate::config::{Auth, Issuer, Resource, ResourceFace};
use crate::rights::{Changed, RightsBook};
use crate::runtime::Tasks;
use crate::runtime::timer::late::passes;
use arc_swap::ArcSwap;
use dashmap::{DashMap, Entry};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::HeaderValue;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// So many judged tokens are kept; those that are over go first, then any.
const VERDICTS_MAX: usize = 10_000;

/// Who has not answered by then is slow, and the next one is asked beside it.
const SLOW: Duration = Duration::from_secs(1);

/// Makes the connections to an authorization server.
type Make = Box<dyn Fn(&Issuer) -> Arc<dyn Provider> + Send + Sync>;

/// All authorization servers whose tokens are taken. Clones are the same.
#[derive(Clone)]
pub struct Issuers(Arc<Inner>);

struct Inner {
    now: ArcSwap<Now>,
    verdicts: DashMap<[u8; 32], Verdict>,
    rights: RightsBook,
    make: Make,
    tasks: Tasks,
}

/// What was found of a token.
struct Verdict {
    credential: Credential,
    /// Whose it is.
    issuer: Arc<str>,
    /// When it is to be asked about anew, where it says nothing itself.
    fresh: Option<SystemTime>,
}

/// Those of one configuration.
struct Now {
    all: Vec<Arc<KnownIssuer>>,
    resource: Resource,
    /// What the gateway says of itself as a resource, at each of its faces.
    metadata: Vec<Vec<u8>>,
}

/// What is known of a token at once.
pub(crate) enum Look {
    /// With when it is to be looked at anew.
    Good(Credential, Option<SystemTime>),
    Bad(Refused),
    /// It is waited for.
    Judging(Judging),
}

/// A token that is judged.
pub(crate) type Judging = Pin<Box<dyn Future<Output = Result<Credential, Refused>> + Send>>;

impl Issuers {
    /// Those of a configuration.
    pub fn new(
        auth: &Auth,
        tasks: &Tasks,
        make: impl Fn(&Issuer) -> Arc<dyn Provider> + Send + Sync + 'static,
    ) -> Self {
        let inner = Inner {
            now: ArcSwap::from_pointee(Now { all: Vec::new(), resource: Resource::default(), metadata: Vec::new() }),
            verdicts: DashMap::new(),
            rights: RightsBook::new(auth),
            make: Box::new(make),
            tasks: tasks.clone(),
        };
        let issuers = Self(Arc::new(inner));
        issuers.set(auth);
        issuers
    }

    /// From now on it is these. One that is configured as before goes on; of the others nothing counts any more.
    pub fn set(&self, auth: &Auth) -> Vec<Changed> {
        let changed = self.0.rights.set(auth);
        let before = self.0.now.load_full();
        let is_same_resource = before.resource == auth.resource;
        let known = |issuer: &Issuer| {
            let same = before.all.iter().find(|known| known.issuer == *issuer && is_same_resource);
            same.cloned().unwrap_or_else(|| KnownIssuer::start(issuer.clone(), (self.0.make)(issuer), &self.0.tasks))
        };
        let all: Vec<_> = auth.issuers.iter().map(known).collect();
        let is_there = |old: &Arc<KnownIssuer>| all.iter().any(|known| Arc::ptr_eq(known, old));
        before.all.iter().filter(|old| !is_there(old)).for_each(|old| old.end());
        let metadata = metadata(auth);
        self.0.now.store(Arc::new(Now { all, resource: auth.resource.clone(), metadata }));
        self.0.verdicts.retain(|_, verdict| !verdict.credential.revocation.is_revoked());
        changed
    }

    /// What the gateway says of itself, where it is asked for that by this path.
    pub(crate) fn metadata(&self, path: &str) -> Option<Vec<u8>> {
        if !path.starts_with("/.well-known/") {
            return None;
        }
        let now = self.0.now.load();
        let face = now.resource.faces.iter().position(|face| face.paths.iter().any(|known| known == path))?;
        now.metadata.get(face).cloned()
    }

    /// The challenge for a refusal, or where no token was shown, in the answer to a request for this path.
    pub(crate) fn challenge(&self, why: Option<&Refused>, path: &str) -> Option<HeaderValue> {
        let now = self.0.now.load();
        let mut text = format!("Bearer resource_metadata=\"{}\"", now.resource.face(path)?.metadata_url);
        let error = match why {
            None | Some(Refused::Unverified) => None,
            Some(Refused::Malformed) => Some(("invalid_request", "send one header `Authorization: Bearer <token>`")),
            Some(Refused::Invalid(why)) => Some(("invalid_token", *why)),
            Some(Refused::Expired) => Some(("invalid_token", "the token has expired")),
            Some(Refused::Scope) => Some(("insufficient_scope", "the token has not all scopes that are needed")),
        };
        if let Some((error, why)) = error {
            text.push_str(&format!(", error=\"{error}\", error_description=\"{why}\""));
        }
        let mut scopes: Vec<&str> = Vec::new();
        for scope in now.all.iter().flat_map(|known| &known.issuer.scopes) {
            if !scopes.contains(&scope.as_str()) {
                scopes.push(scope);
            }
        }
        if !scopes.is_empty() {
            text.push_str(&format!(", scope=\"{}\"", scopes.join(" ")));
        }
        HeaderValue::from_str(&text).ok()
    }

    /// The challenge for a token that was taken, and that somebody else has refused since; `None` where no issuer is configured.
    pub fn challenge_again(&self, path: &str) -> Option<HeaderValue> {
        let why = Refused::Invalid("the token has expired or was revoked");
        (!self.0.now.load().all.is_empty()).then(|| self.challenge(Some(&why), path)).flatten()
    }

    /// Looks what a token is worth that comes from there.
    pub(crate) fn look(&self, token: &[u8], digest: [u8; 32], peer: Option<Peer>) -> Look {
        if let Some((known, fresh)) = self.0.known(digest) {
            known.note_token(token, digest);
            return Look::Good(known, fresh);
        }
        let token = match std::str::from_utf8(token) {
            Ok(token) if token.len() <= TOKEN_MAX && token::may_be(token) => token,
            _ => return Look::Bad(Refused::Invalid("the token is no access token that can be read")),
        };
        let (inner, now) = (self.0.clone(), self.0.now.load_full());
        if !token::is_one(token) {
            if !now.all.iter().any(|known| known.issuer.introspection.is_some()) {
                return Look::Bad(UNKNOWN);
            }
            if inner.has_expired(digest) {
                return Look::Bad(Refused::Expired);
            }
            let (token, share) = (token.to_owned(), inner.share(digest, peer));
            return Look::Judging(Box::pin(async move {
                let credential = inner.asked(&now, &token, (digest, &share)).await?;
                credential.note_token(token.as_bytes(), digest);
                Ok(credential)
            }));
        }
        let said = match token::read(token) {
            Ok(said) => said,
            Err(why) => return Look::Bad(why),
        };
        let Some(known) = now.all.iter().find(|known| *known.issuer.name == *said.issuer) else {
            return Look::Bad(UNKNOWN);
        };
        if let Some(judged) = known.judge(token, &said, &now.resource) {
            return match inner.taken(known, judged, (digest, None)) {
                Ok(credential) => {
                    credential.note_token(token.as_bytes(), digest);
                    Look::Good(credential, None)
                }
                Err(why) => Look::Bad(why),
            };
        }
        let (known, token) = (known.clone(), token.to_owned());
        Look::Judging(Box::pin(async move {
            let credential = inner.waited(&known, (&token, said), &now.resource, digest).await?;
            credential.note_token(token.as_bytes(), digest);
            Ok(credential)
        }))
    }
}

impl Inner {
    fn known(&self, digest: [u8; 32]) -> Option<(Credential, Option<SystemTime>)> {
        let found = self.verdicts.get(&digest)?;
        let is_fresh = found.fresh.is_none_or(|until| until > SystemTime::now());
        (is_fresh && !found.credential.revocation.is_revoked()).then(|| (found.credential.clone(), found.fresh))
    }

    /// Whether a token that was asked about before has expired by what was said of it: nobody is asked about it again.
    fn has_expired(&self, digest: [u8; 32]) -> bool {
        let expires = self.verdicts.get(&digest).and_then(|known| known.credential.expires);
        expires.is_some_and(|at| at <= SystemTime::now())
    }

    /// Judges a token whose key is not known yet.
    async fn waited(
        &self,
        known: &Arc<KnownIssuer>,
        (token, said): (&str, Unjudged),
        resource: &Resource,
        digest: [u8; 32],
    ) -> Result<Credential, Refused> {
        known.read_keys().await;
        match known.judge(token, &said, resource) {
            Some(judged) => self.taken(known, judged, (digest, None)),
            None if known.has_keys() => {
                Err(Refused::Invalid("the token is signed with a key that its authorization server does not have"))
            }
            None => Err(Refused::Unverified),
        }
    }

    /// Whose share a question takes: of whom the token was the last time, else of where it comes from.
    fn share(&self, digest: [u8; 32], peer: Option<Peer>) -> Share {
        let known = self.verdicts.get(&digest).filter(|verdict| !verdict.credential.revocation.is_revoked());
        match known {
            Some(verdict) => Share::Principal(verdict.credential.principal.clone()),
            None => peer.map_or(Share::Unknown, Share::of_peer),
        }
    }

    /// Asks about a token, wherever that can be done: first there where it was known before, and of the others one after another, since
    /// a token is shown to no more of them than it must. One that is slow keeps nobody from asking the next.
    async fn asked(&self, now: &Now, token: &str, asker: ([u8; 32], &Share)) -> Result<Credential, Refused> {
        let before = self.verdicts.get(&asker.0).map(|verdict| verdict.issuer.clone());
        let asks = now.all.iter().filter(|known| known.issuer.introspection.is_some());
        let (first, others): (Vec<_>, Vec<_>) = asks.partition(|known| Some(&known.issuer.name) == before.as_ref());
        let mut left = first.into_iter().chain(others);
        let (mut asking, mut last) = (FuturesUnordered::new(), UNKNOWN);
        loop {
            let next = left.next();
            let is_last = next.is_none();
            asking.extend(next.map(|known| self.asked_there(known, &now.resource, token, asker)));
            tokio::select! {
                answer = asking.next() => match answer {
                    Some(Ok(credential)) => return Ok(credential),
                    // Another one may know it; that this one could not be asked is what counts in the end.
                    Some(Err(why)) => last = if last == Refused::Unverified { last } else { why },
                    None => return Err(last),
                },
                () = passes(SLOW), if !is_last => {}
            }
        }
    }

    async fn asked_there(
        &self,
        known: &Arc<KnownIssuer>,
        resource: &Resource,
        token: &str,
        (digest, share): ([u8; 32], &Share),
    ) -> Result<Credential, Refused> {
        let asking = loop {
            match known.questions.turn(digest, share) {
                Turn::Ask(asking) => break asking,
                Turn::Full => return Err(Refused::Unverified),
                Turn::Wait(mut told) => {
                    let _gone = told.changed().await;
                    let refused = told.borrow().clone();
                    match (self.known(digest), refused) {
                        (Some((credential, _)), _) => return Ok(credential),
                        (None, Some(why)) => return Err(why),
                        // Whoever asked has left.
                        (None, None) => continue,
                    }
                }
            }
        };
        let found = self.answered(known, resource, token, digest).await;
        found.inspect_err(|why| asking.refuse(why))
    }

    /// Asks about a token.
    async fn answered(
        &self,
        known: &Arc<KnownIssuer>,
        resource: &Resource,
        token: &str,
        digest: [u8; 32],
    ) -> Result<Credential, Refused> {
        let answer = known.introspect(token).await.map_err(|why| {
            known.complain("tokens", &why);
            Refused::Unverified
        })?;
        let audience = token::audience(&known.issuer, resource);
        let judged = questions::judge(&answer, &known.issuer, &audience);
        match &judged {
            Err(Refused::Unverified) => known.complain("tokens", "what it answers is no answer about a token"),
            Err(_) => {
                let ended = self.verdicts.remove_if(&digest, |_, kept| kept.issuer == known.issuer.name);
                ended.iter().for_each(|(_, ended)| ended.credential.revocation.revoke());
            }
            Ok(_) => {}
        }
        let fresh = Some(SystemTime::now() + KEPT_MAX);
        self.taken(known, judged.map(|judged| (judged, known.counts.clone())), (digest, fresh))
    }

    /// Keeps the verdict on a token that is good.
    fn taken(
        &self,
        known: &KnownIssuer,
        judged: Result<(Judged, Revocation), Refused>,
        (digest, fresh): ([u8; 32], Option<SystemTime>),
    ) -> Result<Credential, Refused> {
        let (Judged { claims, until }, counts) = judged?;
        // Whole seconds are compared by the library, and a token that has just ended is not over for it.
        if until <= SystemTime::now() {
            return Err(Refused::Expired);
        }
        let principal = claims.principal(&known.issuer.name).ok_or(Refused::Invalid("the token names nobody"))?;
        let principal = principal.allowed(&claims.allowed(&known.issuer));
        if !known.issuer.scopes.iter().all(|scope| claims.has_scope(scope, &known.issuer)) {
            return Err(Refused::Scope);
        }
        let grants = self.rights.of_roles(claims.roles(&known.issuer));
        let expires = claims.moment("exp").and_then(token::moment);
        let revocation = counts.until(until, &known.sessions);
        let credential = Credential { principal, grants, revocation, expires };
        if self.verdicts.len() >= VERDICTS_MAX {
            self.verdicts.retain(|_, verdict| !verdict.credential.revocation.is_revoked());
            if self.verdicts.len() >= VERDICTS_MAX {
                // Each is judged again when it is shown again.
                self.verdicts.clear();
            }
        }
        // Whoever was first has it: what two requests with the same token are let in with is the same.
        let verdict = Verdict { credential, issuer: known.issuer.name.clone(), fresh };
        let Verdict { credential, .. } = &verdict;
        let mut kept = match self.verdicts.entry(digest) {
            Entry::Occupied(kept) => kept.into_ref(),
            Entry::Vacant(room) => {
                let credential = credential.clone();
                room.insert(verdict);
                return Ok(credential);
            }
        };
        let Verdict { credential: old, .. } = &*kept;
        let is_same = subject::is_as_good(&old.principal, &credential.principal) && old.grants.is(&credential.grants);
        match is_same && !old.revocation.is_revoked() {
            true => kept.fresh = fresh,
            false => {
                old.revocation.revoke();
                *kept = verdict;
            }
        }
        Ok(kept.credential.clone())
    }
}

/// What the gateway says of itself as a resource (RFC 9728), at each of its faces.
fn metadata(auth: &Auth) -> Vec<Vec<u8>> {
    let servers: Vec<&str> = auth.issuers.iter().map(|issuer| &*issuer.name).collect();
    let mut scopes: Vec<&str> = Vec::new();
    for issuer in &auth.issuers {
        for scope in issuer.known_scopes() {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
    }
    let document = |face: &ResourceFace| {
        let mut document = serde_json::json!({
            "resource": face.url,
            "authorization_servers": servers,
            "bearer_methods_supported": ["header"],
        });
        if !scopes.is_empty() {
            document["scopes_supported"] = scopes.clone().into();
        }
        document.to_string().into_bytes()
    };
    auth.resource.faces.iter().map(document).collect()
}

#[cfg(test)]
mod tests;
