//! What is counted of calls, by a recorder of its own.

use super::*;
use crate::call::caller::{Caller, Grants, Principal};
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Source, Step};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::recorder::Registry;
use crate::recorder::exposition::Format;
use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::Layer;

fn call(method: Method) -> Call {
    Call {
        method,
        params: Object::empty(),
        meta: Bytes::new(),
        caller: Arc::new(Caller {
            principal: Principal::anonymous(),
            address: None,
            grants: Grants::all(),
            revision: Revision::V2025_06_18,
            capabilities: Bytes::from_static(b"{}"),
            tenant: None,
            can: crate::call::caller::Can::default(),
        }),
        progress: false,
        log_level: None,
        is_notification: false,
        param_headers: None,
        target_name: None,
        public: None,
        bound_to: None,
        trace: None,
    }
}

/// Answers after the upstream had it for 3 ms, or never.
struct Slow(Option<&'static str>);

impl Source for Slow {
    fn poll_step(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Step> {
        match self.0 {
            Some(text) => Poll::Ready(Step::Done(Outcome::Complete(Object::parse(text.into()).unwrap()))),
            None => Poll::Pending,
        }
    }
    fn revision(&self) -> Revision {
        Revision::V2025_06_18
    }
    fn upstream_time(&self) -> Duration {
        Duration::from_millis(3)
    }
}

struct Scripted;

impl Handle for Scripted {
    fn handle(&self, call: Call) -> Reply {
        let revision = call.revision();
        match call.method {
            Method::ToolsCall => Reply::live(Slow(Some(r#"{"isError":true}"#))).owned_by(&"a".into()),
            Method::PromptsGet => Reply::refuse(revision, Refusal::new(Reason::Timeout, "late")).owned_by(&"a".into()),
            Method::Complete => Reply::refuse(revision, Refusal::new(Reason::BadAnswer, "odd")).owned_by(&"a".into()),
            Method::SetLevel => Reply::refuse(revision, Refusal::new(Reason::Busy, "full")).owned_by(&"a".into()),
            Method::Ping => Reply::refuse(revision, Refusal::new(Reason::OutcomeUnknown, "lost")).owned_by(&"a".into()),
            Method::ToolsList => Reply::complete(revision, Object::empty()),
            _ => Reply::live(Slow(None)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_method_owner_and_outcome() {
    let recorder = Registry::default();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let observed = Observe::default().layer(Scripted);
    let tool = observed.handle(call(Method::ToolsCall));
    tokio::time::advance(Duration::from_millis(5)).await;
    tool.outcome().await;
    let failing = [Method::Complete, Method::SetLevel, Method::Ping];
    for method in [Method::PromptsGet, Method::ToolsList, Method::ToolsList].into_iter().chain(failing) {
        observed.handle(call(method)).outcome().await;
    }
    for method in [Method::ResourcesRead, Method::Listen, Method::Other("made/up".into())] {
        drop(observed.handle(call(method)));
    }
    let text = recorder.render(Format::Prometheus);
    for line in [
        r#"trunkline_requests_total{method="tools/call",upstream="a",outcome="tool_error"} 1"#,
        r#"trunkline_requests_total{method="prompts/get",upstream="a",outcome="timeout"} 1"#,
        r#"trunkline_requests_total{method="completion/complete",upstream="a",outcome="bad_answer"} 1"#,
        r#"trunkline_requests_total{method="logging/setLevel",upstream="a",outcome="busy"} 1"#,
        r#"trunkline_requests_total{method="ping",upstream="a",outcome="outcome_unknown"} 1"#,
        r#"trunkline_requests_total{method="tools/list",upstream="_gateway",outcome="ok"} 2"#,
        r#"trunkline_requests_total{method="resources/read",upstream="_gateway",outcome="client_gone"} 1"#,
        r#"trunkline_requests_total{method="subscriptions/listen",upstream="_gateway",outcome="ok"} 1"#,
        r#"trunkline_requests_total{method="_other",upstream="_gateway",outcome="client_gone"} 1"#,
        r#"trunkline_request_duration_seconds_sum{method="tools/call",upstream="a"} 0.005"#,
        r#"trunkline_overhead_seconds_sum{method="tools/call"} 0.002"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let never = r#"trunkline_request_duration_seconds_count{method="subscriptions/listen",upstream="_gateway"} 0"#;
    assert!(text.contains(never), "a listen call has no duration:\n{text}");
}

/// Refuses by `[limits]`, by rights, or answers nothing.
struct Refusing;

impl Handle for Refusing {
    fn handle(&self, call: Call) -> Reply {
        let reason = match call.method {
            Method::ToolsCall => Reason::Limited(Duration::from_secs(1)),
            Method::PromptsGet => Reason::InvalidParams,
            _ => return Reply::live(Slow(None)).owned_by(&"a".into()),
        };
        let refusal = Refusal::new(reason, "no").denied(call.method == Method::PromptsGet);
        Reply::refuse(call.revision(), refusal).owned_by(&"a".into())
    }
}

#[tokio::test(start_paused = true)]
async fn what_limits_reject_rights_deny_clients_withdraw_and_clients_leave_is_told_apart() {
    let recorder = Registry::default();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let observed = Observe::default().layer(Refusing);
    for method in [Method::ToolsCall, Method::PromptsGet] {
        observed.handle(call(method)).outcome().await;
    }
    let mut withdrawn = observed.handle(call(Method::ResourcesRead));
    withdrawn.withdraw();
    drop(withdrawn);
    drop(observed.handle(call(Method::Complete)));
    let text = recorder.render(Format::Prometheus);
    for (method, outcome) in [
        ("tools/call", "rejected"),
        ("prompts/get", "denied"),
        ("resources/read", "cancelled"),
        ("completion/complete", "client_gone"),
    ] {
        let line = format!("trunkline_requests_total{{method=\"{method}\",upstream=\"a\",outcome=\"{outcome}\"}} 1");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_tool_are_timed_where_that_is_asked_for_alone() {
    for (tool_durations, is_timed) in [(false, false), (true, true)] {
        let recorder = Registry::default();
        let _local = ::metrics::set_default_local_recorder(&recorder);
        let config = Metrics { per_tool: true, tool_durations };
        let observed = Observe::new(config, Calls::default()).layer(Scripted);
        let named = Call { params: Object::parse(r#"{"name":"a__slow"}"#.into()).unwrap(), ..call(Method::ToolsCall) };
        let tool = observed.handle(named);
        tokio::time::advance(Duration::from_millis(5)).await;
        tool.outcome().await;
        let text = recorder.render(Format::Prometheus);
        let line = r#"trunkline_tool_duration_seconds_bucket{upstream="a",tool="a__slow",le="0.005"} 1"#;
        assert_eq!(text.contains(line), is_timed, "{text}");
        assert!(text.contains(r#"trunkline_tool_calls_total{upstream="a",tool="a__slow",outcome="tool_error"} 1"#));
        // What is offered is there before it is called.
        ::metrics::with_local_recorder(&recorder, || edges::tools_offered([("a", "a__new")].into_iter()));
        let text = recorder.render(Format::Prometheus);
        let line = r#"trunkline_tool_calls_total{upstream="a",tool="a__new",outcome="ok"} 0"#;
        assert_eq!(text.contains(line), !is_timed, "told once: {text}");
    }
}
