//! What an upstream does wrong, and what fails with it: counted each time, kept as what was last wrong with it, and said now and then.

use super::record::Status;
use crate::health::Cause;
use crate::runtime::complaints::left_unsaid;
use crate::secrets::mask;
use std::fmt::Display;

/// What happens to the best: counted, and not worth a word.
const HARMLESS: [&str; 2] = ["late_answer", "progress_dropped"];
/// So much of a text is told on.
const CHARS_MAX: usize = 500;

impl Status {
    /// Something failed that breaks no rule of the protocol; `kind` is a word of ours.
    pub(crate) fn failed(&self, kind: &'static str, why: &dyn Display) {
        self.metrics.failures(kind).increment(1);
        self.complain(kind, why, "request to upstream failed");
    }

    /// The upstream did what the protocol does not allow; `kind` is a word of ours.
    pub(crate) fn violated(&self, kind: &'static str, detail: &dyn Display) {
        self.metrics.violations(kind).increment(1);
        self.complain(kind, detail, "protocol violation by upstream; message ignored");
    }

    /// Says what is wrong, where that is worth a word and was not said just now.
    fn complain(&self, kind: &'static str, detail: &dyn Display, text: &'static str) {
        if HARMLESS.contains(&kind) {
            return;
        }
        let Some(more) = self.complaints.take(kind) else { return };
        let detail = detail.to_string();
        let detail = crate::upstream::transport::stdio::printable(
            &mask::masked(&detail).chars().take(CHARS_MAX).collect::<String>(),
        );
        self.handle.update(|health| health.note(Cause::from(kind).foreign(&format!(": {detail}"))));
        tracing::warn!(
            upstream = &*self.name,
            instance = self.number,
            kind,
            detail,
            more = left_unsaid(more),
            "{text}"
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::runtime::complaints::SAID_EVERY;
    use crate::upstream::tests::rig::{Rig, config};

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_kept_as_the_last_error_and_said_now_and_then() {
        let rig = Rig::new(config());
        let status = &rig.instance.status;
        let error = || rig.board.snapshot().remove(0).last_error.map(|error| error.cause.full().to_owned());
        status.failed("broken", &"the first\u{1b}");
        status.failed("broken", &"the second");
        assert_eq!(error().as_deref(), Some("broken: the first\u{fffd}"));
        status.failed("status", &"HTTP 500");
        assert_eq!(error().as_deref(), Some("status: HTTP 500"));
        status.complain("late_answer", &"to the best", "");
        tokio::time::advance(SAID_EVERY).await;
        assert_eq!((status.complaints.take("broken"), status.complaints.take("broken")), (Some(1), None));
        assert_eq!(error().as_deref(), Some("status: HTTP 500"));
    }
}
