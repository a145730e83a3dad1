//! All pages of one gateway: begun, visited, finished.

use super::callers::Callers;
use super::cookie;
use super::flow::{Flow, PERSON_MAX, Stage};
use super::flows::{Brought, Flows, Opened, Shown};
use super::logins::{Begun, Doing, Entry, Logins, Registrant};
use super::page;
use super::page::{Asked, Told};
use super::visit::{is_name, is_prefetched, state_in};
use crate::call::caller::{Caller, Principal};
use crate::call::refusal::Page;
use crate::protocol::capabilities::Capabilities;
use crate::runtime::Tasks;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Where the pages are.
pub(super) const PATH: &str = "/connect/";
/// Where browsers come back to: for each upstream another place, so that what one authorization server sends is never taken for what
/// another one was asked for (RFC 9700, 4.4).
const CALLBACK: &str = "callback/";
/// Where the gateway says who it is as a client, for each upstream apart as well.
const CLIENT: &str = "client/";

/// Pages where people log in to upstreams while the gateway runs. Clones are the same.
#[derive(Clone)]
pub struct Connect(Arc<Inner>);

struct Inner {
    flows: Flows,
    logins: Box<dyn Logins>,
    /// Where browsers reach the gateway, where they do.
    base: OnceLock<String>,
    /// Who may call. What one person logs in to for several is for no page that one of them is sent to.
    callers: ArcSwap<Callers>,
    /// Whether each principal has a login of its own at any upstream.
    has_own: AtomicBool,
    tasks: Tasks,
}

impl Connect {
    /// None is reached yet. What goes on without a browser lives in this level.
    pub fn new(logins: impl Logins, tasks: &Tasks) -> Self {
        let (flows, logins, tasks) = (Flows::default(), Box::new(logins), tasks.clone());
        let (callers, has_own) = (ArcSwap::default(), AtomicBool::new(false));
        Self(Arc::new(Inner { flows, logins, base: OnceLock::new(), callers, has_own, tasks }))
    }

    /// Browsers reach the gateway there: by TLS, or on its own machine. A login goes nowhere else.
    pub fn reached_at(&self, url: &str) {
        let is_machine = |rest: &str| {
            let authority = rest.split('/').next().unwrap_or_default();
            let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
            matches!(host, "127.0.0.1" | "[::1]" | "localhost")
        };
        let is_fit = url.starts_with("https://") || url.strip_prefix("http://").is_some_and(is_machine);
        if is_fit {
            let _is_first = self.0.base.set(url.trim_end_matches('/').to_owned());
        }
    }

    /// These may call from now on, and there are upstreams where each of them has a login of its own, or not.
    pub fn called_by(&self, callers: Callers, has_own: bool) {
        self.0.callers.store(Arc::new(callers));
        self.0.has_own.store(has_own, Ordering::Relaxed);
    }

    /// Ends the pages of those whose credential has gone, and those that would not be told now: what is brought back for them keeps nothing.
    pub fn end_revoked(&self, gone: &[Principal]) {
        let is_meant = |(upstream, place): (&str, &str), principal: &Principal| {
            let is_there = || self.entry(upstream, principal).is_some_and(|entry| entry.place == place);
            !gone.contains(principal) && is_there()
        };
        self.0.flows.end(is_meant);
    }

    fn is_alone(&self, principal: &Principal) -> bool {
        self.0.callers.load().are_only(principal)
    }

    /// Whether there are any pages.
    pub(super) fn is_reached(&self) -> bool {
        self.0.base.get().is_some()
    }

    /// Whether a caller can be sent to a page of any upstream.
    pub(super) fn can_send(&self, caller: &Caller) -> bool {
        let has_any = || self.0.has_own.load(Ordering::Relaxed) || self.is_alone(&caller.principal);
        self.is_reached() && has_any() && caller.can().has(Capabilities::URL)
    }

    /// What a principal that may call can log in to at an upstream without doing so for others.
    fn entry(&self, upstream: &str, principal: &Principal) -> Option<Entry> {
        if !self.0.callers.load().has(principal) {
            return None;
        }
        let entry = self.0.logins.entry(upstream, principal)?;
        (entry.is_own || self.is_alone(principal)).then_some(entry)
    }

