//! What an upstream does wrong, and what fails with it: counted each time, kept as what was last wrong with it, and said now and then.

use super::record::Status;
use crate::health::{Cause, CauseCode};
use crate::runtime::aside;
use crate::runtime::complaints::left_unsaid;
use crate::secrets::mask;
use std::fmt::Display;

/// What happens to the best: counted, and not worth a word.
const HARMLESS: [&str; 4] = ["late_answer", "late_progress", "late_notification", "progress_dropped"];
/// So much of a text is told on.
const CHARS_MAX: usize = 500;

impl Status {
    /// Something failed that breaks no rule of the protocol; `kind` is a word of ours.
    pub(crate) fn failed(&self, kind: &'static str, code: CauseCode, why: &dyn Display) {
        self.metrics.failures(kind, code.as_str()).increment(1);
        self.complain((kind, code), why, "request to upstream failed");
    }

    /// The upstream did what the protocol does not allow; `kind` is a word of ours.
    pub(crate) fn violated(&self, kind: &'static str, detail: &dyn Display) {
        self.metrics.violations(kind).increment(1);
        self.complain((kind, CauseCode::ProtocolViolation), detail, "protocol violation by upstream; message ignored");
    }

    /// The upstream wanted more than there is room for; `kind` is a word of ours. Whoever refuses it counts it.
    pub(crate) fn refused(&self, kind: &'static str, code: CauseCode, why: &dyn Display) {
        self.complain((kind, code), why, "request of upstream refused");
    }

    /// Says what is wrong, where that is worth a word and was not said just now.
    fn complain(&self, (kind, code): (&'static str, CauseCode), detail: &dyn Display, text: &'static str) {
        if HARMLESS.contains(&kind) {
            return;
        }
        let Some(more) = self.complaints.take(kind) else { return };
        let detail = detail.to_string();
        let detail = crate::secrets::printable(
            &aside(mask::cost(detail.len()), || mask::masked(&detail)).chars().take(CHARS_MAX).collect::<String>(),
        );
        self.handle.update(|health| health.note(Cause::new(code, kind).foreign(&format!(": {detail}"))));
        tracing::warn!(
            upstream = &*self.name,
            instance = self.number,
            kind,
            cause_code = code.as_str(),
            cause_number = code.number(),
            detail,
            more = left_unsaid(more),
            "{text}"
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::health::CauseCode;
    use crate::runtime::complaints::SAID_EVERY;
    use crate::upstream::tests::rig::{Rig, config};

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_kept_as_the_last_error_and_said_now_and_then() {
        let rig = Rig::new(config());
        let status = &rig.instance.status;
        let error = || rig.board.snapshot().remove(0).last_error.map(|error| error.cause.full().into_owned());
        status.failed("broken", CauseCode::ConnectionLost, &"the first\u{1b}");
        status.failed("broken", CauseCode::ConnectionLost, &"the second");
        assert_eq!(error().as_deref(), Some("broken: the first\\u{1b}"));
        status.failed("status", CauseCode::HttpStatus(500), &"HTTP 500");
        assert_eq!(error().as_deref(), Some("status: HTTP 500"));
        status.complain(("late_answer", CauseCode::Unknown), &"to the best", "");
        tokio::time::advance(SAID_EVERY).await;
        assert_eq!((status.complaints.take("broken"), status.complaints.take("broken")), (Some(1), None));
        assert_eq!(error().as_deref(), Some("status: HTTP 500"));
    }
}
