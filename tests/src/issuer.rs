//! An authorization server on loopback that signs access tokens for our clients, publishes its keys, and is asked about tokens.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::authority::serve;
use crate::canary::base64;
use crate::tape::Tape;

/// An authorization server.
pub struct Issuer {
    /// What it is called, and where it is.
    pub url: String,
    /// The path of each request.
    pub asked: Tape<String>,
    state: Mutex<State>,
    /// Whether answers about tokens are held back.
    held: watch::Sender<bool>,
}

struct State {
    /// Its keys, by name; the last one signs.
    keys: Vec<(String, EcdsaKeyPair)>,
    made: usize,
    /// Status and body in place of any document.
    broken: Option<(u16, String)>,
    /// What it says of tokens that say nothing themselves.
    opaque: HashMap<String, Value>,
}

impl Issuer {
    /// One with a key.
    pub async fn start() -> Arc<Issuer> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let state = State { keys: Vec::new(), made: 0, broken: None, opaque: HashMap::new() };
        let (asked, state, held) = (Tape::default(), Mutex::new(state), watch::Sender::new(false));
        let issuer = Arc::new(Issuer { url, asked, state, held });
        issuer.adds_key();
        serve(&issuer, listener, answer);
        issuer
    }

    /// The entry of a configuration that takes its tokens, with more keys.
    #[must_use]
    pub fn entry(&self, more: &str) -> String {
        format!("[[auth.issuers]]\nissuer = \"{}\"\n{more}\n", self.url)
    }

    /// Signs by another key from now on; the old ones stay.
    pub fn adds_key(&self) {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).expect("a key");
        let mut state = self.state();
        state.made += 1;
        let name = format!("key-{}", state.made);
        state.keys.push((name, key));
    }

    /// Has its last key only.
    pub fn drops_old_keys(&self) {
        let mut state = self.state();
        let last = state.keys.pop();
        state.keys = last.into_iter().collect();
    }

    /// Answers so to everything from now on, or as it should.
    pub fn breaks(&self, broken: Option<(u16, &str)>) {
        self.state().broken = broken.map(|(status, body)| (status, body.to_owned()));
    }

    /// Holds answers about tokens back, or no more.
    pub fn hold(&self, is_held: bool) {
        self.held.send_replace(is_held);
    }

    /// Says this of a token.
    pub fn says_of(&self, token: &str, said: Value) {
        self.state().opaque.insert(token.to_owned(), said);
    }

    /// The claims of a token for this resource that is good for so many seconds.
    #[must_use]
    pub fn claims(&self, resource: &str, subject: &str, lasts: i64) -> Value {
        let now = now();
        json!({
            "iss": self.url, "aud": resource, "sub": subject, "client_id": "desk",
            "iat": now, "exp": now + lasts,
        })
    }

    /// A token for a resource, which is good for an hour.
    #[must_use]
    pub fn token(&self, resource: &str, subject: &str, scope: &str) -> String {
        let mut claims = self.claims(resource, subject, 3600);
        claims["scope"] = scope.into();
        self.signed(&claims)
    }

    /// A token with these claims.
    #[must_use]
    pub fn signed(&self, claims: &Value) -> String {
        self.signed_as(&self.head(), &claims.to_string())
    }

    /// How its tokens begin.
    #[must_use]
    pub fn head(&self) -> Value {
        let state = self.state();
        let name = &state.keys.last().expect("a key").0;
        json!({"alg": "ES256", "typ": "at+jwt", "kid": name})
    }

    /// A token of this text under this head, signed by the last key.
    #[must_use]
    pub fn signed_as(&self, head: &Value, claims: &str) -> String {
        self.signed_under(&head.to_string(), claims)
    }

    /// The same under a head of this text.
    #[must_use]
    pub fn signed_under(&self, head: &str, claims: &str) -> String {
        let message = format!("{}.{}", coded(head.as_bytes()), coded(claims.as_bytes()));
        let state = self.state();
        let (_, key) = state.keys.last().expect("a key");
        let signature = key.sign(&SystemRandom::new(), message.as_bytes()).expect("it signs");
        format!("{message}.{}", coded(signature.as_ref()))
    }

    /// The public part of its last key.
    #[must_use]
    pub fn point(&self) -> Vec<u8> {
        self.state().keys.last().expect("a key").1.public_key().as_ref().to_vec()
    }

    fn document(&self, path: &str, body: &str) -> (u16, String) {
        let state = self.state();
        if let Some(broken) = &state.broken {
            return broken.clone();
        }
        let document = match path {
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": self.url, "jwks_uri": format!("{}/keys", self.url),
                "introspection_endpoint": format!("{}/introspect", self.url),
            }),
            "/keys" => {
                let keys = state.keys.iter().map(|(name, key)| {
                    let point = key.public_key().as_ref();
                    json!({"kty": "EC", "crv": "P-256", "kid": name, "use": "sig", "alg": "ES256",
                        "x": coded(&point[1..33]), "y": coded(&point[33..])})
                });
                json!({"keys": keys.collect::<Vec<_>>()})
            }
            "/introspect" => {
                let token = body.split('&').find_map(|field| field.strip_prefix("token=")).unwrap_or_default();
                state.opaque.get(token).cloned().unwrap_or_else(|| json!({"active": false}))
            }
            _ => return (404, String::new()),
        };
        (200, document.to_string())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970.
#[must_use]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(since.as_secs()).expect("it fits")
}

/// Bytes as tokens have them.
#[must_use]
pub fn coded(bytes: &[u8]) -> String {
    base64(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

async fn answer(issuer: Arc<Issuer>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    issuer.asked.push(path.clone());
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    // Whoever holds it back lets it go, or ends.
    if path == "/introspect" {
        let _ = issuer.held.subscribe().wait_for(|held| !held).await;
    }
    let (status, text) = issuer.document(&path, &String::from_utf8_lossy(&body));
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert("content-type", "application/json".parse().expect("a content type"));
    Ok(response)
}
