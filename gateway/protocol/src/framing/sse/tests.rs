//! How streams of events are taken apart and written.

use super::*;

fn all(decoder: &mut Decoder<Vec<u8>>) -> Vec<Result<SseEvent, Untaken>> {
    std::iter::from_fn(|| decoder.next_event()).collect()
}

fn decode(stream: &[u8]) -> Vec<Result<SseEvent, Untaken>> {
    let mut whole = Decoder::new(32, Vec::new());
    whole.push(stream);
    let expected = all(&mut whole);
    for step in 1..stream.len().min(9) {
        let mut pieces = Decoder::new(32, Vec::new());
        let mut seen = Vec::new();
        for chunk in stream.chunks(step) {
            pieces.push(chunk);
            seen.extend(all(&mut pieces));
        }
        assert_eq!(seen, expected, "split every {step} bytes: {}", String::from_utf8_lossy(stream));
    }
    for at in 0..=stream.len() {
        let mut halves = Decoder::new(32, Vec::new());
        let mut seen = Vec::new();
        for half in [&stream[..at], &stream[at..]] {
            halves.push(half);
            seen.extend(all(&mut halves));
        }
        assert_eq!(seen, expected, "split at {at}: {}", String::from_utf8_lossy(stream));
    }
    expected
}

fn data(text: &'static str) -> Result<SseEvent, Untaken> {
    Ok(SseEvent { data: Bytes::from_static(text.as_bytes()), ..SseEvent::default() })
}