    /// Where a caller can be sent that needs a login at an upstream, or one that allows more; `None` where it is to be told what to run.
    pub(super) fn page(&self, caller: &Caller, upstream: &Arc<str>, is_for_more: bool) -> Option<Page> {
        let Inner { flows, base, .. } = &*self.0;
        let base = base.get().filter(|_| self.can_send(caller))?;
        let Entry { command, place, .. } = self.entry(upstream, &caller.principal)?;
        let (id, link) = flows.tell((upstream, &place), &caller.principal, caller.tenant.as_ref())?;
        let why = if is_for_more { "wants more than your login there allows" } else { "needs your login" };
        let message =
            format!("The upstream `{upstream}` {why}: a page of the gateway says where to log in. Or run `{command}`.");
        Some(Page { id, url: format!("{base}{PATH}{link}"), message })
    }

    /// Closed when nobody waits any more for the person behind a caller who is to log in to an upstream.
    pub(super) fn over(&self, caller: &Caller, upstream: &str) -> Option<watch::Receiver<bool>> {
        self.0.flows.over(upstream, &caller.principal)
    }

    /// The answer to a browser that asks for what stands behind [`PATH`].
    pub(super) async fn answer(self, path: String, query: String, headers: HeaderMap) -> Response<Bytes> {
        if is_prefetched(&headers) {
            return page::told(StatusCode::FORBIDDEN, &Told::Prefetched);
        }
        match (path.strip_prefix(CALLBACK), path.strip_prefix(CLIENT)) {
            (Some(upstream), _) => self.brought(upstream, query, &headers).await,
            (None, Some(upstream)) => self.described(upstream),
            (None, None) => self.visited(&path, &headers).await,
        }
    }

    /// Who the gateway is as a client, for an authorization server that asks itself.
    fn described(&self, upstream: &str) -> Response<Bytes> {
        // Whether there is such an upstream is for nobody to find out: the document says nothing but its own address.
        let is_name = is_name(upstream);
        match self.client(upstream) {
            Some(Registrant { redirect, document: Some(document) }) if is_name => page::client(&document, &redirect),
            _ => page::told(StatusCode::NOT_FOUND, &Told::Unknown),
        }
    }

    /// Who the gateway is at the authorization server of an upstream.
    fn client(&self, upstream: &str) -> Option<Registrant> {
        let pages = format!("{}{PATH}", self.0.base.get()?);
        let document = self.is_secure().then(|| format!("{pages}{CLIENT}{upstream}"));
        Some(Registrant { redirect: format!("{pages}{CALLBACK}{upstream}"), document })
    }

    fn is_secure(&self) -> bool {
        self.0.base.get().is_some_and(|base| base.starts_with("https://"))
    }

    async fn visited(&self, link: &str, headers: &HeaderMap) -> Response<Bytes> {
        let (is_secure, flows) = (self.is_secure(), &self.0.flows);
        let (id, set) = match flows.open(link, headers, is_secure) {
            Opened::Unknown => return page::told(StatusCode::NOT_FOUND, &Told::Unknown),
            Opened::Taken => return page::told(StatusCode::FORBIDDEN, &Told::Taken),
            Opened::Again { id } => (id, None),
            Opened::First { id, upstream, principal, cookie } => {
                self.begin(&id, &upstream, &principal);
                let set = cookie::set(&id, &cookie, is_secure, PERSON_MAX.as_secs());
                (id, Some(set))
            }
        };
        let mut answer = loop {
            match flows.shown(&id, asked) {
                Shown::Now(answer) => break answer,
                Shown::Gone => break page::told(StatusCode::NOT_FOUND, &Told::Unknown),
                // It is over with what it waits for.
                Shown::Later(mut moved) => _ = moved.changed().await,
            }
        };
        if let Some(set) = set.and_then(|set| HeaderValue::from_str(&set).ok()) {
            answer.headers_mut().insert(SET_COOKIE, set);
        }
        answer
    }

    /// Finds out where to log in, whatever becomes of the browser that waits for that.
    fn begin(&self, id: &str, upstream: &Arc<str>, principal: &Principal) {
        let Some(client) = self.client(upstream) else { return };
        let beginning: Doing<Begun> = match self.entry(upstream, principal) {
            Some(_) => self.0.logins.begin(upstream, principal, client),
            // The configuration is another one than when the link was told.
            None => Box::pin(async { Err(NOT_MEANT.to_owned()) }),
        };
        let (this, id, upstream) = (self.clone(), id.to_owned(), upstream.clone());
        self.0.tasks.spawn_until_end(async move {
            let begun = beginning.await;
            if let Err(why) = &begun {
                tracing::warn!(upstream = &*upstream, why, "no page to log in at");
            }
            this.0.flows.begun(&id, begun);
        });
    }

