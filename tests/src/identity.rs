//! An identity provider on loopback: registers clients, logs persons in without asking, gives out tokens and rotates them.

mod form;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::authority::{Authority, serve};
use crate::canary::base64;
use crate::identity::form::fields;
use crate::tape::Tape;

/// An identity provider. It is as strict as they come: a refresh token that is shown twice ends its login.
pub struct Identity {
    /// Its issuer.
    pub url: String,
    /// Each request: method and path, and what it holds, be it in its query or in its body.
    pub asked: Tape<(String, Fields)>,
    /// Who judges for the upstream by the tokens that are given out here.
    guard: Arc<Authority>,
    state: Mutex<State>,
    /// Whether answers about tokens are held back.
    held: watch::Sender<bool>,
}

/// What stands among the fields of a request for its header of that name.
pub const AUTHORIZATION: &str = "Authorization";
/// The same of the revision.
pub const VERSION: &str = "MCP-Protocol-Version";

/// The fields of a form or of a query.
pub type Fields = HashMap<String, String>;

#[derive(Default)]
struct State {
    /// What it says of itself otherwise; `null` leaves out.
    metadata: HashMap<String, Value>,
    /// What it sends the browser back with besides; the name of another one in place of its own.
    iss: Option<String>,
    /// The code and its challenge, its client, its redirect URI, and what was asked for.
    codes: HashMap<String, [String; 4]>,
    /// What a login on another device asks for.
    scopes: String,
    given: usize,
    /// Seconds that a token lasts.
    lasts: Option<u64>,
    /// How many tokens were followed by another one before they had ended.
    followed: usize,
    logins: Vec<Login>,
    /// The number of the login that each token is of, whether it is good or was.
    of: HashMap<String, usize>,
    /// Whether refresh tokens are given out.
    is_final: bool,
    /// The browser is sent back with an error in place of a code, and with this description of it.
    denies: Option<String>,
    refusal: Option<u16>,
    /// What comes of a code that was given out for another device, once somebody has seen it: a token, or this error.
    entered: Option<Result<(), &'static str>>,
    /// The account of whoever logs in, where it is named in an ID token.
    account: Option<String>,
    /// What is given out otherwise for a login on another device.
    shown: Option<(String, String)>,
}

/// What goes on from one token to the next.
#[derive(Default)]
struct Login {
    scopes: String,
    /// The tokens that are good.
    access: String,
    refresh: Option<String>,
    /// When that ends.
    ends: Option<Instant>,
}

