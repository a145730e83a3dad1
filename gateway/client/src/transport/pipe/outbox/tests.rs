//! What waits to be written, against a model and by share.

use super::*;
use crate::memory::account::Kind;
use crate::transport::pipe::queue_shares::OUT_MAX;
use crate::transport::pipe::writer::KEEP_BYTES;
use proptest::prelude::*;

fn put(outbox: &mut Outbox, text: &str) -> u64 {
    let share = text.starts_with(|c: char| c.is_ascii_digit()).then(|| share(&text[..1]));
    put_as(outbox, FrameClass::Request, share, text).unwrap()
}

fn put_as(outbox: &mut Outbox, class: FrameClass, share: Option<Share>, text: &str) -> Result<u64, PutError> {
    outbox.put((class, text.len()), share, |bytes| bytes.extend_from_slice(text.as_bytes()))
}

/// Has the writer take the queue and write nothing of it.
fn get_stuck(outbox: &mut Outbox) {
    let batch = outbox.take(&mut Batch::default()).unwrap();
    outbox.put_back(batch);
}

/// All that the writer still gets.
fn rest(mut outbox: Outbox) -> String {
    let (mut spare, mut rest) = (Batch::default(), String::new());
    loop {
        let mut batch = outbox.take(&mut spare).unwrap();
        if batch.is_written() {
            return rest;
        }
        rest.push_str(std::str::from_utf8(batch.rest()).unwrap());
        batch.advance(batch.rest().len());
        spare = batch.emptied(KEEP_BYTES);
    }
}

fn admits(outbox: &Outbox, share: Option<&Share>, length: usize) -> Result<(), QueueFull> {
    outbox.shares.admits(share, length, outbox.len())
}

fn share(name: &str) -> Share {
    Share::Principal(crate::call::caller::Principal::named(name))
}

#[test]
fn what_is_whole_is_taken_out_and_what_is_begun_is_not() {
    let (mut outbox, mut spare) = (Outbox::default(), Batch::default());
    let [one, two, three] = ["one", "two", "three"].map(|text| put(&mut outbox, text));
    let mut batch = outbox.take(&mut spare).unwrap();
    batch.advance(2);
    // Given up while the writer has it: it is not known yet what of it is written.
    assert_eq!(outbox.take_back(two), TakenBack::Sent);
    outbox.put_back(batch);
    let four = put(&mut outbox, "four");
    assert!(!outbox.has_half());
    assert_eq!((outbox.take_back(one), outbox.has_half()), (TakenBack::Half, true));
    assert_eq!(outbox.take_back(four), TakenBack::Whole);
    assert_eq!((outbox.len(), outbox.stuck()), ("e\nthree\n".len(), Some((2, 2))));
    let mut batch = outbox.take(&mut spare).unwrap();
    assert_eq!(batch.rest(), b"e\nthree\n");
    batch.advance(2);
    outbox.put_back(batch);
    assert!(!outbox.has_half(), "it was written whole");
    assert_eq!((outbox.take_back(one), outbox.take_back(three)), (TakenBack::Sent, TakenBack::Whole));
    assert!(outbox.take(&mut spare).unwrap().is_written());
}

#[test]
fn what_is_closed_knows_from_where_on_nothing_was_written() {
    let (mut outbox, mut spare) = (Outbox::default(), Batch::default());
    let [one, two] = ["one", "two"].map(|text| put(&mut outbox, text));
    let mut batch = outbox.take(&mut spare).unwrap();
    batch.advance(1);
    outbox.put_back(batch);
    put(&mut outbox, "three");
    let whole = outbox.close();
    assert!(one < whole && whole == two);
    assert!(outbox.take(&mut spare).is_none() && outbox.is_closed() && outbox.shares.is_empty());
}

#[test]
fn a_thousand_that_end_at_once_cost_no_more_than_each_its_part() {
    let mut outbox = Outbox::default();
    let starts: Vec<u64> = (0..100_000).map(|_| put(&mut outbox, "0123456789")).collect();
    for start in starts {
        assert_eq!(outbox.take_back(start), TakenBack::Whole);
    }
    assert_eq!((outbox.len(), outbox.queue.bytes.capacity()), (0, 0));
}

#[test]
fn a_share_has_what_waits_of_its_frames_and_an_oversize_frame_counts_for_no_more_than_a_part() {
    let (mut outbox, mut spare) = (Outbox::default(), Batch::default());
    let large = put(&mut outbox, &format!("1{}", "x".repeat(3 * OUT_MAX)));
    put(&mut outbox, "2two");
    assert!(admits(&outbox, Some(&share("1")), 1).is_err() && admits(&outbox, Some(&share("3")), OUT_MAX / 8).is_ok());
    assert!(admits(&outbox, Some(&share("3")), OUT_MAX / 2).is_err() && admits(&outbox, None, 1).is_ok());
    let mut batch = outbox.take(&mut spare).unwrap();
    assert!(admits(&outbox, Some(&share("1")), 1).is_err(), "what the writer has in hand waits, too");
    batch.advance(5 * OUT_MAX / 2);
    outbox.put_back(batch);
    assert_eq!((outbox.take_back(large), outbox.shares.of(&share("2"))), (TakenBack::Half, 5));
    let rest = outbox.len();
    let error = admits(&outbox, Some(&share("1")), OUT_MAX).unwrap_err().to_string();
    assert!(rest > OUT_MAX / 2 && error.contains("24577 KiB are this client's own requests"), "{error}");
    let mut batch = outbox.take(&mut spare).unwrap();
    batch.advance(rest);
    spare = batch.emptied(1024);
    assert!(outbox.take(&mut spare).unwrap().is_written());
    assert!(outbox.shares.is_empty() && outbox.len() == 0);
    assert!(admits(&outbox, Some(&share("1")), 3 * OUT_MAX).is_ok(), "nothing else waits");
}