    async fn brought(&self, at: &str, query: String, headers: &HeaderMap) -> Response<Bytes> {
        let Some(state) = state_in(&query) else { return page::told(StatusCode::BAD_REQUEST, &Told::Unknown) };
        let (id, upstream, begun, over) = match self.0.flows.brought((at, &state), headers, self.is_secure()) {
            Brought::Unknown => return page::told(StatusCode::BAD_REQUEST, &Told::Unknown),
            Brought::Taken => return page::told(StatusCode::FORBIDDEN, &Told::Taken),
            Brought::Again => return page::told(StatusCode::CONFLICT, &Told::Again),
            Brought::Elsewhere { upstream } => {
                let why =
                    "the browser comes back to the address of another upstream, and what it brings was sent nowhere";
                tracing::warn!(upstream = &*upstream, at, why, "a person could not log in by a page");
                return page::told(StatusCode::BAD_GATEWAY, &Told::Failed { upstream: &upstream, why });
            }
            Brought::Good { id, upstream, principal, .. } if self.entry(&upstream, &principal).is_none() => {
                self.0.flows.failed(&id);
                return page::told(StatusCode::BAD_GATEWAY, &Told::Failed { upstream: &upstream, why: NOT_MEANT });
            }
            Brought::Good { id, upstream, begun, over, .. } => (id, upstream, begun, over),
        };
        let (this, (told, answer)) = (self.clone(), oneshot::channel());
        let Begun { finish, whose, .. } = *begun;
        // Whatever becomes of the browser: a code is good once.
        self.0.tasks.spawn_until_end(async move {
            let finished = finish(query, Box::pin(ended(over))).await;
            match &finished {
                Ok(_) => this.0.flows.done(&id),
                Err(_) => this.0.flows.failed(&id),
            }
            let _the_browser_has_gone = told.send(match finished {
                Ok(is_connected) => {
                    let whose = whose.as_deref();
                    page::told(StatusCode::OK, &Told::Done { upstream: &upstream, whose, is_connected })
                }
                Err(why) => page::told(StatusCode::BAD_GATEWAY, &Told::Failed { upstream: &upstream, why: &why }),
            });
        });
        answer.await.unwrap_or_else(|_| page::told(StatusCode::SERVICE_UNAVAILABLE, &Told::Ending))
    }
}

/// The configuration is another one than when the link was told.
const NOT_MEANT: &str = "no page leads there any more: since the link was told, others have the same login, or whoever it was told may not call any more";