impl Identity {
    /// One whose tokens this guard lets in.
    pub async fn start(guard: &Arc<Authority>) -> Arc<Identity> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let identity = Arc::new(Identity {
            url,
            asked: Tape::default(),
            guard: guard.clone(),
            state: Mutex::default(),
            held: watch::Sender::new(false),
        });
        serve(&identity, listener, answer);
        identity
    }

    /// What an upstream says that believes it.
    #[must_use]
    pub fn resource(&self, resource: &str) -> String {
        json!({ "resource": resource, "authorization_servers": [self.url], "scopes_supported": ["mcp.read", "mcp.write"] })
            .to_string()
    }

    /// Says this of itself from now on; `null` leaves a key out.
    pub fn says(&self, key: &str, value: Value) {
        self.state().metadata.insert(key.to_owned(), value);
    }

    /// Sends the browser back in this name, or without one.
    pub fn sends_back_as(&self, iss: Option<&str>) {
        self.state().iss = iss.map(str::to_owned);
    }

    /// Tokens last so many seconds from now on.
    pub fn lasting(&self, seconds: u64) {
        self.state().lasts = Some(seconds);
    }

    /// Gives out no refresh tokens.
    pub fn gives_no_refresh(&self) {
        self.state().is_final = true;
    }

    /// Whoever is asked to log in is refused, in these words.
    pub fn denies(&self, description: &str) {
        self.state().denies = Some(description.to_owned());
    }

    /// Whoever is asked to log in is logged in again.
    pub fn denies_no_more(&self) {
        self.state().denies = None;
    }

    /// Says that a person can log in on another device.
    pub fn offers_devices(&self) {
        self.says("device_authorization_endpoint", json!(format!("{}/device", self.url)));
    }

    /// Gives this out in place of what a login on another device should have there.
    pub fn gives(&self, key: &str, value: &str) {
        self.state().shown = Some((key.to_owned(), value.to_owned()));
    }

    /// The person has entered the code, or was refused so.
    pub fn enters(&self, what: Result<(), &'static str>) {
        self.state().entered = Some(what);
    }

    /// Whoever logs in from now on has this account, which is named in an ID token; or nothing says whose it is.
    pub fn names(&self, account: Option<&str>) {
        self.state().account = account.map(str::to_owned);
    }

    /// Says that tokens can be revoked at it.
    pub fn revokes(&self) {
        self.says("revocation_endpoint", json!(format!("{}/revoke", self.url)));
    }

    /// Holds answers about tokens back, which are given out all the same, or no more.
    pub fn hold(&self, is_held: bool) {
        self.held.send_replace(is_held);
    }

    /// Answers at its token end point with this status.
    pub fn refuses(&self, status: Option<u16>) {
        self.state().refusal = status;
    }

    /// Ends all logins: their refresh tokens are good no more.
    pub fn ends(&self) {
        self.state().logins.iter_mut().for_each(|login| login.refresh = None);
    }

    /// Ends the login of this number: its tokens are good no more.
    pub fn ends_one(&self, login: usize) {
        let mut state = self.state();
        let login = &mut state.logins[login];
        login.refresh = None;
        self.guard.dismiss(&login.access);
    }

    /// The number of the login that a token is of.
    #[must_use]
    pub fn login_of(&self, token: &str) -> Option<usize> {
        self.state().of.get(token).copied()
    }

    /// How often it was asked at its token end point in this way.
    #[must_use]
    pub fn granted(&self, grant: &str) -> usize {
        let is_it = |(what, fields): &&(String, Fields)| what == "POST /token" && fields["grant_type"] == grant;
        self.asked.all().iter().filter(is_it).count()
    }

    /// How many tokens were refreshed before they had ended.
    #[must_use]
    pub fn followed_in_time(&self) -> usize {
        self.state().followed
    }

    /// What the last request of this kind held.
    #[must_use]
    pub fn last(&self, what: &str) -> Fields {
        self.asked.all().into_iter().rfind(|(known, _)| known == what).expect("it was asked").1
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| json!(format!("{}{path}", self.url));
        let mut all = json!({
            "issuer": self.url,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": true,
        });
        for (key, value) in &self.state().metadata {
            all[key] = value.clone();
        }
        all
    }

    /// Logs the person in, and sends the browser back.
    fn authorize(&self, fields: &Fields) -> String {
        let mut state = self.state();
        // None is a part of another one, or that of another server.
        let port = self.url.rsplit(':').next().unwrap_or_default();
        let code = format!("canary-code-{port}-{:05}", self.asked.mark());
        let of = ["code_challenge", "client_id", "redirect_uri", "scope"]
            .map(|name| fields.get(name).cloned().unwrap_or_default());
        let redirect = of[2].clone();
        state.codes.insert(code.clone(), of);
        let iss = match &state.iss {
            None => format!("&iss={}", self.url),
            Some(other) if other.is_empty() => String::new(),
            Some(other) => format!("&iss={other}"),
        };
        let what = match &state.denies {
            Some(description) => format!("error=access_denied&error_description={description}"),
            None => format!("code={code}"),
        };
        format!("{redirect}?{what}&state={}{iss}", fields["state"])
    }

    /// Makes a token good for nothing (RFC 7009); what is no token is as good.
    fn revoke(&self, fields: &Fields) -> u16 {
        let mut state = self.state();
        if let Some(status) = state.refusal {
            return status;
        }
        if let Some(login) = state.logins.iter_mut().find(|login| login.refresh.as_ref() == Some(&fields["token"])) {
            login.refresh = None;
        }
        self.guard.dismiss(&fields["token"]);
        200
    }

    fn token(&self, fields: &Fields) -> (u16, Value) {
        let mut state = self.state();
        if let Some(status) = state.refusal {
            return (status, json!({}));
        }
        let invalid = (400, json!({ "error": "invalid_grant", "error_description": "canary-refresh-1 or so" }));
        let number = if fields["grant_type"] == "authorization_code" {
            let Some([challenge, client, redirect, scopes]) = state.codes.remove(&fields["code"]) else {
                return invalid;
            };
            let is_another = fields.get("client_id").is_some_and(|shown| *shown != client);
            if challenge != s256(&fields["code_verifier"]) || redirect != fields["redirect_uri"] || is_another {
                return invalid;
            }
            state.begin(scopes)
        } else if fields["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code" {
            match state.entered {
                _ if fields["device_code"] != "canary-device" => return invalid,
                None => return (400, json!({ "error": "authorization_pending" })),
                Some(Err(error)) => {
                    let why = format!("no token for {}", fields["device_code"]);
                    return (400, json!({ "error": error, "error_description": why }));
                }
                Some(Ok(())) => {}
            }
            let scopes = state.scopes.clone();
            state.begin(scopes)
        } else {
            let shown = &fields["refresh_token"];
            let Some(number) = state.of.get(shown).copied() else { return invalid };
            let login = &mut state.logins[number];
            if login.refresh.as_ref() != Some(shown) {
                // Whoever shows one twice may have stolen it.
                login.refresh = None;
                return invalid;
            }
            let is_in_time = login.ends.is_some_and(|ends| Instant::now() < ends);
            state.followed += usize::from(is_in_time);
            number
        };
        (200, self.given(&mut state, number))
    }

    /// The next tokens of a login.
    fn given(&self, state: &mut State, number: usize) -> Value {
        state.given += 1;
        let (access, refresh) = (format!("canary-access-{}", state.given), format!("canary-refresh-{}", state.given));
        state.of.extend([(access.clone(), number), (refresh.clone(), number)]);
        let (lasts, is_final) = (state.lasts, state.is_final);
        let login = &mut state.logins[number];
        login.ends = lasts.map(|lasts| Instant::now() + Duration::from_secs(lasts));
        self.guard.admit(&access);
        self.guard.allows(&access, &login.scopes);
        login.access.clone_from(&access);
        let mut given = json!({ "access_token": access, "token_type": "Bearer" });
        if let Some(lasts) = lasts {
            given["expires_in"] = json!(lasts);
        }
        if let Some(account) = &state.account {
            given["id_token"] = json!(form::id_token(&self.url, account));
        }
        if !is_final {
            given["refresh_token"] = json!(refresh);
            login.refresh = Some(refresh);
        }
        given
    }
}