#[test]
fn two_hundred_upstreams_that_took_large_requests_keep_little_room_for_the_next() {
    const UPSTREAMS: usize = 200;
    let (mut outbox, mut spare) = (Outbox::default(), Batch::default());
    for _ in 0..4 {
        put(&mut outbox, &format!("1{}", "x".repeat(400 * 1024)));
        let mut batch = outbox.take(&mut spare).unwrap();
        batch.advance(batch.rest().len());
        spare = batch.emptied(KEEP_BYTES);
    }
    let kept = outbox.queue.bytes.capacity() + spare.bytes.capacity();
    assert!(UPSTREAMS * kept <= 32 * 1024 * 1024, "{kept} bytes each");
}

#[test]
fn outbox_charges_every_frame_and_its_record() {
    let budget = Budget::new(1 << 20);
    let mut outbox = Outbox::new(budget.clone());
    let put = |outbox: &mut Outbox| put_as(outbox, FrameClass::Message, None, "{\"answer\":1}");
    let refused = std::iter::repeat_with(|| put(&mut outbox)).find_map(Result::err).unwrap();
    assert!(matches!(refused, PutError::Memory(_)), "{refused}");
    let queue = &outbox.queue;
    let taken = queue.bytes.capacity() + queue.parts.capacity() * size_of::<Part>();
    let counted = budget.used_by(Kind::Queue);
    assert!(counted >= taken && counted >= budget.limit().unwrap() / 2, "{counted} of {taken} bytes are counted");
    outbox.close();
    assert_eq!(budget.used(), 0);
}

#[test]
fn outbox_keeps_the_newest_pings_while_stuck() {
    let pong = |number: usize| Bytes::from(format!("pong {number}"));
    let mut outbox = Outbox::default();
    (0..100).for_each(|number| outbox.put_pong(&pong(number)).unwrap());
    get_stuck(&mut outbox);
    (100..1000).for_each(|number| outbox.put_pong(&pong(number)).unwrap());
    assert!(outbox.queue.bytes.is_empty());
    let kept = (0..100).chain(1000 - PINGS_MAX..1000).map(|number| format!("pong {number}\n"));
    assert_eq!(rest(outbox), kept.collect::<String>());
}

#[test]
fn outbox_bounds_answers_at_once_while_stuck() {
    let mut outbox = Outbox::default();
    put(&mut outbox, "1call");
    get_stuck(&mut outbox);
    let answer = |outbox: &mut Outbox| put_as(outbox, FrameClass::AtOnce, None, "{\"error\":-32601}");
    let refused = std::iter::repeat_with(|| answer(&mut outbox)).find_map(Result::err).unwrap();
    assert_eq!(refused, PutError::AnswersUnread);
    assert!(outbox.len() <= AT_ONCE_MAX);
    put(&mut outbox, "2call");
    put_as(&mut outbox, FrameClass::Message, None, "{\"result\":{}}").unwrap();
    assert!(rest(outbox).ends_with("2call\n{\"result\":{}}\n"), "others have room");
}

proptest! {
    /// Against a model: what is written is each frame that was not taken out whole, once and in order.
    #[test]
    fn it_writes_what_was_not_taken_out(steps in prop::collection::vec((0..4u8, any::<prop::sample::Index>(), 1..40usize), 1..200)) {
        let (mut outbox, mut spare) = (Outbox::default(), Batch::default());
        let (mut written, mut wanted, mut number) = (Vec::new(), Vec::<(u64, String)>::new(), 0);
        let mut write = |outbox: &mut Outbox, written: &mut Vec<u8>, most: usize| {
            let mut batch = outbox.take(&mut spare).unwrap();
            let count = batch.rest().len().min(most);
            written.extend_from_slice(&batch.rest()[..count]);
            batch.advance(count);
            match batch.is_written() {
                true => spare = batch.emptied(1024),
                false => outbox.put_back(batch),
            }
        };
        for (what, pick, size) in steps {
            match what {
                0 | 1 => {
                    number += 1;
                    let text = format!("{number}{}", "x".repeat(size));
                    wanted.push((put(&mut outbox, &text), text));
                }
                2 if !wanted.is_empty() => {
                    let at = pick.index(wanted.len());
                    if outbox.take_back(wanted[at].0) == TakenBack::Whole {
                        wanted.remove(at);
                    }
                }
                _ => write(&mut outbox, &mut written, size),
            }
        }
        while outbox.len() > 0 {
            write(&mut outbox, &mut written, usize::MAX);
        }
        prop_assert!(outbox.shares.is_empty());
        let expected: String = wanted.into_iter().map(|(_, text)| text + "\n").collect();
        prop_assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