#[test]
fn vectors() {
    type Case = (&'static [u8], Vec<Result<SseEvent, Untaken>>);
    let table: [Case; 22] = [
        (b"data: a\n\n", vec![data("a")]),
        (b"data:a\r\n\r\n", vec![data("a")]),
        (b"data:  a\r\r", vec![data(" a")]),
        (b"\xef\xbb\xbfdata: a\n\ndata: b\r\n\n", vec![data("a"), data("b")]),
        (b"data: a\ndata\ndata: b\n\n", vec![data("a\n\nb")]),
        (b": note\n\ndata: a\n: note\n\n", vec![data("a")]),
        (b"data\n\n", vec![data("")]),
        (b"data: cut", vec![]),
        (b"data: cut\n", vec![]),
        (b"unknown: x\nevent: e\n\n", vec![]),
        (b"retry: x\nretry: -1\nid: a\0b\n\n", vec![]),
        (
            b"id: 7\nretry: 250\n\n",
            vec![Ok(SseEvent { id: Some("7".into()), retry: Some(250), ..SseEvent::default() })],
        ),
        (
            b"event: e\nid:\ndata: a\n\n",
            vec![Ok(SseEvent { name: "e".into(), id: Some("".into()), data: "a".into(), retry: None })],
        ),
        (b"data: a\n\n\n\ndata: b\n\n", vec![data("a"), data("b")]),
        // One byte order mark is taken off, at the very beginning. Elsewhere it is a part of the name of a field that nobody knows.
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", vec![data("b")]),
        (b"data: a\n\xef\xbb\xbfdata: x\n\n", vec![data("a")]),
        (b"\xef\xbbdata: x\n\n", vec![]),
        (b"data: \xef\xbb\xbfa\n\n", vec![data("\u{feff}a")]),
        // A NUL is a character of data, and one of the name of a field.
        (b"data: a\0b\n\0data: x\ndata\0: y\n\n", vec![data("a\0b")]),
        (b"Data: x\n data: x\ndata : x\ndata:a:b\n\n", vec![data("a:b")]),
        (b"event: x\nevent:\ndata:\n\nevent: y\n\ndata: z\n\n", vec![data(""), data("z")]),
        (b"retry: 1\nretry: 2x\nretry:\n\n", vec![Ok(SseEvent { retry: Some(1), ..SseEvent::default() })]),
    ];
    for (stream, expected) in table {
        assert_eq!(decode(stream), expected, "{}", String::from_utf8_lossy(stream));
    }
}

#[test]
fn an_event_over_the_limit_is_skipped_alone() {
    let long = format!("data: {}\n\ndata: ok\n\n", "x".repeat(33));
    assert_eq!(decode(long.as_bytes()), [Err(Untaken::TooLong), data("ok")]);
    let fits = format!("data: {}\n\n", "x".repeat(32));
    assert!(decode(fits.as_bytes())[0].is_ok());
    let endless = format!("data: {}\ndata: y\n\ndata: ok\n\n", "x".repeat(500));
    assert_eq!(decode(endless.as_bytes()), [Err(Untaken::TooLong), data("ok")]);
}

#[test]
fn data_larger_than_the_buffer_is_put_together_and_an_endless_event_grows_nothing() {
    let mut decoder = Decoder::new(1 << 20, Vec::new());
    let large = "x".repeat(900_000);
    let mut seen = Vec::new();
    for piece in format!("id: 1\ndata: y\ndata: {large}\n\ndata: ok\n\n").as_bytes().chunks(30_000) {
        decoder.push(piece);
        seen.extend(all(&mut decoder));
    }
    assert!(matches!(&seen[..], [Ok(first), Ok(next)]
        if first.data == format!("y\n{large}") && first.id.as_deref() == Some(b"1") && next.data == "ok"));
    let mut seen = Vec::new();
    for beginning in ["data: ", "event: ", ""] {
        decoder.push(beginning.as_bytes());
        for _ in 0..100 {
            decoder.push(&[b'x'; 60_000]);
            seen.extend(all(&mut decoder));
            assert!(decoder.buffer.capacity() < 4 * BUFFER_BYTES && decoder.store.len() <= 1 << 20);
        }
        assert_eq!(std::mem::take(&mut seen), [Err(Untaken::TooLong)]);
        decoder.push(b"\ndata: z\n\ndata: ok\n\n");
        assert_eq!(all(&mut decoder), [data("ok")]);
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut out = Vec::new();
    encode_retry(500, &mut out);
    encode_priming("1-0", &mut out);
    out.extend_from_slice(KEEP_ALIVE);
    encode(Some("1-1"), b"{}", &mut out);
    let mut decoder = Decoder::new(1024, Vec::new());
    decoder.push(&out);
    let events: Vec<_> = all(&mut decoder).into_iter().map(Result::unwrap).collect();
    assert_eq!(events[0].retry, Some(500));
    assert_eq!((events[1].id.as_deref(), events[1].data.is_empty()), (Some(&b"1-0"[..]), true));
    assert_eq!((&events[2].name[..], &events[2].data[..]), (&b"message"[..], &b"{}"[..]));
}

#[test]
fn the_ends_of_an_event_that_is_too_long_say_which_answer_it_was() {
    for text in ["data: {\"id\":7,LONG}\n\ndata: x\n\n", "data: {\"id\":7,\ndata: LONG}\n\ndata: x\n\n"] {
        let text = text.replace("LONG", &"y".repeat(5000));
        for size in [1, 100, 300, text.len()] {
            let mut decoder = Decoder::new(1000, Vec::new());
            let (mut told, mut skipped, mut events) = (0, Vec::new(), 0);
            for chunk in text.as_bytes().chunks(size) {
                decoder.push(chunk);
                loop {
                    let next = decoder.next_event();
                    skipped.extend(decoder.skipped());
                    match next {
                        Some(Err(_)) => told += 1,
                        Some(Ok(_)) => events += 1,
                        None => break,
                    }
                }
            }
            assert_eq!((told, events, skipped.len()), (1, 1, 1), "{size}");
            assert!(skipped[0].head.starts_with(b"{\"id\":7,") && skipped[0].tail.ends_with(b"yy}"), "{size}");
            assert_eq!(skipped[0].why, Untaken::TooLong);
        }
    }
}

#[test]
fn an_event_that_has_begun_is_known_until_it_has_ended() {
    let mut decoder = Decoder::new(32, Vec::new());
    let mut after = |chunk: &str| {
        decoder.push(chunk.as_bytes());
        all(&mut decoder);
        decoder.begun()
    };
    assert_eq!(after(""), None);
    assert_eq!(after(": keep-alive\n"), None);
    assert_eq!(after("id: 7\n"), None);
    assert_eq!(after("\n"), None);
    assert_eq!(after("dat"), Some((1, 3)));
    assert_eq!(after("a: x\n"), Some((1, 8)));
    assert_eq!(after("\ndata"), Some((2, 4)));
    assert_eq!(after(": y\n\n"), None);
    // One that is skipped goes on all the same, and so does a line that is.
    assert_eq!(after(&format!("data: {}", "x".repeat(100))), Some((3, 106)));
    assert_eq!(after("x"), Some((3, 107)));
    assert_eq!(after("\n\n"), None);
}
