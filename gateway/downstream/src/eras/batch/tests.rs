//! The parts of a batch, and its answer, are counted.

use super::*;

const MIB: usize = 1 << 20;

/// The elements leave the version tag out, and so each is copied.
#[test]
fn the_parts_of_a_batch_are_counted_for_as_long_as_they_are_kept() {
    let request = |id| format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"{}"}}}}"#, "x".repeat(MIB));
    let params = format!(r#"{{"requests":[{},{}]}}"#, request(1), request(2));
    let params = Object::parse(params.into()).unwrap();
    let budget = Budget::new(16 * MIB);
    let mut requests = requests_of(&params, &budget).unwrap();
    assert!((2 * MIB..3 * MIB).contains(&budget.used_by(Kind::Body)), "{}", budget.used());
    requests.pop();
    assert!((MIB..2 * MIB).contains(&budget.used_by(Kind::Body)), "{}", budget.used());
    drop(requests);
    assert_eq!(budget.used(), 0);
    let refused = requests_of(&params, &Budget::new(2 * MIB)).unwrap_err();
    assert!(matches!(refused.reason, Reason::Busy) && refused.message.contains("memory_limit"), "{refused:?}");
}

#[test]
fn the_answer_of_a_batch_is_counted_and_a_large_part_that_finds_no_room_is_a_word() {
    let answer = |id: u32, bytes: usize| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":"{}"}}}}"#, "x".repeat(bytes));
        Slot::Ended(EncodedResponse::new(Composed::from(text.into_bytes()), StatusCode::OK))
    };
    let batch = |budget: &Budget| Batch {
        slots: vec![answer(1, 2 * MIB), answer(2, 1)],
        shape: Shape::Array(StatusCode::OK),
        held: None,
        budget: budget.clone(),
    };
    let ended = |budget: &Budget| match batch(budget).end() {
        Turn::End(answer) => answer,
        turn => panic!("{turn:?}"),
    };
    let budget = Budget::new(16 * MIB);
    let whole = ended(&budget);
    assert!(whole.frame.as_ref().len() > 2 * MIB && (2 * MIB..3 * MIB).contains(&budget.used_by(Kind::Answer)));
    drop(whole);
    assert_eq!(budget.used(), 0);
    let told = ended(&Budget::new(2 * MIB));
    let told = std::str::from_utf8(told.frame.as_ref()).unwrap();
    assert!(told.starts_with(r#"[{"jsonrpc":"2.0","id":1,"error""#) && told.contains("memory_limit"), "{told}");
    assert!(told.ends_with(r#"{"jsonrpc":"2.0","id":2,"result":{"x":"x"}}]"#), "{told}");
}
