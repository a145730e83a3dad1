//! Host and Origin, checked on every route before anything is read: against pages that a browser was lured to.

use super::origin;
use super::origin::Rules;
use crate::protocol::http::headers::Told;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

const ALLOW_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const EXPOSE: HeaderValue = HeaderValue::from_static("mcp-session-id, mcp-protocol-version, www-authenticate");
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const ORIGIN: HeaderValue = HeaderValue::from_static("origin");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Lets only requests through that name a host and an origin we know.
#[derive(Clone)]
pub struct GuardLayer(Arc<Terms>);

/// Whether a request may name any host.
type AnyHost = fn(&Uri, &HeaderMap) -> bool;

struct Terms {
    at: At,
    /// Read for each request: a reload changes what open connections may ask for, too.
    admitted: ArcSwap<Admitted>,
    /// The section of the configuration that it comes from.
    section: &'static str,
}

/// What is guarded.
enum At {
    /// An address, as bound.
    Port(SocketAddr),
    /// A socket of this machine, which has no name.
    Socket,
}

struct Admitted {
    rules: Rules,
    any_host: AnyHost,
}

impl At {
    fn admitted(&self, hosts: &[String], origins: &[String]) -> Admitted {
        match self {
            Self::Port(listen) => Admitted { rules: Rules::new(*listen, hosts, origins), any_host: |_, _| false },
            Self::Socket => {
                let rules = Rules::new(SocketAddr::from(([127, 0, 0, 1], 0)), hosts, origins);
                let any_host: AnyHost = if hosts.is_empty() { |_, _| true } else { |_, _| false };
                Admitted { rules, any_host }
            }
        }
    }
}

impl GuardLayer {
    /// Guards what listens on `listen`, the address that was bound. Empty lists mean what follows from it.
    pub fn new(listen: SocketAddr, allowed_hosts: &[String], allowed_origins: &[String]) -> Self {
        Self::guarding(At::Port(listen), allowed_hosts, allowed_origins)
    }

    /// The same for a socket of this machine, which has no name: a request may name any host, unless some are listed. No page reaches it
    /// but by way of a proxy.
    pub fn of_socket(allowed_hosts: &[String], allowed_origins: &[String]) -> Self {
        Self::guarding(At::Socket, allowed_hosts, allowed_origins)
    }

    fn guarding(at: At, allowed_hosts: &[String], allowed_origins: &[String]) -> Self {
        let admitted = ArcSwap::from_pointee(at.admitted(allowed_hosts, allowed_origins));
        Self(Arc::new(Terms { at, admitted, section: "server" }))
    }

    /// Admits these from the next request on, also on connections that are open.
    pub fn admit(&self, allowed_hosts: &[String], allowed_origins: &[String]) {
        self.0.admitted.store(Arc::new(self.0.at.admitted(allowed_hosts, allowed_origins)));
    }

    /// The same for the admin address; what `any_host` says may be asked for by any name, since machines know it by their own.
    pub fn of_admin(listen: SocketAddr, allowed_hosts: &[String], any_host: AnyHost) -> Self {
        let admitted = Admitted { rules: Rules::new(listen, allowed_hosts, &[]), any_host };
        Self(Arc::new(Terms { at: At::Port(listen), admitted: ArcSwap::from_pointee(admitted), section: "admin" }))
    }
}

impl<S> tower::Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { inner, terms: self.0.clone() }
    }
}

/// See [`GuardLayer`].
#[derive(Clone)]
pub struct Guard<S> {
    inner: S,
    terms: Arc<Terms>,
}

impl<S, B, R> tower::Service<Request<B>> for Guard<S>
where
    S: tower::Service<Request<B>, Response = Response<R>>,
    S::Future: Unpin,
    R: From<Bytes> + Unpin,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Guarded<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match judge(&self.terms, request.method(), request.uri(), request.headers()) {
            Verdict::Pass(None) => Guarded::Inner(self.inner.call(request), None),
            Verdict::Pass(Some(origin)) => Guarded::Inner(self.inner.call(request), Some(origin)),
            Verdict::Preflight(answer) => Guarded::Answered(Some(answer.map(R::from))),
            Verdict::Refuse(why) => Guarded::Answered(Some(refusal(&why).map(R::from))),
        }
    }
}

/// The answer of [`Guard`].
pub enum Guarded<F, R> {
    /// The request was let through; a browser is told that its page's origin, if any, may read the answer.
    Inner(F, Option<HeaderValue>),
    /// It was not.
    Answered(Option<Response<R>>),
}

