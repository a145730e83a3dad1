//! What is sampled, what leaves, and what becomes of it where the collector does not take it.

use super::*;
use crate::protocol::frame::Method;
use crate::recorder::Registry;
use crate::recorder::exposition::Format;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{advance, sleep};

fn span() -> Span {
    let now = SystemTime::now();
    Span {
        context: Context::root([1; 16], [2; 8], true),
        parent: None,
        link: None,
        side: Side::Server,
        name: "tools/call a__x".to_owned(),
        time: (now, now),
        attributes: Vec::new(),
        error: None,
    }
}

#[test]
fn a_callers_decision_holds_and_without_one_the_ratio_does() {
    let low = Sampler { ratio: 0.25, is_parent_based: true };
    let trace = |first: u8| [9, 9, 9, 9, 9, 9, 9, 9, first, 0, 0, 0, 0, 0, 0, 0];
    assert!(low.samples(&trace(0x3f), None) && !low.samples(&trace(0x40), None));
    assert!(low.samples(&trace(0xff), Some(true)) && !low.samples(&trace(0), Some(false)));
    let own = Sampler { is_parent_based: false, ..low };
    assert!(!own.samples(&trace(0xff), Some(true)) && own.samples(&trace(0), Some(false)));
    let [none, all] = [0.0, 1.0].map(|ratio| Sampler { ratio, is_parent_based: false });
    assert!(all.samples(&[0xff; 16], None) && !none.samples(&[0; 16], None));
    let ids = Ids::default();
    let made: std::collections::HashSet<_> = (0..1000).map(|_| ids.trace()).collect();
    let sampled = made.iter().filter(|trace| low.samples(trace, None)).count();
    assert!(made.len() == 1000 && (150..350).contains(&sampled), "{sampled}");
}

#[test]
fn a_name_that_no_upstream_has_does_not_leave() {
    let mut span = span();
    span.put("mcp.method.name", Method::ToolsCall.label());
    span.put("gen_ai.tool.name", "made-up");
    span.unname();
    assert_eq!((span.name.as_str(), span.attributes.len()), ("tools/call", 1));
}

#[test]
fn a_span_that_finds_no_room_is_counted_and_nobody_waits() {
    let registry = Registry::default();
    ::metrics::with_local_recorder(&registry, || {
        let (queue, mut spans) = channel(2);
        let maker = Maker { sampler: Sampler::default(), ids: Ids::default(), queue };
        (0..5).for_each(|_| maker.take(span()));
        assert!(spans.try_recv().is_ok());
    });
    let shown = registry.render(Format::Prometheus);
    assert!(shown.contains("trunkline_trace_spans_total{outcome=\"dropped\"} 3\n"), "{shown}");
}

/// A collector that gives these answers, one after the other, and what it was given: when, and how many bytes.
struct Collector {
    seen: Arc<Mutex<Vec<(Duration, usize)>>>,
    post: Post,
}

fn collector(answers: &[Result<u16, &'static str>]) -> Collector {
    let begun = tokio::time::Instant::now();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (kept, answers) = (seen.clone(), Mutex::new(VecDeque::from(answers.to_vec())));
    let post: Post = Box::new(move |body| {
        kept.lock().unwrap().push((begun.elapsed(), body.len()));
        let answer = answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match answer {
                Some(answer) => answer.map(|status| (status, Bytes::new())).map_err(str::to_owned),
                None => std::future::pending().await,
            }
        })
    });
    Collector { seen, post }
}

fn traces(post: Post, tasks: &Tasks) -> Traces {
    let config = Config { service: "t".into(), resource: Vec::new(), sampler: Sampler::default() };
    Traces::start(&config, post, tasks)
}

