//! What is news to a listener, and what it has seen.

use super::*;

#[tokio::test(start_paused = true)]
async fn who_begins_to_listen_is_not_told_of_what_had_changed_before() {
    let listeners = Listeners::default();
    let asked = call(Method::Listen, "{}");
    let era = asked.revision().era();
    let registration = listeners.register(&asked, &ListenFilter::lists(), Sees::Era).unwrap();
    let both = |_: Option<&Arc<Rights>>| vec![Kind::Tools, Kind::Prompts];
    let waker = std::task::Waker::noop();
    let heard = || std::iter::from_fn(|| registration.listener.next(waker)).map(|heard| format!("{heard:?}"));
    let heard = || heard().collect::<Vec<_>>();
    // Between its place and its look at the catalog.
    listeners.tell_era(era, &versions(5, [8, 9]), &both);
    registration.saw(versions(5, [8, 9]));
    listeners.tell_era(era, &versions(5, [8, 9]), &both);
    assert!(heard().is_empty());
    // Others are told of both since the one before; this one has seen the prompts.
    listeners.tell_era(era, &versions(6, [10, 9]), &both);
    assert_eq!(heard(), ["Change(Tools)"]);
    // Both are as they were: that is a change for who was told of another one.
    listeners.tell_era(era, &versions(7, [8, 9]), &both);
    assert_eq!(heard(), ["Change(Tools)"]);
}
