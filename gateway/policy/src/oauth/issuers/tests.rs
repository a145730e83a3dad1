//! Keys are read once for all, and what they have signed goes with them.

use super::*;
use crate::config::issuer::{ALGORITHMS, Introspection};
use crate::oauth::keys::KeySet;
use crate::oauth::provider::Asked;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use tokio::time::advance;

/// A key, and its name.
type Named = (String, EcdsaKeyPair);

/// One that counts how often it is asked, and answers in a second.
#[derive(Default)]
struct Scripted {
    keys: Mutex<Vec<Named>>,
    asked: AtomicUsize,
    /// How often about tokens alone.
    questions: AtomicUsize,
    /// Whether its keys are held back.
    is_held: AtomicBool,
}

struct Shared(Arc<Scripted>);

impl Scripted {
    fn adds(&self, name: &str) {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(kind, key.as_ref(), &random).unwrap();
        self.keys.lock().unwrap().push((name.to_owned(), key));
    }

    /// A token signed by the last key.
    fn token(&self, subject: &str) -> String {
        let keys = self.keys.lock().unwrap();
        let (name, key) = keys.last().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = serde_json::json!({"iss": "https://as.example", "aud": "r", "sub": subject, "exp": now + 3600});
        let head = serde_json::json!({"alg": "ES256", "kid": name});
        let [head, claims] = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signature = key.sign(&SystemRandom::new(), format!("{head}.{claims}").as_bytes()).unwrap();
        format!("{head}.{claims}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

impl Provider for Shared {
    fn keys(&self) -> Asked<'_> {
        Box::pin(async {
            self.0.asked.fetch_add(1, Ordering::SeqCst);
            if self.0.is_held.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let key = |(name, key): &Named| {
                let point = key.public_key().as_ref();
                let [x, y] = [&point[1..33], &point[33..]].map(|part| URL_SAFE_NO_PAD.encode(part));
                serde_json::json!({"kty": "EC", "crv": "P-256", "kid": name, "x": x, "y": y})
            };
            let keys: Vec<_> = self.0.keys.lock().unwrap().iter().map(key).collect();
            match keys.is_empty() {
                true => Err("there are none".to_owned()),
                false => Ok(serde_json::json!({ "keys": keys }).to_string().into_bytes()),
            }
        })
    }

    fn introspect<'a>(&'a self, token: &'a str) -> Asked<'a> {
        Box::pin(async move {
            self.0.asked.fetch_add(1, Ordering::SeqCst);
            self.0.questions.fetch_add(1, Ordering::SeqCst);
            if token.starts_with("held") || self.0.is_held.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(match token.strip_prefix("good-") {
                Some(subject) => format!(r#"{{"active":true,"sub":"{subject}","aud":"r"}}"#).into_bytes(),
                None => br#"{"active":false}"#.to_vec(),
            })
        })
    }
}

fn resource(url: &str) -> Resource {
    Resource { faces: vec![ResourceFace { url: url.to_owned(), ..ResourceFace::default() }] }
}

fn auth() -> Auth {
    let issuer = Issuer {
        name: "https://as.example".into(),
        url: "https://as.example".parse().unwrap(),
        is_within: false,
        keys_url: None,
        audience: Vec::new(),
        algorithms: ALGORITHMS.map(|(_, one)| one).to_vec(),
        clock_skew: Duration::ZERO,
        scopes: Vec::new(),
        includes: Vec::new(),
        roles: None,
        rules: Vec::new(),
        introspection: None,
        ca: None,
    };
    Auth { issuers: vec![issuer], resource: resource("r"), ..Auth::default() }
}

fn start(scripted: &Arc<Scripted>) -> Issuers {
    let shared = scripted.clone();
    Issuers::new(&auth(), &Tasks::new(), move |_| Arc::new(Shared(shared.clone())))
}

async fn shown(issuers: &Issuers, token: &str) -> Result<Credential, Refused> {
    shown_from(issuers, token, 1).await
}

/// The same, from this address.
async fn shown_from(issuers: &Issuers, token: &str, address: u8) -> Result<Credential, Refused> {
    let digest = <sha2::Sha256 as sha2::Digest>::digest(token).into();
    match issuers.look(token.as_bytes(), digest, Some(Peer::Address([192, 0, 2, address].into()))) {
        Look::Good(credential, _) => Ok(credential),
        Look::Bad(why) => Err(why),
        Look::Judging(judging) => judging.await,
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_asked_for_once_by_all_and_an_unknown_one_seldom() {
    let scripted = Arc::new(Scripted::default());
    scripted.adds("one");
    let issuers = start(&scripted);
    let asked = || scripted.asked.load(Ordering::SeqCst);
    let first = scripted.token("ann");
    let all = futures_util::future::join_all((0..100).map(|_| shown(&issuers, &first))).await;
    let one = all[0].as_ref().unwrap();
    assert!(all.iter().all(|other| other.as_ref().unwrap().revocation.is(&one.revocation)), "it is one verdict");
    assert_eq!((asked(), one.principal.name()), (1, "oauth:ann  https://as.example"));
    scripted.adds("two");
    let second = scripted.token("bob");
    assert!(matches!(shown(&issuers, &second).await, Err(Refused::Invalid(_))), "it was asked just now");
    assert_eq!(asked(), 1);
    advance(Duration::from_secs(30)).await;
    let all = futures_util::future::join_all((0..100).map(|_| shown(&issuers, &second))).await;
    assert!(all.iter().all(Result::is_ok) && asked() == 2);
    assert!(!one.revocation.is_revoked(), "its key is still there");
    scripted.keys.lock().unwrap().remove(0);
    advance(Duration::from_secs(700)).await;
    one.revocation.revoked().unwrap().await;
    assert!(shown(&issuers, &first).await.is_err() && shown(&issuers, &second).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_judged_is_told_apart_and_tried_again_by_itself() {
    let scripted = Arc::new(Scripted::default());
    let issuers = start(&scripted);
    scripted.adds("one");
    let token = scripted.token("ann");
    let keys = std::mem::take(&mut *scripted.keys.lock().unwrap());
    assert_eq!(shown(&issuers, &token).await.err(), Some(Refused::Unverified));
    for _ in 0..100 {
        assert_eq!(shown(&issuers, &token).await.err(), Some(Refused::Unverified));
    }
    assert_eq!(scripted.asked.load(Ordering::SeqCst), 1, "nobody asks again at once");
    *scripted.keys.lock().unwrap() = keys;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let good = shown(&issuers, &token).await.unwrap();
    let mut other = auth();
    other.issuers[0].scopes.push("x".to_owned());
    issuers.set(&other);
    assert!(good.revocation.is_revoked() && good.revocation.of_session().is_revoked(), "nothing of the old one counts");
    assert_eq!(shown(&issuers, &token).await.err(), Some(Refused::Scope));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_taken_is_asked_about_once_for_all_who_wait() {
    let scripted = Arc::new(Scripted::default());
    scripted.adds("one");
    let issuers = asking(&scripted).await;
    let before = scripted.asked.load(Ordering::SeqCst);
    let all = futures_util::future::join_all((0..100).map(|_| shown(&issuers, "opaque"))).await;
    assert!(all.iter().all(|one| matches!(one, Err(Refused::Invalid(_)))));
    assert_eq!(scripted.asked.load(Ordering::SeqCst) - before, 1);
}

/// One that is asked about tokens, once its keys are read.
async fn asking(scripted: &Arc<Scripted>) -> Issuers {
    let (shared, mut auth) = (scripted.clone(), auth());
    let (client_id, client_secret) = ("me".to_owned(), "s".to_owned());
    auth.issuers[0].introspection = Some(Introspection { url: None, client_id, client_secret });
    let issuers = Issuers::new(&auth, &Tasks::new(), move |_| Arc::new(Shared(shared.clone())));
    tokio::time::sleep(Duration::from_secs(2)).await;
    issuers
}

#[tokio::test(start_paused = true)]
async fn a_stranger_who_shows_very_many_tokens_keeps_no_others_from_being_looked_at() {
    let scripted = Arc::new(Scripted::default());
    let issuers = asking(&scripted).await;
    assert!(shown_from(&issuers, "good-ann", 1).await.is_ok());
    // It is to be asked about anew.
    let digest: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest("good-ann").into();
    issuers.0.verdicts.get_mut(&digest).unwrap().fresh = Some(SystemTime::now());
    let tokens: Vec<_> = (0..1000).map(|at| format!("held-{at}")).collect();
    let mut flood: Vec<_> = tokens.iter().map(|token| Box::pin(shown_from(&issuers, token, 1))).collect();
    let mut waiting = 0;
    for one in &mut flood {
        waiting += usize::from(futures_util::poll!(one.as_mut()).is_pending());
    }
    assert_eq!(waiting, 128, "one alone has half of the places");
    assert!(shown_from(&issuers, "good-ann", 1).await.is_ok(), "who was known comes from the same address");
    assert!(shown_from(&issuers, "good-bob", 2).await.is_ok(), "who was not comes from another one");
    assert_eq!(shown_from(&issuers, "good-bob-2", 1).await.err(), Some(Refused::Unverified));
    drop(flood);
    assert!(shown_from(&issuers, "good-bob-2", 1).await.is_ok(), "there is room again");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_about_where_it_was_known_and_elsewhere_beside_one_that_is_slow() {
    let all = [Arc::new(Scripted::default()), Arc::default()];
    let mut auth = auth();
    let (client_id, client_secret) = ("me".to_owned(), "s".to_owned());
    auth.issuers[0].introspection = Some(Introspection { url: None, client_id, client_secret });
    auth.issuers.push(Issuer { name: "https://other.example".into(), ..auth.issuers[0].clone() });
    let made = all.clone();
    let which = move |issuer: &Issuer| usize::from(&*issuer.name == "https://other.example");
    let issuers = Issuers::new(&auth, &Tasks::new(), move |issuer| Arc::new(Shared(made[which(issuer)].clone())));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = || [0, 1].map(|at: usize| all[at].questions.swap(0, Ordering::SeqCst));
    let is_slow = |is_slow| all[0].is_held.store(is_slow, Ordering::SeqCst);
    is_slow(true);
    let before = tokio::time::Instant::now();
    assert!(shown(&issuers, "good-ann").await.is_ok());
    assert_eq!((asked(), before.elapsed().as_secs()), ([1, 1], 2), "a second each");
    is_slow(false);
    let digest: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest("good-ann").into();
    issuers.0.verdicts.get_mut(&digest).unwrap().fresh = Some(SystemTime::now());
    assert!(shown(&issuers, "good-ann").await.is_ok());
    assert_eq!(asked(), [0, 1], "it was known there");
    assert!(shown(&issuers, "good-bob").await.is_ok());
    assert_eq!(asked(), [1, 0], "it is shown to no more than it must");
    assert!(shown(&issuers, "bad").await.is_err());
    assert_eq!(asked(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn keys_and_answers_about_a_token_are_waited_for_no_longer_than_ten_seconds() {
    let scripted = Arc::new(Scripted::default());
    scripted.adds("one");
    scripted.is_held.store(true, Ordering::SeqCst);
    let issuers = asking(&scripted).await;
    for token in ["held".to_owned(), scripted.token("ann")] {
        let before = tokio::time::Instant::now();
        assert_eq!(shown(&issuers, &token).await.err(), Some(Refused::Unverified));
        assert_eq!(before.elapsed().as_secs(), 10);
    }
}

/// The document of its keys, and a token signed by the last one, which counts for it.
async fn signed() -> (Vec<u8>, String) {
    let scripted = Arc::new(Scripted::default());
    scripted.adds("one");
    let document = Shared(scripted.clone()).keys().await.unwrap();
    (document, scripted.token("ann"))
}

#[tokio::test(start_paused = true)]
async fn a_token_is_judged_by_the_algorithms_and_the_audience_that_are_written_alone() {
    let (document, token) = signed().await;
    let keys = KeySet::read(&document, &Revocation::possible(), None).unwrap();
    let key = keys.of(Some("one"), Algorithm::ES256).next().unwrap();
    let issuer = auth().issuers.remove(0);
    let judged = |issuer: &Issuer, url: &str, by| token::judge(&token, issuer, &resource(url), key, by).map(|_| ());
    assert_eq!(judged(&issuer, "r", Algorithm::ES256), Ok(()));
    assert_eq!(judged(&issuer, "other", Algorithm::ES256), Err(Refused::Invalid("the token is for another resource")));
    let unsigned = Err(Refused::Invalid("the token is not signed as its authorization server signs"));
    assert_eq!(judged(&issuer, "r", Algorithm::RS256), unsigned, "a key of another kind");
    let other = Issuer { algorithms: vec![Algorithm::ES384], ..issuer };
    assert_eq!(judged(&other, "r", Algorithm::ES256), unsigned, "it is not taken");
}

#[tokio::test(start_paused = true)]
async fn a_server_of_very_many_keys_is_not_believed() {
    let (document, _) = signed().await;
    let mut document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let key = document["keys"][0].clone();
    for (count, is_taken) in [(64, true), (65, false)] {
        document["keys"] = vec![key.clone(); count].into();
        let read = KeySet::read(document.to_string().as_bytes(), &Revocation::possible(), None);
        assert_eq!(read.is_ok(), is_taken, "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_is_kept_for_a_while_is_asked_for_again_after_it() {
    let scripted = Arc::new(Scripted::default());
    scripted.adds("one");
    let issuers = start(&scripted);
    let token = scripted.token("ann");
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&token).into();
    let first = shown(&issuers, &token).await.unwrap();
    let good = || issuers.0.known(digest).is_some_and(|(again, _)| again.revocation.is(&first.revocation));
    for (fresh, is_kept) in
        [(Some(SystemTime::now() + Duration::from_secs(60)), true), (Some(SystemTime::now()), false), (None, true)]
    {
        issuers.0.verdicts.get_mut(&digest).unwrap().fresh = fresh;
        assert_eq!(good(), is_kept);
    }
}
