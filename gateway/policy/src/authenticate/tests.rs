//! Who is let in, and until when.

use super::*;
use http::header;
use std::convert::Infallible;
use tower::{Layer, ServiceExt, service_fn};

/// The principal's name as the layer behind sees it, or the refusal.
async fn ask(tokens: &[&str], authorization: &[&str]) -> (u16, String) {
    let token = |name: &&str| Token {
        name: (*name).into(),
        digest: Sha256::digest(name.as_bytes()).into(),
        roles: None,
        expires: None,
    };
    let auth = Auth { tokens: tokens.iter().map(token).collect(), ..Auth::default() };
    let inner = service_fn(|LetIn { request, credential }: LetIn<()>| {
        assert!(!request.headers().contains_key(header::AUTHORIZATION));
        let principal = credential.map(|one| one.principal.name().to_owned());
        std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::from(
            principal.unwrap_or_else(|| "nobody".into()),
        ))))
    });
    let mut request = Request::get("/");
    for value in authorization {
        request = request.header(header::AUTHORIZATION, *value);
    }
    let response = AuthenticateLayer::new(&auth, None).layer(inner).oneshot(request.body(()).unwrap()).await.unwrap();
    assert_eq!(response.status() == 401, response.headers().contains_key(header::WWW_AUTHENTICATE));
    (response.status().as_u16(), String::from_utf8(response.into_body().to_vec()).unwrap())
}

#[tokio::test]
async fn only_bearers_of_a_known_token_pass_and_it_goes_no_further() {
    assert_eq!(ask(&["a", "b"], &["Bearer b"]).await, (200, "token:b".into()));
    assert_eq!(ask(&["a", "b"], &["bearer  a "]).await, (200, "token:a".into()));
    for bad in [&[][..], &["Bearer c"], &["Bearer "], &["Basic a"], &["Bearera"], &["Bearer a", "Bearer a"], &["a"]] {
        let (status, why) = ask(&["a", "b"], bad).await;
        // A wrong token is told apart from none.
        let is_unknown = matches!(bad, ["Bearer c"]);
        let words = if is_unknown { "is not one of those under [[auth.tokens]]" } else { "requires a token" };
        assert!(status == 401 && why.contains(words), "{bad:?}: {why}");
    }
    assert_eq!(ask(&[], &["Bearer x"]).await, (200, "nobody".into()));
}

#[tokio::test]
async fn a_token_is_good_until_it_expires_and_whose_it_is_is_told_then() {
    let now = SystemTime::now();
    let auth = |expires: &[Option<SystemTime>]| {
        let token = |(at, expires): (usize, &Option<SystemTime>)| {
            let digest = Sha256::digest(at.to_string()).into();
            Token { name: at.to_string().into(), digest, roles: None, expires: *expires }
        };
        Auth { tokens: expires.iter().enumerate().map(token).collect(), ..Auth::default() }
    };
    let (past, soon, late) = (now - LOOK_EVERY, now + Duration::from_millis(300), now + LOOK_EVERY * 100);
    let layer = AuthenticateLayer::new(&auth(&[Some(past), Some(soon), Some(late), None]), None);
    let inner = service_fn(|_: LetIn<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new()))));
    let service = layer.layer(inner);
    let asked = async |text: &str| {
        let request = Request::get("/").header(header::AUTHORIZATION, format!("Bearer {text}")).body(()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        (response.status().as_u16(), String::from_utf8(response.into_body().to_vec()).unwrap())
    };
    assert!(asked("0").await.1.contains("has expired") && !layer.is_open());
    assert_eq!([asked("2").await.0, asked("3").await.0], [200, 200]);
    let names = |gone: &[Principal]| gone.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>();
    let (gone, at) = layer.expired(now).await;
    assert!(names(&gone) == ["token:1"] && at >= soon, "{gone:?}");
    assert_eq!(asked("1").await.0, 401);
    assert_eq!([asked("2").await.0, asked("3").await.0], [200, 200]);
    // Another configuration is looked at at once, and what it ends is told by it.
    let (gone, _) = layer.set(&auth(&[Some(past), Some(soon), Some(past), None]));
    assert_eq!(names(&gone), ["token:0", "token:1", "token:2"]);
    assert_eq!(asked("2").await.0, 401);
    let next = layer.expired(at);
    let sooner = SystemTime::now() + Duration::from_millis(50);
    layer.set(&auth(&[None, None, None, Some(sooner)]));
    assert_eq!(names(&next.await.0), ["token:3"]);
}

#[tokio::test]
async fn another_user_of_the_machine_comes_by_a_token_alone_also_when_none_is_asked_for_any_more() {
    let own = rustix::process::geteuid().as_raw();
    for (user, status) in [(own, 200), (0, 200), (own + 1, 401)] {
        let inner = service_fn(|_: LetIn<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new()))));
        let service = AuthenticateLayer::new(&Auth::default(), None).layer(inner).of(Peer::User(user), |_| None);
        let answer = service.oneshot(Request::get("/").body(()).unwrap()).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{user}");
    }
}

#[tokio::test]
async fn other_tokens_hold_at_once_and_whoever_lost_one_is_named() {
    let auth = |tokens: &[(&str, &str)]| {
        let token = |(name, text): &(&str, &str)| Token {
            name: (*name).into(),
            digest: Sha256::digest(text).into(),
            roles: None,
            expires: None,
        };
        Auth { tokens: tokens.iter().map(token).collect(), ..Auth::default() }
    };
    let layer = AuthenticateLayer::new(&auth(&[]), None);
    let service =
        layer.layer(service_fn(|_: LetIn<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new())))));
    let asked = async |text: &str| {
        let request = Request::get("/").header(header::AUTHORIZATION, format!("Bearer {text}")).body(()).unwrap();
        service.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    let names = |gone: Vec<Principal>| gone.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>();
    assert_eq!((asked("x").await, names(layer.set(&auth(&[("a", "1"), ("b", "2")])).0)), (200, vec![String::new()]));
    assert_eq!((asked("x").await, asked("1").await), (401, 200));
    assert_eq!(names(layer.set(&auth(&[("a", "3"), ("b", "2"), ("c", "4")])).0), ["token:a"]);
    assert_eq!([asked("1").await, asked("2").await, asked("3").await, asked("4").await], [401, 200, 200, 200]);
    assert_eq!(names(layer.set(&auth(&[("a", "3")])).0), ["token:b", "token:c"]);
    assert!(layer.set(&auth(&[("a", "3")])).0.is_empty());
}
