//! The ladder over an in-memory pipe.

use crate::peer::fault::{Fault, FaultKind};
use crate::peer::probe::{ProbePlan, meet};
use crate::protocol::capabilities::Capabilities;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::upstream::tests::rig::{Far, Rig, config};
use std::time::Duration;
use tokio::time::Instant;

const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;
const SHAKEN: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}"#;

/// Meets an upstream that is played by `play`.
async fn meets<F: Future<Output = Far>>(
    plan: ProbePlan,
    play: impl FnOnce(Far) -> F,
) -> (Result<Revision, Fault>, Far) {
    let rig = Rig::new(config());
    let link = rig.link();
    let forms = Capabilities::FORM.into();
    let (met, far) = tokio::join!(meet(&link, plan, &forms), play(rig.far));
    (met.map(|peer| peer.revision()), far)
}

#[tokio::test(start_paused = true)]
async fn a_real_answer_makes_it_modern_and_nothing_more_is_sent() {
    let (met, mut far) = meets(ProbePlan::Ask, |mut far| async {
        let (id, method, _) = far.request().await;
        assert_eq!(method, Method::Discover);
        far.result(&id, DISCOVERED).await;
        far
    })
    .await;
    assert_eq!(met.unwrap(), Revision::V2026_07_28);
    assert!(far.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_means_a_handshake_at_once() {
    let begun = Instant::now();
    let (met, mut far) = meets(ProbePlan::Ask, |mut far| async {
        let (id, _, _) = far.request().await;
        far.error(&id, -32000).await;
        let (id, method, params) = far.request().await;
        assert_eq!((method, params.find("protocolVersion")), (Method::Initialize, Some(&br#""2025-11-25""#[..])));
        assert_eq!(params.find("capabilities"), Some(&br#"{"elicitation":{"form":{}}}"#[..]));
        far.result(&id, SHAKEN).await;
        far
    })
    .await;
    assert_eq!(met.unwrap(), Revision::V2025_06_18);
    assert_eq!(far.notification().await.0, Method::Initialized);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn after_silence_the_first_valid_answer_of_either_wins() {
    for modern_wins in [true, false] {
        let begun = Instant::now();
        let (met, mut far) = meets(ProbePlan::Ask, |mut far| async move {
            let (asked, _, _) = far.request().await;
            let (shaken, method, _) = far.request().await;
            assert_eq!((method, begun.elapsed().as_secs()), (Method::Initialize, 3));
            match modern_wins {
                true => {
                    far.error(&shaken, -32601).await;
                    far.result(&asked, DISCOVERED).await;
                }
                false => {
                    far.error(&asked, -32601).await;
                    tokio::time::sleep(Duration::from_secs(40)).await;
                    far.result(&shaken, SHAKEN).await;
                }
            }
            far
        })
        .await;
        assert_eq!(met.unwrap().is_modern(), modern_wins);
        if !modern_wins {
            assert_eq!(far.notification().await.0, Method::Initialized);
        }
        assert!(far.is_quiet().await, "nothing is cancelled");
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_after_the_question_is_told_apart_from_an_end_after_the_handshake() {
    for (plan, kind) in [(ProbePlan::Ask, FaultKind::EndedWhenAsked), (ProbePlan::Handshake, FaultKind::Passing)] {
        let rig = Rig::new(config());
        let (link, mut far) = (rig.link(), rig.far);
        let end = async move {
            far.request().await;
            drop(far);
        };
        let forms = Capabilities::FORM.into();
        let (met, ()) = tokio::join!(meet(&link, plan, &forms), end);
        assert_eq!(met.err().unwrap().kind, kind);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_nearly_the_whole_start_time_is_taken() {
    let begun = Instant::now();
    let (met, _far) = meets(ProbePlan::Ask, |mut far| async {
        let _asked = far.request().await;
        let (id, method, _) = far.request().await;
        assert_eq!(method, Method::Initialize);
        tokio::time::sleep_until(begun + Duration::from_secs(55)).await;
        far.result(&id, SHAKEN).await;
        far
    })
    .await;
    assert_eq!((met.unwrap(), begun.elapsed().as_secs()), (Revision::V2025_06_18, 55));
}
