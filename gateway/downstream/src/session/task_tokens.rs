//! The progress tokens of a handshake client that stay in use, since their calls were given tasks; and what is due under them.

use crate::protocol::frame::Method;
use crate::protocol::value::{Edit, Key, Object, TaskStatus};
use crate::protocol::{frame, json};
use bytes::Bytes;
use std::collections::VecDeque;

/// How many tokens are kept; the oldest is forgotten.
const TOKENS_MAX: usize = 64;
/// Longer ones are not kept.
const TOKEN_BYTES_MAX: usize = 4096;
/// Longer progress is not kept; what comes next says how far the task is.
const DUE_BYTES_MAX: usize = 16 * 1024;

/// The tokens of one session.
#[derive(Debug, Default)]
pub(crate) struct TaskTokens(VecDeque<One>);

#[derive(Debug)]
struct One {
    task: Box<str>,
    /// The client's own, raw; a copy, since a part of the request would keep all of it.
    token: Box<[u8]>,
    /// What was told last and not sent yet; a copy, too.
    due: Option<Object>,
    /// The task has ended: what is due is the last.
    is_over: bool,
}

impl TaskTokens {
    /// A call with this token was given this task.
    pub(crate) fn keep(&mut self, task: Box<str>, token: &[u8]) {
        if token.len() > TOKEN_BYTES_MAX {
            return;
        }
        self.0.retain(|one| one.task != task);
        if self.0.len() >= TOKENS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(One { task, token: token.into(), due: None, is_over: false });
    }

    /// The task that the token of these parameters names has come so far.
    pub(crate) fn told(&mut self, params: &Object) {
        if params.raw().len() > DUE_BYTES_MAX {
            return;
        }
        let Some(task) = params.text(Key::ProgressToken) else { return };
        if let Some(one) = self.0.iter_mut().find(|one| *one.task == *task && !one.is_over) {
            one.due = Object::parse(Bytes::copy_from_slice(params.raw())).ok();
        }
    }

    /// A task stands so: a token whose task has ended is free again.
    pub(crate) fn stands(&mut self, params: &Object) {
        if !TaskStatus::of(params).is_some_and(TaskStatus::is_final) {
            return;
        }
        let task = params.find("taskId").and_then(json::unquote);
        self.0.iter_mut().filter(|one| task.as_deref() == Some(&*one.task)).for_each(|one| one.is_over = true);
        self.forget();
    }

    /// The next frame that is due.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let one = self.0.iter_mut().find(|one| one.due.is_some())?;
        let params = one.due.take()?.with(&[(Key::ProgressToken, Edit::Set(&one.token))]);
        self.forget();
        Some(frame::message::one_line(Vec::from(frame::message::notification(&Method::Progress, &params))))
    }

    fn forget(&mut self) {
        self.0.retain(|one| !one.is_over || one.due.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::account::Kind;
    use crate::memory::budget::Budget;
    use crate::memory::charged;

    fn object(text: &str) -> Object {
        Object::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn progress_of_a_task_is_told_under_the_clients_token_until_the_task_ends() {
        let mut tokens = TaskTokens::default();
        tokens.keep("t".into(), b"7");
        for progress in 1..100 {
            tokens.told(&object(&format!(r#"{{"progressToken":"t","progress":{progress}}}"#)));
            tokens.told(&object(&format!(r#"{{"progressToken":"other","progress":{progress}}}"#)));
        }
        tokens.stands(&object(r#"{"taskId":"t","status":"working"}"#));
        tokens.stands(&object(r#"{"taskId":"t","status":"completed"}"#));
        tokens.told(&object(r#"{"progressToken":"t","progress":100}"#));
        let frame = String::from_utf8(tokens.next().unwrap()).unwrap();
        assert!(frame.contains(r#""params":{"progressToken":7,"progress":99}"#), "{frame}");
        assert_eq!(tokens.next(), None);
        assert!(tokens.0.is_empty(), "nothing is kept of what is over");
    }

    #[test]
    fn a_token_keeps_nothing_of_the_request_that_it_came_with() {
        let budget = Budget::new(64 << 20);
        let request = charged(vec![b'7'; 1 << 20], budget.charge(Kind::Body, 1 << 20).unwrap());
        let progress = [br#"{"progressToken":"t","progress":1}"#, &vec![b' '; 1 << 20][..]].concat();
        let line = charged(progress, budget.charge(Kind::Line, 1 << 20).unwrap());
        let mut tokens = TaskTokens::default();
        tokens.keep("t".into(), &request[..1]);
        tokens.told(&Object::parse(line.slice(..34)).unwrap());
        drop((request, line));
        assert_eq!(budget.used(), 0);
        assert!(tokens.next().is_some());
    }

    #[test]
    fn tokens_are_bounded() {
        let mut tokens = TaskTokens::default();
        (0..1000).for_each(|task| tokens.keep(format!("{task}").into(), b"1"));
        assert_eq!(tokens.0.len(), TOKENS_MAX);
    }
}