impl State {
    /// A login with this, and its number.
    fn begin(&mut self, scopes: String) -> usize {
        self.logins.push(Login { scopes, ..Login::default() });
        self.logins.len() - 1
    }
}

/// The challenge of a verifier (RFC 7636).
fn s256(verifier: &str) -> String {
    base64(&Sha256::digest(verifier.as_bytes())).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

async fn answer(identity: Arc<Identity>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let what = format!("{} {}", request.method(), request.uri().path());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let shown = |name: &str| Some((name.to_owned(), request.headers().get(name)?.to_str().ok()?.to_owned()));
    let shown: Vec<_> = [AUTHORIZATION, VERSION].into_iter().filter_map(shown).collect();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    let mut held = match (body.starts_with('{'), body.is_empty()) {
        (true, _) => HashMap::from([("json".to_owned(), body)]),
        (_, true) => fields(&query),
        _ => fields(&body),
    };
    held.extend(shown);
    identity.asked.push((what.clone(), held.clone()));
    let (status, text, location) = match &*what {
        "GET /.well-known/oauth-authorization-server" => (200, identity.metadata().to_string(), None),
        "POST /register" => (201, json!({ "client_id": "registered-1" }).to_string(), None),
        "POST /device" => {
            identity.state().scopes = held.get("scope").cloned().unwrap_or_default();
            let page = format!("{}/activate", identity.url);
            let mut given = json!({ "device_code": "canary-device", "user_code": "WDJB-MJHT", "verification_uri": page, "expires_in": 600, "interval": 1 });
            if let Some((key, value)) = &identity.state().shown {
                given[key] = json!(value);
            }
            (200, given.to_string(), None)
        }
        "GET /authorize" => (302, String::new(), Some(identity.authorize(&held))),
        "POST /token" => {
            let (status, given) = identity.token(&held);
            // Whoever holds it back lets it go, or ends.
            let _ = identity.held.subscribe().wait_for(|is_held| !is_held).await;
            (status, given.to_string(), None)
        }
        "POST /revoke" => (identity.revoke(&held), String::new(), None),
        _ => (404, String::new(), None),
    };
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert("content-type", "application/json".parse().expect("a content type"));
    response.headers_mut().extend(location.map(|url| (hyper::header::LOCATION, url.parse().expect("a URL"))));
    Ok(response)
}