impl<F, R, E> Future for Guarded<F, R>
where
    F: Future<Output = Result<Response<R>, E>> + Unpin,
    R: Unpin,
{
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Inner(inner, origin) => {
                let mut answer = std::task::ready!(Pin::new(inner).poll(cx));
                if let (Ok(response), Some(origin)) = (&mut answer, origin.take()) {
                    admit(response.headers_mut(), origin);
                }
                Poll::Ready(answer)
            }
            Self::Answered(answer) => Poll::Ready(Ok(answer.take().expect("a future is not polled after its end"))),
        }
    }
}

enum Verdict {
    /// With the origin of the page that may read the answer.
    Pass(Option<HeaderValue>),
    Preflight(Response<Bytes>),
    Refuse(String),
}

fn judge(terms: &Terms, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
    let (admitted, section) = (terms.admitted.load(), terms.section);
    let rules = &admitted.rules;
    let refuse = |why: &str| Verdict::Refuse(why.to_owned());
    // One walk: each look-up costs as much as several steps of it.
    let (mut hosts, mut origins) = (Told::default(), Told::default());
    for (name, value) in headers {
        if *name == header::HOST {
            hosts.note(value);
        } else if *name == header::ORIGIN {
            origins.note(value);
        }
    }
    let host = match hosts.first() {
        Some(_) => hosts.only().and_then(origin::text),
        None => uri.authority().map(|authority| authority.as_str()),
    };
    let is_any = (admitted.any_host)(uri, headers);
    let Some(host) = host.or(is_any.then_some("")) else { return refuse("a request must name exactly one host") };
    // Of two that differ, one program would believe the one, and another the other.
    if hosts.first().is_some() && uri.authority().is_some_and(|named| !named.as_str().eq_ignore_ascii_case(host)) {
        return refuse("a request must name exactly one host");
    }
    let names = [Some(host), uri.authority().map(|authority| authority.as_str())];
    if !is_any && !names.into_iter().flatten().all(|name| rules.admits_host(name)) {
        return Verdict::Refuse(format!(
            "this host name is not served here; if it should be, add it to `{section}.allowed_hosts`"
        ));
    }
    let origin = match (origins.first(), origins.only()) {
        (None, _) => return Verdict::Pass(None),
        (_, Some(origin)) => origin,
        _ => return refuse("a request must not name two origins"),
    };
    if !origin::text(origin).is_some_and(|text| rules.admits_origin(text, host)) {
        return refuse(match section {
            "admin" => "this origin is not allowed",
            _ => "this origin is not allowed; if it should be, add it to `server.allowed_origins`",
        });
    }
    if *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return Verdict::Preflight(preflight(origin.clone(), headers));
    }
    Verdict::Pass(Some(origin.clone()))
}

/// What a browser asks before it lets a page call.
fn preflight(origin: HeaderValue, asked: &HeaderMap) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    admit(headers, origin);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOW_METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // Tools name headers of their own, so there is no list; the origin is what was judged.
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    response
}

fn admit(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSE);
    headers.append(header::VARY, ORIGIN);
}

