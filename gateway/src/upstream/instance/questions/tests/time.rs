//! A call's time stands still while a person is asked.

use super::*;
use crate::call::refusal::Reason;
use crate::call::reply::{Failure, Outcome};
use crate::upstream::tests::rig::{config, outcome};
use tokio::time::{Instant, sleep};

fn limited() -> Config {
    let (idle, whole) = (Duration::from_secs(30), Duration::from_secs(60));
    Config { call_timeout: Some(idle), max_call_time: Some(whole), ..config() }
}

async fn runs_out(reply: &mut Reply) {
    let Outcome::Error(Failure::Refused(refusal)) = outcome(reply).await else { panic!() };
    assert_eq!(refusal.reason, Reason::Timeout);
}

#[tokio::test(start_paused = true)]
async fn it_stands_still_and_goes_on_with_the_answer() {
    let mut rig = rig(limited());
    let begun = Instant::now();
    let (mut reply, _) = started(&mut rig, Call { progress: true, ..modern() }).await;
    sleep(Duration::from_secs(20)).await;
    elicits(&mut rig.far, "1").await;
    let ask = question(&mut reply).await;
    rig.far.notify("notifications/progress", r#"{"progressToken":1,"progress":1}"#).await;
    assert!(matches!(within(reply.next()).await, Step::Event(Event::Progress(_))));
    assert!(tokio::time::timeout(Duration::from_secs(300), reply.next()).await.is_err());
    give(ask.answer, MODERN, "{}");
    rig.far.line().await;
    runs_out(&mut reply).await;
    // The answer was a sign of life, and 300 of the seconds do not count.
    assert_eq!(begun.elapsed().as_secs(), 20 + 300 + 30);
}

#[tokio::test(start_paused = true)]
async fn it_stands_still_while_nobody_reads_the_reply() {
    let mut rig = rig(limited());
    let (mut reply, _) = started(&mut rig, modern()).await;
    elicits(&mut rig.far, "1").await;
    let ask = question(&mut reply).await;
    sleep(Duration::from_secs(500)).await;
    give(ask.answer, MODERN, "{}");
    rig.far.line().await;
    sleep(Duration::from_secs(100)).await;
    let begun = Instant::now();
    runs_out(&mut reply).await;
    assert_eq!(begun.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn it_stands_still_for_every_call_that_the_question_may_belong_to() {
    let mut rig = rig(limited());
    let tenant = session("1");
    let begun = Instant::now();
    let (mut first, _) = started(&mut rig, tool(LEGACY, ALL, Some(&tenant))).await;
    let (mut newest, _) = started(&mut rig, tool(LEGACY, ALL, Some(&tenant))).await;
    let polled = async {
        runs_out(&mut first).await;
        begun.elapsed().as_secs()
    };
    let playing = async {
        sleep(Duration::from_secs(20)).await;
        elicits(&mut rig.far, "1").await;
        let ask = question(&mut newest).await;
        sleep(Duration::from_secs(200)).await;
        give(ask.answer, LEGACY, "{}");
        rig.far.line().await;
    };
    assert_eq!(tokio::join!(polled, playing).0, 20 + 200 + 30);
}
