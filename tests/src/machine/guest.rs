//! A client that comes for a moment: with raw requests, for one principal, on connections of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;

use crate::client::http::{Headers, HttpWire};
use crate::client::{Answer, Request, tool};
use crate::judge;
use crate::machine::setting::bearer;
use crate::machine::stage::Stage;
use crate::revision::Revision;
use crate::tape::Tape;

/// The revision that it speaks.
pub(crate) const SPEAKS: Revision = Revision::R2025_11_25;
/// How long it waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// One that comes for a moment.
pub(crate) struct Guest {
    wire: Arc<HttpWire>,
    principal: String,
}

impl Guest {
    /// A guest of that principal; none where there is no endpoint.
    pub(crate) fn of(stage: &Stage, principal: &str) -> Option<Guest> {
        let wire = HttpWire::new(&format!("http://{}/mcp", stage.endpoint()?), SPEAKS);
        Some(Guest { wire, principal: bearer(principal) })
    }

    /// What each of its requests in this session has before its body.
    pub(crate) fn headers(&self, session: Option<&str>) -> Headers {
        let mut headers: Headers = vec![
            ("content-type".into(), "application/json".into()),
            ("accept".into(), "application/json, text/event-stream".into()),
            ("authorization".into(), self.principal.clone()),
        ];
        if let Some(session) = session {
            headers.push(("mcp-session-id".into(), session.into()));
            headers.push(("mcp-protocol-version".into(), SPEAKS.text().into()));
        }
        headers
    }

    /// Posts a frame.
    pub(crate) async fn post(&self, session: Option<&str>, frame: String) -> Result<Answer, String> {
        self.exchange(Method::POST, session, frame.into()).await
    }

    async fn exchange(&self, method: Method, session: Option<&str>, body: Bytes) -> Result<Answer, String> {
        let (headers, notices) = (self.headers(session), Tape::default());
        let exchange = self.wire.exchange(method, &headers, body, &notices);
        let answer = tokio::time::timeout(PATIENCE, exchange).await;
        answer.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")))
    }

    /// Opens a session; its id.
    pub(crate) async fn opens(&self) -> Result<String, String> {
        let params = format!(
            "{{\"protocolVersion\":\"{SPEAKS}\",\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"guest\",\"version\":\"1\"}}}}"
        );
        let answer = self.post(None, Request::new("initialize", &params).text(SPEAKS, "1")).await?;
        let id = answer.header("mcp-session-id").map(str::to_owned);
        id.ok_or_else(|| format!("HTTP {}: {}", answer.status, String::from_utf8_lossy(&answer.body)))
    }

    /// Says something in a session, so that it counts as used.
    pub(crate) async fn pings(&self, session: &str) -> bool {
        let answer = self.post(Some(session), Request::new("ping", "{}").text(SPEAKS, "2")).await;
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// Ends a session.
    pub(crate) async fn ends(&self, session: &str) -> Result<(), String> {
        let answer = self.exchange(Method::DELETE, Some(session), Bytes::new()).await?;
        if answer.status < 300 { Ok(()) } else { Err(format!("the end of its session got HTTP {}", answer.status)) }
    }

    /// A whole visit: a session, the tools, a call of this upstream, the end of the session. How long it took.
    pub(crate) async fn visits(&self, upstream: Option<&str>) -> Result<Duration, String> {
        let begun = Instant::now();
        let session = self.opens().await?;
        self.post(Some(&session), Request::new("notifications/initialized", "{}").notification(SPEAKS)).await?;
        let listed = self.post(Some(&session), Request::new("tools/list", "{}").text(SPEAKS, "3")).await?;
        if listed.frame.as_ref().is_none_or(|frame| frame.result.is_none()) {
            return Err(format!("its list got HTTP {}", listed.status));
        }
        if let Some(upstream) = upstream {
            let nonce = judge::nonce();
            let call = tool(&format!("{upstream}__echo"), &judge::arguments(&nonce)).text(SPEAKS, "4");
            let answer = self.post(Some(&session), call).await?;
            if judge::echoed(&answer).as_ref() != Some(&nonce) {
                return Err(format!("its call got HTTP {}: {:?}", answer.status, answer.frame));
            }
        }
        let took = begun.elapsed();
        self.ends(&session).await?;
        Ok(took)
    }
}