/// Over when the page has been ended; never where it is over otherwise.
async fn ended(mut over: watch::Receiver<bool>) {
    if over.wait_for(|is_ended| *is_ended).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// How long the retry of a call waits for its person, at most: many clients wait for an answer for a minute.
pub(super) const RETRY_WAITS: Duration = Duration::from_secs(45);

/// What the page of a login shows.
fn asked(flow: &Flow, stage: &Stage) -> Response<Bytes> {
    match stage {
        Stage::Begun(begun) => {
            page::asked(&Asked { upstream: &flow.upstream, principal: flow.principal.name(), begun })
        }
        Stage::Failed(why) => page::told(StatusCode::BAD_GATEWAY, &Told::Failed { upstream: &flow.upstream, why }),
        Stage::Beginning | Stage::Finishing => page::told(StatusCode::CONFLICT, &Told::Again),
    }
}

#[cfg(test)]
mod tests {
    use super::super::logins::Doing;
    use super::*;
    use crate::call::caller::{Can, Grants, Principal};
    use crate::protocol::revision::Revision;

    struct Any;

    impl Logins for Any {
        fn entry(&self, upstream: &str, principal: &Principal) -> Option<Entry> {
            let is_own = upstream == "own" && !principal.is_anonymous();
            let command = format!("log in to {upstream} for {}", principal.name());
            ["up", "own"].contains(&upstream).then_some(Entry { is_own, command, place: String::new() })
        }

        fn begin(&self, upstream: &str, principal: &Principal, _: Registrant) -> Doing<Begun> {
            let why = format!("nobody is asked at {upstream} for {}", principal.name());
            Box::pin(async { Err(why) })
        }
    }

    fn caller(principal: Principal, revision: Revision, capabilities: &'static str) -> Caller {
        let (grants, capabilities) = (Grants::all(), Bytes::from(capabilities));
        let (address, tenant, can) = (None, None, Can::default());
        Caller { principal, address, grants, revision, capabilities, tenant, can }
    }

    const URL: &str = r#"{"elicitation":{"url":{}}}"#;

    fn is_sent(base: &str, callers: Callers, caller: &Caller, upstream: &str) -> bool {
        let connect = Connect::new(Any, &Tasks::new());
        connect.reached_at(base);
        connect.called_by(callers, upstream == "own");
        connect.page(caller, &upstream.into(), false).is_some()
    }

    #[test]
    fn a_caller_is_sent_where_its_browser_comes_to_safely_if_nobody_else_uses_what_it_logs_in_to() {
        let ada = Principal::of_token("ada");
        let (one, none) = (|| Callers::of_tokens(&["ada"]), || Callers::of_tokens(&[]));
        let able = caller(ada.clone(), Revision::V2025_11_25, URL);
        for (base, is_fit) in [
            ("https://mcp.example.com/gw", true),
            ("http://127.0.0.1:8808", true),
            ("http://[::1]:8808", true),
            ("http://localhost", true),
            ("http://10.0.0.1:8808", false),
            ("http://127.0.0.1.example.com", false),
            ("http://mcp.example.com", false),
        ] {
            assert_eq!(is_sent(base, one(), &able, "up"), is_fit, "{base}");
        }
        let base = "https://mcp.example.com";
        assert!(
            !is_sent(base, Callers::of_tokens(&["ada", "bob"]), &able, "up") && !is_sent(base, one(), &able, "other")
        );
        assert!(is_sent(base, none(), &caller(Principal::anonymous(), Revision::NEWEST_MODERN, URL), "up"));
        for (principal, revision, capabilities) in [
            (Principal::of_certificate("CN=ada"), Revision::V2025_11_25, URL),
            (Principal::of_user(7), Revision::V2025_11_25, URL),
            (ada.clone(), Revision::V2025_06_18, URL),
            (ada.clone(), Revision::V2025_11_25, r#"{"elicitation":{"form":{}}}"#),
            (ada, Revision::NEWEST_MODERN, "{}"),
        ] {
            let caller = caller(principal, revision, capabilities);
            assert!(!is_sent(base, one(), &caller, "up"), "{caller:?}");
        }
    }

    #[tokio::test]
    async fn each_principal_is_sent_to_its_own_page_where_it_has_a_login_of_its_own_and_it_is_begun_for_that_one() {
        let able = |principal| caller(principal, Revision::V2025_11_25, URL);
        let everyone = || Callers::all_kinds(&["ada", "bob"]);
        let base = "https://mcp.example.com";
        let all = [
            Principal::of_token("ada"),
            Principal::of_certificate("CN=ada"),
            Principal::of_user(7),
            Principal::of_access_token("https://as.example", "app", "ada"),
        ];
        for principal in &all {
            let able = able(principal.clone());
            assert!(is_sent(base, everyone(), &able, "own") && !is_sent(base, everyone(), &able, "up"), "{able:?}");
        }
        assert!(
            !is_sent(base, everyone(), &able(Principal::anonymous()), "own"),
            "that login is of all without a credential"
        );
        assert!(is_sent(base, Callers::of_tokens(&[]), &able(Principal::anonymous()), "own"));
        let connect = Connect::new(Any, &Tasks::new());
        connect.reached_at(base);
        connect.called_by(everyone(), true);
        for principal in &all {
            let page = connect.page(&able(principal.clone()), &"own".into(), false).unwrap();
            assert!(page.message.ends_with(&format!("Or run `log in to own for {}`.", principal.name())), "{page:?}");
            let link = page.url.strip_prefix("https://mcp.example.com/connect/").unwrap().to_owned();
            let answer = connect.clone().answer(link, String::new(), HeaderMap::new()).await;
            let said = String::from_utf8(answer.into_body().to_vec()).unwrap();
            assert!(said.contains(&format!("nobody is asked at own for {}", principal.name())), "{said}");
        }
        // Before a link is opened it becomes one that leads to the login of all.
        let alone = Connect::new(Any, &Tasks::new());
        alone.reached_at(base);
        alone.called_by(Callers::of_tokens(&["ada"]), false);
        let page = alone.page(&able(Principal::of_token("ada")), &"up".into(), false).unwrap();
        alone.called_by(Callers::of_tokens(&["ada", "bob"]), false);
        let link = page.url.strip_prefix("https://mcp.example.com/connect/").unwrap().to_owned();
        let answer = alone.clone().answer(link, String::new(), HeaderMap::new()).await;
        let said = String::from_utf8(answer.into_body().to_vec()).unwrap();
        assert!(said.contains("others have the same login") && !said.contains("nobody is asked"), "{said}");
    }
}