fn refusal(why: &str) -> Response<Bytes> {
    let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{{\"code\":-32600,\"message\":\"{why}\"}}}}");
    let mut response = Response::new(text.into());
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use tower::{Layer, ServiceExt, service_fn};

    async fn ask(listen: &str, request: http::request::Builder) -> Response<Bytes> {
        let layer = GuardLayer::new(listen.parse().unwrap(), &[], &["https://app.example".to_owned()]);
        let inner = service_fn(|_: Request<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new()))));
        layer.layer(inner).oneshot(request.body(()).unwrap()).await.unwrap()
    }

    const LOOPBACK: &str = "127.0.0.1:8808";

    #[tokio::test]
    async fn hosts_and_origins_are_judged_before_anything_else() {
        let get = || Request::get("/any").header("host", "localhost:8808");
        assert_eq!(ask(LOOPBACK, get()).await.status(), 200);
        assert_eq!(ask(LOOPBACK, Request::get("/")).await.status(), 403);
        assert_eq!(ask(LOOPBACK, Request::get("/").header("host", "evil.example:8808")).await.status(), 403);
        assert_eq!(ask(LOOPBACK, get().header("host", "localhost:8808")).await.status(), 403);
        assert_eq!(ask(LOOPBACK, get().uri("http://evil.example/")).await.status(), 403);
        assert_eq!(ask(LOOPBACK, get().uri("http://LOCALHOST:8808/")).await.status(), 200);
        let two = get().uri("http://127.0.0.1:8808/");
        assert_eq!(ask(LOOPBACK, two).await.status(), 403, "both are known, and they differ");
        assert_eq!(ask(LOOPBACK, get().header("origin", "null")).await.status(), 403);
        assert_eq!(ask(LOOPBACK, get().header("origin", "https://evil.example")).await.status(), 403);
        let twice = get().header("origin", "http://localhost").header("origin", "http://localhost");
        assert_eq!(ask(LOOPBACK, twice).await.status(), 403);
        let admitted = ask(LOOPBACK, get().header("origin", "https://app.example")).await;
        assert_eq!(
            (admitted.status().as_u16(), &admitted.headers()["access-control-allow-origin"]),
            (200, &HeaderValue::from_static("https://app.example"))
        );
    }

    #[tokio::test]
    async fn what_may_name_any_host_is_judged_by_its_origin_alone() {
        let layer = GuardLayer::of_admin("10.0.0.5:9808".parse().unwrap(), &["gw.example".into()], |uri, _| {
            uri.path() == "/livez"
        });
        let ask = async |request: http::request::Builder| {
            let inner =
                service_fn(|_: Request<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new()))));
            layer.layer(inner).oneshot(request.body(()).unwrap()).await.unwrap().status().as_u16()
        };
        let get = |path: &str, host: &str| Request::get(path).header("host", host);
        assert_eq!(ask(get("/livez", "10.0.0.5:9808")).await, 200);
        assert_eq!(ask(get("/livez", "pod-7.cluster.local")).await, 200);
        assert_eq!(ask(Request::get("/livez")).await, 200);
        assert_eq!(ask(get("/livez", "x").header("origin", "http://evil.example")).await, 403);
        assert_eq!(ask(get("/gateway", "pod-7.cluster.local")).await, 403);
        assert_eq!(ask(get("/gateway", "gw.example")).await, 200);
    }

    #[tokio::test]
    async fn a_socket_has_any_name_until_some_are_listed_and_pages_of_others_may_not_call() {
        let ask = async |hosts: &[&str], request: http::request::Builder| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            let layer = GuardLayer::of_socket(&hosts, &["https://app.example".to_owned()]);
            let inner =
                service_fn(|_: Request<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new()))));
            layer.layer(inner).oneshot(request.body(()).unwrap()).await.unwrap().status().as_u16()
        };
        let get = |host: &str| Request::get("/").header("host", host);
        assert_eq!((ask(&[], get("anything")).await, ask(&[], Request::get("/")).await), (200, 200));
        assert_eq!(
            (ask(&["gw.example"], get("anything")).await, ask(&["gw.example"], get("gw.example")).await),
            (403, 200)
        );
        assert_eq!(ask(&[], get("x").header("origin", "https://app.example")).await, 200);
        for (host, origin) in [("x", "https://evil.example"), ("evil.example", "http://evil.example")] {
            assert_eq!(ask(&[], get(host).header("origin", origin)).await, 403, "{origin}");
        }
    }

    #[tokio::test]
    async fn what_is_admitted_anew_holds_on_open_connections_too() {
        let layer = GuardLayer::new(LOOPBACK.parse().unwrap(), &[], &["https://app.example".to_owned()]);
        let inner = service_fn(|_: Request<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new()))));
        let connection = layer.layer(inner);
        let ask = async |host: &str, origin: &str| {
            let request = Request::get("/").header("host", host).header("origin", origin).body(()).unwrap();
            connection.clone().oneshot(request).await.unwrap().status().as_u16()
        };
        let (app, other) = ("https://app.example", "https://other.example");
        assert_eq!([ask("localhost:8808", app).await, ask("localhost:8808", other).await], [200, 403]);
        layer.admit(&["gw.example".to_owned()], &["https://other.example".to_owned()]);
        assert_eq!([ask("localhost:8808", app).await, ask("localhost:8808", other).await], [403, 200]);
        assert_eq!(ask("gw.example", other).await, 200);
        let socket = GuardLayer::of_socket(&[], &[]);
        socket.admit(&["gw.example".to_owned()], &[]);
        let inner = service_fn(|_: Request<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new()))));
        let named = Request::get("/").header("host", "anything").body(()).unwrap();
        assert_eq!(socket.layer(inner).oneshot(named).await.unwrap().status(), 403);
    }

    #[tokio::test]
    async fn preflights_of_known_origins_alone_are_answered() {
        let options = |origin| {
            Request::options("/mcp")
                .header("host", "localhost:8808")
                .header("origin", origin)
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", "mcp-method")
        };
        let answer = ask(LOOPBACK, options("http://localhost:6274")).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["access-control-allow-headers"]),
            (204, &HeaderValue::from_static("mcp-method"))
        );
        assert_eq!(ask(LOOPBACK, options("http://evil.example")).await.status(), 403);
    }
}
