//! The part of an instance that takes questions of its upstream: answered from the configuration, put to a client, or refused.

use super::kind::{Kind, configured};
use super::pages::Pages;
use super::question::{Refused, Terms, put};
use crate::metrics;
use crate::peer::handshake;
use crate::runtime::complaints::{Complaints, left_unsaid};
use crate::transport::events::IncomingRequest;
use crate::transport::questions::Asker;
use crate::upstream::config::Config;
use crate::upstream::owner::Ownership;
use std::sync::Arc;
use std::time::Duration;

/// How often a question without an owner is logged.
const NOT_OWNED_EVERY: Duration = Duration::from_secs(60);

/// The questions of one instance.
pub(crate) struct Questions {
    /// Which pages are open, and with whom.
    pub(crate) pages: Pages,
    /// Which questions without an owner were logged last.
    not_owned: Complaints,
}

/// As many questions of the upstream are open as may be, and one more was refused.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl Default for Questions {
    fn default() -> Self {
        Self { pages: Pages::default(), not_owned: Complaints::every(NOT_OWNED_EVERY) }
    }
}

impl Questions {
    /// Takes a request of the upstream. Nothing waits here. Says whether there was room for it.
    pub(crate) fn take(
        &self,
        (config, owner): (&Config, &Ownership),
        metrics: &metrics::Upstream,
        asked: IncomingRequest,
        by: Arc<dyn Asker>,
    ) -> Result<(), NoRoom> {
        let Some(kind) = Kind::of(&asked.method) else {
            asked.answer(&by, &handshake::answer(&asked.method));
            return Ok(());
        };
        if let (Kind::Roots, Some(roots)) = (kind, &config.roots) {
            metrics.questions(kind.label(), "configured").increment(1);
            asked.answer(&by, &configured(roots));
            return Ok(());
        }
        let (exclusive, way_out) = (owner.session_of_all(), way_out(config, owner));
        let terms = Terms {
            upstream: &config.name,
            metrics,
            limit: config.question_timeout,
            exclusive: exclusive.as_ref(),
            way_out,
            pages: &self.pages,
        };
        match put(&terms, asked, kind, by) {
            Ok(()) => {}
            Err(Refused::Full) => return Err(NoRoom),
            Err(Refused::NotOwned) => self.not_owned(&config.name, kind, way_out),
            Err(why) => {
                tracing::debug!(upstream = &*config.name, kind = kind.label(), ?why, "question refused")
            }
        }
        Ok(())
    }

    /// A question was refused because nobody knows whose it is: counted, and logged now and then with what helps.
    fn not_owned(&self, upstream: &str, kind: Kind, way_out: Option<&str>) {
        metrics::dropped("not_owned").increment(1);
        let Some(more) = self.not_owned.take("not_owned") else { return };
        let why = reason(upstream, kind, way_out);
        tracing::warn!(upstream, kind = kind.label(), more = left_unsaid(more), "{why}");
    }
}

/// What `sharing` would give a child of its own to those who share this one; `None` where that changes nothing: what already has
/// an instance for each client, or is one client's alone, gains nothing from `sharing`.
fn way_out(config: &Config, owner: &Ownership) -> Option<&'static str> {
    let can_share_less = config.is_shared() && owner.is_of_many();
    let word = if config.principals > 1 { "per-principal" } else { "per-session" };
    can_share_less.then_some(word)
}

/// A question that is nobody's: why it was refused, and what helps.
fn reason(upstream: &str, kind: Kind, way_out: Option<&str>) -> String {
    let who = if way_out.is_some() { "several clients or none" } else { "several calls or none" };
    let have = if way_out.is_some() { "have calls open" } else { "are open" };
    let why = format!("a question of the upstream was refused, since it belongs to no single call: {who} {have}");
    match kind {
        // Upstreams ask for roots right after the handshake, when nobody's call is open whatever `sharing` says.
        Kind::Roots => {
            format!("{why}; `roots = [\"file:///…\"]` under [upstreams.{upstream}] answers it without asking clients")
        }
        _ => match way_out {
            Some(sharing) => format!(
                "{why}; `sharing = \"{sharing}\"` under [upstreams.{upstream}] gives each client its own instance"
            ),
            None => why,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_is_nobodys_is_said_with_what_helps() {
        let (session, principal) = (Some("per-session"), Some("per-principal"));
        let roots = [session, None].map(|way_out| reason("es", Kind::Roots, way_out));
        for said in roots {
            assert!(said.contains("`roots = [\"file:///…\"]` under [upstreams.es]"), "{said}");
            assert!(!said.contains("sharing"), "{said}");
        }
        let [shared, of_two, own] = [session, principal, None].map(|way_out| reason("es", Kind::Elicitation, way_out));
        assert!(of_two.contains("`sharing = \"per-principal\"` under [upstreams.es]"), "{of_two}");
        assert!(shared.contains("`sharing = \"per-session\"` under [upstreams.es]"), "{shared}");
        assert!(!own.contains("sharing") && !own.contains("roots"), "{own}");
    }
}
