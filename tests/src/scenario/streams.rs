//! Calls that take their time: progress while they run, and their end by cancellation.

use crate::client::tool;
use crate::frame::quote;
use crate::journal::{Order, What};
use crate::judge;
use crate::scenario::Case;

/// Each notice of progress reaches the client while the call still runs, under the client's own token.
pub(crate) async fn progress(case: &Case) {
    let gate = judge::nonce();
    let arguments = format!("{{\"steps\":3,\"gate\":{}}}", quote(&gate));
    for token in ["\"token é\"", "5"] {
        let open = case.client.start(tool(&case.name("progress"), &arguments).token(token)).await;
        for step in 1..=3 {
            let params = open.progress(step).await;
            assert_eq!(params["total"], 3, "{params}");
            let says = case.client.revision.has_progress_message() && case.upstream_revision.has_progress_message();
            assert_eq!(params.get("message").is_some(), says, "message is of 2025-03-26: {params}");
            case.upstream.order(Order::Release(gate.clone())).await;
        }
        let notices = open.notices.clone();
        assert_eq!(open.answer().await.text(), "progressed");
        for notice in notices.all() {
            let given = notice.param("progressToken").map(|raw| raw.get().to_owned());
            assert_eq!(given.as_deref(), Some(token), "the client's own token");
        }
        assert_eq!(notices.all().len(), 3, "nothing more than what was sent");
    }
}

/// A cancel reaches the call that it means, under the upstream's id for it, and nothing else.
pub(crate) async fn cancel(case: &Case) {
    let gate = judge::nonce();
    let arguments = format!("{{\"gate\":{}}}", quote(&gate));
    let name = case.name("wait");
    let mark = case.upstream.events.mark();
    let bystander = match &case.bystander {
        Some(other) => {
            let waits = case.client.start(tool(&format!("{}__wait", other.name), &arguments)).await;
            other.waiting_at(&gate).await;
            Some((other, waits))
        }
        None => None,
    };
    let stays = case.client.start(tool(&name, &arguments)).await;
    let stays_id = case.upstream.waiting_at_from(mark, &gate).await;
    let mark = case.upstream.events.mark();
    let goes = case.client.start(tool(&name, &arguments)).await;
    let goes_id = case.upstream.waiting_at_from(mark, &gate).await;
    assert_ne!(stays_id, goes_id, "ids towards an upstream are unique");

    goes.cancel().await;
    let (id, _) = case.upstream.cancelled(mark).await;
    assert_eq!(id, goes_id, "the call that was meant");

    case.upstream.order(Order::Open(gate.clone())).await;
    assert_eq!(stays.answer().await.text(), "released", "the other call goes on");
    if let Some((other, waits)) = bystander {
        other.order(Order::Open(gate)).await;
        assert_eq!(waits.answer().await.text(), "released", "the other upstream is not disturbed");
        let cancelled = |event: crate::journal::Event| matches!(event.what, What::Cancelled { .. });
        assert!(!other.events.all().into_iter().any(cancelled), "the other upstream heard of a cancel");
    }
    let cancels = case.upstream.events.find(mark, |event| match &event.what {
        What::Cancelled { id, .. } if *id != goes_id => Some(id.clone()),
        _ => None,
    });
    assert_eq!(cancels, None, "only one call was cancelled");
}
