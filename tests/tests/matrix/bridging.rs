//! The tables of `docs/bridging.md` against the tests that prove them: neither has a row that the other lacks.

use std::collections::BTreeSet;
use std::path::Path;

use trunkline_tests::scenario::ROWS;

/// What no row of the matrix can show, and the test that does: row, file, test.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "definitions",
        "gateway/protocol/src/translate/tests/definitions.rs",
        "a_definition_has_only_what_its_receiver_knows",
    ),
    (
        "sound and links",
        "gateway/protocol/src/translate/tests/results.rs",
        "sound_becomes_words_and_a_resource_where_there_is_none",
    ),
    ("who asks", "tests/tests/rounds.rs", "every_kind_is_asked_side_by_side_and_in_rounds"),
    (
        "after a restart, a lost session or a lost stream",
        "tests/tests/subscriptions.rs",
        "the_next_process_is_subscribed_to_again_and_what_was_missed_is_told",
    ),
    ("apps (`ui://`)", "tests/tests/apps.rs", "contested_pages_are_told_apart_for_stateless_clients"),
    (
        "tasks of one form",
        "gateway/src/router/tests/tasks.rs",
        "ids_of_tasks_lead_back_to_their_upstream_and_to_nobody_else",
    ),
    (
        "plain calls of what runs as a task only",
        "gateway/src/upstream/tests/tasks.rs",
        "a_plain_call_of_a_tool_that_is_a_task_is_driven_to_its_end",
    ),
    (
        "a plain call of a task that is cancelled",
        "gateway/src/upstream/tests/tasks.rs",
        "a_task_is_withdrawn_with_its_call",
    ),
    (
        "a client that cannot be asked on the stream of its call",
        "gateway/downstream/src/http/tests/rounds.rs",
        "who_cannot_be_asked_on_its_stream_is_told_why",
    ),
    (
        "a question of no call, or of one among several clients",
        "gateway/src/upstream/instance/questions/tests/whose.rs",
        "it_is_whose_calls_alone_are_open",
    ),
    ("a parked call that was lost", "tests/tests/parked.rs", "a_call_whose_upstream_dies_is_lost_and_not_made_again"),
    (
        "a state that was altered, is another's or was used",
        "tests/tests/parked.rs",
        "what_is_altered_foreign_or_used_is_refused_and_harms_nothing",
    ),
    (
        "the end of a visit, told to a stateless client",
        "gateway/src/upstream/instance/questions/tests/pages.rs",
        "the_session_that_was_asked_hears_and_nobody_else",
    ),
    ("tasks of the other form", "gateway/src/router/tests/tasks.rs", "each_form_of_tasks_has_its_own_methods"),
    (
        "an answer whose stream broke at a stateless upstream",
        "gateway/src/upstream/tests/http.rs",
        "an_answer_that_breaks_off_is_unknown_and_one_that_can_be_resumed_is_resumed",
    ),
    (
        "a log message on a pipe with several calls open",
        "tests/tests/logging.rs",
        "a_message_goes_to_no_call_while_another_may_have_made_it",
    ),
    (
        "words of progress for 2024-11-05",
        "gateway/protocol/src/translate/tests/results.rs",
        "the_oldest_progress_has_no_words",
    ),
    (
        "a stream that a stateless client lost",
        "gateway/downstream/src/http/tests/modern.rs",
        "a_silent_call_becomes_a_stream_when_one_would_say_that_it_lives_and_a_closed_stream_cancels",
    ),
    (
        "a method of an extension that several upstreams have",
        "gateway/src/router/tests/tasks.rs",
        "what_one_upstream_has_beyond_the_protocol_passes",
    ),
    (
        "a client's own notifications among many upstreams",
        "gateway/src/router/tests/calls.rs",
        "unknown_methods_and_notifications_end_here_among_many",
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the project")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The first cells of the tables, without their heads.
fn documented() -> BTreeSet<String> {
    let page = read("docs/bridging.md");
    let first = |line: &str| Some(line.strip_prefix("| ")?.split_once(" |")?.0.to_owned());
    page.lines().filter_map(first).filter(|cell| !cell.starts_with("what")).collect()
}

#[test]
fn docs_bridging_has_the_rows_that_tests_prove_and_no_other() {
    let documented = documented();
    assert!(documented.len() > 30, "the tables are read: {documented:?}");
    let rows = ROWS.iter().flat_map(|(_, proves)| proves.iter().copied());
    let proven: BTreeSet<String> = rows.chain(ELSEWHERE.iter().map(|(row, ..)| *row)).map(str::to_owned).collect();
    let unproven: Vec<_> = documented.difference(&proven).collect();
    let missing: Vec<_> = proven.difference(&documented).collect();
    assert!(
        unproven.is_empty() && missing.is_empty(),
        "no test proves {unproven:?}; docs/bridging.md lacks {missing:?}"
    );
}

#[test]
fn every_test_that_is_named_is_there() {
    for (row, file, test) in ELSEWHERE {
        assert!(read(file).contains(&format!("fn {test}()")), "{row}: there is no {test} in {file}");
    }
    for (name, proves) in ROWS {
        assert!(!proves.is_empty(), "{name} proves nothing");
    }
}
