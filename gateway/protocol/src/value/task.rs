//! How a task stands: the words of its `status`, and which of them end it.

use super::Object;
use crate::json;

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It waits for answers.
    InputRequired,
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// What a task's `status` says; `None` where that is missing, or no word that the protocol has.
    pub fn of(task: &Object) -> Option<Self> {
        Some(match &*json::unquote(task.find("status")?)? {
            "working" => Self::Working,
            "input_required" => Self::InputRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }

    /// Whether the task has ended. It never stands otherwise again.
    pub fn is_final(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Working | Self::InputRequired => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_over_when_its_status_is_final_and_an_unknown_word_ends_nothing() {
        let of = |text: &str| TaskStatus::of(&Object::parse(text.to_owned().into()).unwrap());
        for (word, is_final) in
            [("working", false), ("input_required", false), ("completed", true), ("failed", true), ("cancelled", true)]
        {
            let status = of(&format!(r#"{{"taskId":"t","status":"{word}"}}"#));
            assert_eq!(status.map(TaskStatus::is_final), Some(is_final), "{word}");
        }
        assert_eq!(of(r#"{"status":"\u0066ailed"}"#), Some(TaskStatus::Failed), "as JSON spells it");
        for none in [r#"{"status":"done"}"#, r#"{"status":1}"#, "{}"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
