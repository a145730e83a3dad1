//! Chunks in any order, shape and number.

use super::*;

fn body(text: &'static str) -> Body {
    Body::Result(Object::parse(text.into()).unwrap())
}

fn arrive(chunks: &Chunks, id: &str, chunk: &str) -> bool {
    chunks
        .arrived(&Object::parse(format!("{{\"streamId\":{id},\"chunk\":{chunk}}}").into()).unwrap(), &Budget::default())
}

/// All that a result comes to, as far as it has come.
fn read(folding: &mut Folding) -> Vec<String> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut seen = Vec::new();
    while let Poll::Ready(fold) = folding.poll(&mut cx) {
        let (text, is_end) = match fold {
            Fold::Progress(params) => (params.raw().clone(), false),
            Fold::Whole(result) => (result.raw().clone(), true),
            Fold::Broken(why) => (Bytes::copy_from_slice(why.full().as_bytes()), true),
        };
        seen.push(String::from_utf8(text.to_vec()).unwrap());
        if is_end {
            break;
        }
    }
    seen
}

#[test]
fn chunks_are_told_as_they_come_and_folded_into_one_result() {
    let chunks = Arc::new(Chunks::default());
    // The reader may be ahead of whoever waits for the answer.
    assert!(arrive(&chunks, "\"s\"", r#"{"type":"text","content":"a\u0062","final":false}"#));
    let head = body(r#"{"stream":true,"streamId":"s","content":[{"type":"text","text":"0"}],"_meta":{"x":1}}"#);
    let mut folding = chunks.announced(&head, None, 0, std::future::pending()).unwrap();
    assert_eq!(read(&mut folding), [r#"{"progressToken":0,"progress":1,"message":"a\u0062"}"#]);
    arrive(&chunks, "\"other\"", r#"{"type":"text","content":"not mine","final":true}"#);
    arrive(&chunks, "\"s\"", r#"{"type":"text","content":"c"}"#);
    arrive(&chunks, "\"s\"", r#"{"type":"image","content":{"type":"image","data":"AA","mimeType":"image/png"}}"#);
    arrive(&chunks, "\"s\"", r#"{"type":"text","content":"d","final":true}"#);
    let last = read(&mut folding).pop().unwrap();
    let blocks = r#"{"type":"text","text":"0"},{"type":"text","text":"abc"},{"type":"image","data":"AA","mimeType":"image/png"},{"type":"text","text":"d"}"#;
    assert_eq!(last, format!(r#"{{"content":[{blocks}],"_meta":{{"x":1}}}}"#));
}

#[test]
fn what_announces_nothing_is_a_result_as_any_other() {
    let chunks = Arc::new(Chunks::default());
    for plain in [
        r#"{"content":[]}"#,
        r#"{"stream":false,"streamId":"s"}"#,
        r#"{"content":[{"text":"\"streamId\""}]}"#,
        r#"{"structuredContent":{"streamId":"s"}}"#,
    ] {
        assert!(chunks.announced(&body(plain), None, 0, std::future::pending()).is_none(), "{plain}");
    }
    assert!(chunks.announced(&body(r#"{"stream":{"streamId":7}}"#), None, 0, std::future::pending()).is_some());
}

#[test]
fn chunks_are_bounded_and_too_many_are_said_and_not_lost_unseen() {
    let chunks = Arc::new(Chunks::default());
    let mut folding = chunks.announced(&body(r#"{"streamId":1}"#), None, 0, std::future::pending()).unwrap();
    let big = format!(r#"{{"content":"{}"}}"#, "x".repeat(WHOLE_BYTES_MAX / 4));
    (0..4).for_each(|_| assert!(arrive(&chunks, "1", &big)));
    assert!(read(&mut folding).last().unwrap().contains("more than may be held"));
    // What nobody comes for takes nobody's place for ever.
    (0..1000).for_each(|id| assert!(arrive(&chunks, &format!("\"{id}\""), r#"{"content":"x"}"#)));
    assert_eq!(chunks.lock().len(), STREAMS_MAX);
    drop(folding);
    assert_eq!(chunks.lock().len(), STREAMS_MAX - 1);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_is_told_several_chunks_in_one_and_misses_nothing_of_the_result() {
    let chunks = Arc::new(Chunks::default());
    let mut folding = chunks.announced(&body(r#"{"streamId":1}"#), None, 7, std::future::pending()).unwrap();
    (0..1000).for_each(|_| assert!(arrive(&chunks, "1", r#"{"content":"x"}"#)));
    assert!(arrive(&chunks, "1", r#"{"content":"y","final":true}"#));
    let seen = read(&mut folding);
    // Of a call that had progress before, as many as will do.
    assert_eq!(seen, [format!(r#"{{"content":[{{"type":"text","text":"{}y"}}]}}"#, "x".repeat(1000))]);
    let mut folding = chunks.announced(&body(r#"{"streamId":2}"#), None, 0, std::future::pending()).unwrap();
    (0..1000).for_each(|_| assert!(arrive(&chunks, "2", r#"{"content":"x"}"#)));
    assert!(arrive(&chunks, "2", r#"{"content":"y","final":true}"#));
    let seen = read(&mut folding);
    let (notes, whole) = (&seen[..8], &seen[8..]);
    assert!(notes[0].contains("\"progress\":1,\"message\":\"x\""), "{}", notes[0]);
    let rest = format!("\"progress\":1000,\"message\":\"{}\"", "x".repeat(993));
    assert!(notes[7].contains(&rest), "{}", notes[7]);
    assert!(whole.len() == 1 && whole[0].contains(&format!("\"{}y\"", "x".repeat(1000))));
    // What would be too long gives way to what came last.
    let mut folding = chunks.announced(&body(r#"{"streamId":3}"#), None, 0, std::future::pending()).unwrap();
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(NOTE_BYTES_MAX - 2));
    (0..8).for_each(|_| assert!(arrive(&chunks, "3", &long)));
    assert!(arrive(&chunks, "3", r#"{"content":"z"}"#));
    assert!(arrive(&chunks, "3", r#"{"content":"y","final":true}"#));
    let seen = read(&mut folding);
    assert!(seen[7].contains("\"progress\":9,\"message\":\"z\""), "{}", seen[7]);
}

#[test]
fn what_comes_after_its_reader_has_gone_is_no_part_of_the_next_result_of_that_name() {
    let chunks = Arc::new(Chunks::default());
    let begin = || chunks.announced(&body(r#"{"streamId":1}"#), None, 0, std::future::pending()).unwrap();
    drop(begin());
    assert!(arrive(&chunks, "1", r#"{"content":"late"}"#));
    let mut next = begin();
    assert!(arrive(&chunks, "1", r#"{"content":"own","final":true}"#));
    assert_eq!(read(&mut next), [r#"{"content":[{"type":"text","text":"own"}]}"#]);
    drop(begin());
    assert!(arrive(&chunks, "1", r#"{"content":"late","final":true}"#));
    assert!(chunks.lock().iter().all(|stream| stream.id != "1"), "its last chunk ends it");
}

#[test]
fn a_stream_that_ends_before_the_last_chunk_ends_the_result() {
    let chunks = Arc::new(Chunks::default());
    let mut folding = chunks.announced(&body(r#"{"streamId":1}"#), None, 0, std::future::pending()).unwrap();
    arrive(&chunks, "1", r#"{"content":"x"}"#);
    chunks.unfinished(b"1");
    assert!(read(&mut folding)[1].contains("before the last one"));
    let mut folding = chunks.announced(&body(r#"{"streamId":2}"#), None, 0, std::future::pending()).unwrap();
    arrive(&chunks, "2", r#"{"content":"x","final":true}"#);
    chunks.unfinished(b"2");
    assert!(read(&mut folding)[0].contains("\"x\""));
}

#[test]
fn a_link_that_ends_ends_the_result() {
    let chunks = Arc::new(Chunks::default());
    let closed = std::future::ready("it has ended".into());
    let mut folding = chunks.announced(&body(r#"{"streamId":1}"#), None, 0, closed).unwrap();
    arrive(&chunks, "1", r#"{"content":"x"}"#);
    assert_eq!(read(&mut folding).last().unwrap(), "it has ended", "after what had come");
}

#[test]
fn one_client_leaves_others_as_many_results_and_bytes_as_it_has() {
    let chunks = Arc::new(Chunks::default());
    let share = |name: &str| Share::Principal(crate::call::caller::Principal::named(name));
    let begin = |id: usize, name: &str| {
        let head = Body::Result(Object::parse(format!("{{\"streamId\":{id}}}").into()).unwrap());
        chunks.announced(&head, Some(&share(name)), 0, std::future::pending()).unwrap()
    };
    let is_refused = |folding: &mut Folding| read(folding).last().is_some_and(|last| last.contains("this client's"));
    let mut many: Vec<_> = (0..200).map(|id| begin(id, "one")).collect();
    assert_eq!(many.iter_mut().map(is_refused).filter(|is| *is).count(), 200 - STREAMS_MAX / 2);
    let mut other = begin(1000, "other");
    assert!(read(&mut other).is_empty(), "there is room for it");
    // Of the bytes, too.
    let large = format!(r#"{{"content":"{}"}}"#, "x".repeat(WHOLE_BYTES_MAX / 4));
    for id in 0..8 {
        arrive(&chunks, &id.to_string(), &large);
    }
    let cut =
        many[..8].iter_mut().filter_map(|one| read(one).last().cloned()).filter(|last| last.contains("may be held"));
    assert_eq!(cut.count(), 1, "seven have less than half of all, and eight had half");
    arrive(&chunks, "1000", &large);
    assert!(!read(&mut other).iter().any(|said| said.contains("may be held")));
}