#[tokio::test(start_paused = true)]
async fn spans_leave_together_after_a_moment_and_what_was_not_taken_is_sent_again_with_longer_pauses() {
    let tasks = Tasks::new();
    let Collector { seen, post } = collector(&[Err("down"), Ok(503), Ok(200), Ok(400), Ok(200)]);
    let traces = traces(post, &tasks);
    (0..3).for_each(|_| traces.0.take(span()));
    sleep(Duration::from_secs(10)).await;
    let times = |seen: &Mutex<Vec<(Duration, usize)>>| -> Vec<u64> {
        seen.lock().unwrap().iter().map(|(at, _)| at.as_secs()).collect()
    };
    assert_eq!(times(&seen), [1, 2, 4], "gathered for a second, then again after one and two");
    let bytes: Vec<usize> = seen.lock().unwrap().iter().map(|(_, bytes)| *bytes).collect();
    assert!(bytes.iter().all(|one| *one == bytes[0]), "the same batch each time: {bytes:?}");
    // What the collector does not want is not sent twice.
    traces.0.take(span());
    sleep(Duration::from_secs(10)).await;
    traces.0.take(span());
    sleep(Duration::from_secs(10)).await;
    assert_eq!(times(&seen), [1, 2, 4, 11, 21]);
}

#[tokio::test(start_paused = true)]
async fn the_end_sends_what_waits_and_does_not_wait_for_a_collector_that_says_nothing() {
    let tasks = Tasks::new();
    let Collector { seen, post } = collector(&[]);
    let traces = traces(post, &tasks);
    traces.0.take(span());
    advance(Duration::from_millis(1)).await;
    tasks.end();
    let begun = tokio::time::Instant::now();
    tasks.ended().await;
    assert_eq!((seen.lock().unwrap().len(), begun.elapsed()), (1, Duration::from_secs(2)));
}

#[tokio::test(start_paused = true)]
async fn what_the_collector_has_under_way_has_no_more_time_at_the_end_than_what_is_left() {
    let tasks = Tasks::new();
    let Collector { seen, post } = collector(&[]);
    let traces = traces(post, &tasks);
    traces.0.take(span());
    sleep(Duration::from_secs(3)).await;
    traces.0.take(span());
    assert_eq!(seen.lock().unwrap().len(), 1, "it has said nothing yet");
    tasks.end();
    let begun = tokio::time::Instant::now();
    tasks.ended().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn no_batch_is_larger_than_it_may_be_at_the_end_neither() {
    let tasks = Tasks::new();
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let seen = sizes.clone();
    let post: Post = Box::new(move |body| {
        // The name stands once in each span.
        seen.lock().unwrap().push(memchr::memmem::find_iter(&body, b"tools/call a__x").count());
        Box::pin(async { Ok((200, Bytes::new())) })
    });
    let traces = traces(post, &tasks);
    let give = |count: usize| (0..count).for_each(|_| traces.0.take(span()));
    give(100);
    sleep(Duration::from_millis(10)).await;
    give(4000);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(*sizes.lock().unwrap(), [2048, 2048, 4]);
    give(5000);
    tasks.end();
    tasks.ended().await;
    assert_eq!(sizes.lock().unwrap()[3..], [2048, 2048, 904]);
}

#[tokio::test(start_paused = true)]
async fn spans_that_the_collector_rejects_are_not_counted_as_sent() {
    let (registry, tasks) = (Registry::default(), Tasks::new());
    let _counted = ::metrics::set_default_local_recorder(&registry);
    // It has rejected two spans of the first batch, and more than there are of the second.
    let answers = Mutex::new(VecDeque::from([&b"\x0a\x06\x08\x02\x12\x02no"[..], b"\x0a\x02\x08\x09", b""]));
    let post: Post = Box::new(move |_| {
        let answer = answers.lock().unwrap().pop_front().unwrap_or_default();
        Box::pin(async move { Ok((200, Bytes::from_static(answer))) })
    });
    let traces = traces(post, &tasks);
    for batch in [5, 3, 1] {
        (0..batch).for_each(|_| traces.0.take(span()));
        sleep(Duration::from_secs(2)).await;
    }
    let shown = registry.render(Format::Prometheus);
    for (outcome, count) in [("dropped", 5), ("sent", 4)] {
        let series = format!("trunkline_trace_spans_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(shown.contains(&series), "{series} is not in {shown}");
    }
}
