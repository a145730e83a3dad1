//! What stands in the messages about tasks: of the handshake's form and of the extension's.

use crate::capabilities::EXTENSION_TASKS;
use crate::frame::rpc_error::RpcError;
use crate::revision::Revision;
use crate::value::spelling::RELATED_TASK as RELATED;
use crate::value::{Edit, Key, Object};
use crate::{json, meta};
use bytes::Bytes;

/// The parameters of a call that is made as a task, in the handshake's form.
pub fn as_task(params: &Object) -> Object {
    with(params, b"\"task\":{}")
}

/// The task in the answer to a call, and the parameters that name it; `None` where the answer is the result itself.
pub fn made(result: &Object, revision: Revision) -> Option<Result<(Object, Object), &'static str>> {
    let task = if revision.is_modern() {
        let is_task = result.get(Key::ResultType).and_then(json::unquote).as_deref() == Some("task");
        is_task.then(|| result.clone())?
    } else {
        let task = result.find("task").filter(|task| task.starts_with(b"{"))?;
        Object::parse(result.raw().slice_ref(task)).ok()?
    };
    let named = task
        .find("taskId")
        .filter(|id| id.starts_with(b"\""))
        .and_then(|id| Object::parse([&b"{\"taskId\":"[..], id, b"}"].concat().into()).ok());
    Some(named.map(|named| (task, named)).ok_or("its task has no id"))
}

/// Whether an answer about a task, which these parameters name, says that it is about another one.
pub fn is_of_another(answer: &Object, named: &Object) -> bool {
    let related = || json::get(json::get(answer.get(Key::Meta)?, RELATED)?, "taskId");
    let own = named.find("taskId").and_then(json::unquote);
    let mut said = [answer.find("taskId"), related()].into_iter().flatten().filter_map(json::unquote);
    said.any(|id| own.as_ref() != Some(&id))
}

/// The parameters of `tasks/update`.
pub fn update(task: &Object, answers: &[(String, Object)]) -> Object {
    let pairs: Vec<_> =
        answers.iter().map(|(key, answer)| [json::quote(key).as_bytes(), b":", answer.raw()].concat()).collect();
    with(task, &[&b"\"inputResponses\":{"[..], &pairs.join(&b','), b"}"].concat())
}

/// Whether an error says that the extension was not declared.
pub fn wants_tasks(error: &RpcError) -> bool {
    let keys = ["requiredCapabilities", "extensions", EXTENSION_TASKS];
    let data = error.data();
    keys.iter().fold(data, |at, key| json::get(at?, key)).is_some()
}

/// What a stateless client declares, and tasks with it.
pub fn declaring(raw: &[u8]) -> Bytes {
    let Ok(declared) = Object::parse(Bytes::copy_from_slice(raw)) else { return declaring(b"{}") };
    let mine = format!("\"{EXTENSION_TASKS}\":{{}}");
    let extensions = declared.find("extensions").and_then(|all| Object::parse(Bytes::copy_from_slice(all)).ok());
    let Some(extensions) = extensions else {
        return with(&declared, format!("\"extensions\":{{{mine}}}").as_bytes()).raw().clone();
    };
    let place = declared.find("extensions").expect("it was just found");
    let start = place.as_ptr() as usize - declared.raw().as_ptr() as usize;
    let (before, after) = (&declared.raw()[..start], &declared.raw()[start + place.len()..]);
    [before, with(&extensions, mine.as_bytes()).raw(), after].concat().into()
}

/// The result without the name of the task, which its caller knows nothing of.
pub fn unrelated(result: Object) -> Object {
    let Some(meta) = result.get(Key::Meta).filter(|meta| json::get(meta, RELATED).is_some()) else { return result };
    let kept: Vec<_> = json::Members::of(meta)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|member| json::unquote(&meta[member.start..member.key_end]).as_deref() != Some(RELATED))
        .map(|member| &meta[member.start..member.end])
        .collect();
    let rest = [&b"{"[..], &kept.join(&b','), b"}"].concat();
    let edit = if kept.is_empty() { Edit::Drop } else { Edit::Set(&rest) };
    Object::parse(result.with(&[(Key::Meta, edit)])).unwrap_or(result)
}

/// A client's answer to a question, tied to the task that the question named, in the upstream's own words: a client knows the
/// task by another name, or names another one.
pub fn tied(answer: Object, task: Option<&[u8]>) -> Object {
    let answer = unrelated(answer);
    let Some(task) = task else { return answer };
    let others = answer.get(Key::Meta).and_then(|raw| raw.strip_prefix(b"{")?.strip_suffix(b"}"));
    let members = meta::tied(task, others.unwrap_or_default().trim_ascii());
    let meta = [&b"{"[..], &members, b"}"].concat();
    Object::parse(answer.with(&[(Key::Meta, Edit::Set(&meta))])).unwrap_or(answer)
}

/// An object with one more member, before the others.
fn with(object: &Object, member: &[u8]) -> Object {
    let rest = object.raw()[1..].trim_ascii_start();
    let comma: &[u8] = if rest == b"}" { b"" } else { b"," };
    Object::parse([b"{", member, comma, rest].concat().into()).unwrap_or_else(|_| object.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_task_of_its_question_and_no_other() {
        let own = Some(&br#"{"taskId":"own"}"#[..]);
        for (given, task, expected) in [
            (r#"{"action":"accept"}"#, None, r#"{"action":"accept"}"#),
            (r#"{"a":1,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}"#, None, r#"{"a":1}"#),
            (
                r#"{"a":1,"_meta":{"b":2,"io.modelcontextprotocol/related-task":{"taskId":"x"}}}"#,
                own,
                r#"{"a":1,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own"},"b":2}}"#,
            ),
            ("{}", own, r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own"}}}"#),
        ] {
            assert_eq!(tied(Object::parse(given.into()).unwrap(), task).raw(), expected);
        }
    }

    #[test]
    fn an_answer_about_another_task_is_known_by_either_name() {
        let named = Object::parse(r#"{"taskId":"own"}"#.into()).unwrap();
        for (answer, expected) in [
            ("{}", false),
            (r#"{"taskId":"own"}"#, false),
            (r#"{"taskId":"\u006fwn"}"#, false),
            (r#"{"taskId":"other"}"#, true),
            (r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own"}}}"#, false),
            (r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"other"}}}"#, true),
        ] {
            assert_eq!(is_of_another(&Object::parse(answer.into()).unwrap(), &named), expected, "{answer}");
        }
    }

    #[test]
    fn the_extension_is_declared_beside_what_else_is() {
        for (declared, expected) in [
            ("{}", r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#),
            (r#"{"roots":{}}"#, r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"roots":{}}"#),
            (
                r#"{"extensions":{"a/b":{}},"roots":{}}"#,
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}},"roots":{}}"#,
            ),
            ("no object", r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#),
        ] {
            assert_eq!(declaring(declared.as_bytes()), expected);
        }
    }
}
