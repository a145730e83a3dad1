//! An authorization server whose tokens our clients bear: its keys, and what it says of a token.

use super::super::way::{Document, document, form, quoted, to};
use super::places::places;
use crate::config::{Login, Reach, Remote, Trust};
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::token_request::{basic, unavailable};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// More than so many bytes no set of keys has.
const KEYS_BYTES_MAX: usize = 256 * 1024;

/// So long it is asked about tokens where its metadata has said, without another look at that.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// Where it is, and who the gateway is there. Nothing but what a person has written or its metadata names is asked, and no redirect is
/// followed.
pub struct IdentityProvider {
    login: Login,
    keys_url: Option<Uri>,
    introspection_url: Option<Uri>,
    /// Where its metadata says that it is asked about tokens, and until when that counts.
    introspects_at: Mutex<Option<(Remote, Instant)>>,
    shown: Option<HeaderValue>,
    tasks: Tasks,
}

/// What it says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    issuer: String,
    jwks_uri: Option<String>,
    introspection_endpoint: Option<String>,
}

impl IdentityProvider {
    /// The one of this name, which is at a URL, in a network of one's own or not.
    pub fn new(name: &str, (url, is_within): (&Uri, bool), ca: Option<PathBuf>, tasks: Tasks) -> Self {
        let reach = match is_within {
            _ if Reach::is_machine(url.host().unwrap_or_default()) => Reach::Machine,
            true => Reach::Network,
            false => Reach::Internet,
        };
        let trust = Trust { ca, ..Trust::default() };
        let at = Remote { trust, ..Remote::new(url.clone(), HeaderMap::new()) };
        let login = Login {
            upstream: name.into(),
            is_found: false,
            at,
            resource: name.to_owned(),
            said_resource: None,
            // Its metadata may lead where it is itself, and no nearer.
            reach,
            issuer: Some(name.to_owned()),
            client: None,
            has_document: false,
            scopes: Vec::new(),
            is_personal: false,
            is_told_apart: false,
            principal: None,
            state: None,
            keys: Vec::new(),
        };
        Self { login, keys_url: None, introspection_url: None, introspects_at: Mutex::default(), shown: None, tasks }
    }

    /// Its keys lie there.
    #[must_use]
    pub fn with_keys_at(self, url: Option<Uri>) -> Self {
        Self { keys_url: url, ..self }
    }

    /// It is asked about tokens there, by this client.
    #[must_use]
    pub fn asked_at(self, url: Option<Uri>, id: &str, secret: &str) -> Self {
        let shown = basic(id, secret);
        Self { introspection_url: url, shown, ..self }
    }

    /// Its keys: a JSON Web Key Set.
    pub async fn keys(&self) -> Result<Vec<u8>, Cause> {
        let place = match &self.keys_url {
            Some(url) => self.written(url),
            None => {
                let named = self.metadata().await?.jwks_uri;
                let named = named.ok_or_else(|| unavailable("its metadata names no `jwks_uri`; write `keys_url`"))?;
                to(&self.login, "`jwks_uri`", &named)?
            }
        };
        match document::<Value>(&place, &self.tasks).await? {
            Document::There(keys) => match keys.to_string() {
                keys if keys.len() > KEYS_BYTES_MAX => Err(unavailable("its keys have more than 256 KiB")),
                keys => Ok(keys.into_bytes()),
            },
            Document::Missing(_) => Err(unavailable("there are no keys at").foreign(&quoted(&place.url.to_string()))),
            Document::Odd(why) => Err(why),
        }
    }

    /// What it says of a token (RFC 7662).
    pub async fn introspect(&self, token: &str) -> Result<Vec<u8>, Cause> {
        let answer = self.answer_about(token).await;
        if !matches!(answer, Ok((StatusCode::OK, _))) {
            // It may be elsewhere by now.
            *self.introspects_at() = None;
        }
        let (status, body) = answer?;
        match status {
            StatusCode::OK => Ok(body),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let said =
                    format!("HTTP {}: check `client_id` and `client_secret` of `introspection`", status.as_u16());
                Err(unavailable(said))
            }
            _ => Err(unavailable(format!("it answers with HTTP {}", status.as_u16()))),
        }
    }

    async fn answer_about(&self, token: &str) -> Result<(StatusCode, Vec<u8>), Cause> {
        let known = self.introspects_at().clone().filter(|(_, until)| *until > Instant::now());
        let place = match (&self.introspection_url, known) {
            (Some(url), _) => self.written(url),
            (None, Some((place, _))) => place,
            (None, None) => {
                let named = self.metadata().await?.introspection_endpoint;
                let none = || unavailable("its metadata names no `introspection_endpoint`; write `introspection.url`");
                let place = to(&self.login, "`introspection_endpoint`", &named.ok_or_else(none)?)?;
                *self.introspects_at() = Some((place.clone(), Instant::now() + KEPT_FOR));
                place
            }
        };
        let fields = [("token", token), ("token_type_hint", "access_token")];
        form(&place, &fields, self.shown.clone(), &self.tasks).await
    }

    fn introspects_at(&self) -> MutexGuard<'_, Option<(Remote, Instant)>> {
        self.introspects_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn written(&self, url: &Uri) -> Remote {
        Remote { url: url.clone(), ..self.login.at.clone() }
    }

    /// Its document, in whatever place that lies. One that speaks for another issuer is not believed.
    async fn metadata(&self) -> Result<Metadata, Cause> {
        let mut last = None;
        for url in places(&self.login.at.url) {
            match document::<Metadata>(&self.written(&url), &self.tasks).await {
                Ok(Document::There(found)) if found.issuer == *self.login.upstream => return Ok(found),
                Ok(Document::There(found)) => {
                    let said = unavailable("its metadata names another issuer:").foreign(&quoted(&found.issuer));
                    last = Some(said.own("; write that one, if it is meant, letter by letter"));
                }
                Ok(Document::Missing(_)) => {}
                Ok(Document::Odd(why)) | Err(why) => last = Some(why),
            }
        }
        Err(last.unwrap_or_else(|| unavailable("it has no metadata at the known places; write `keys_url`")))
    }
}
