//! A plan of questions: what a scripted upstream asks before it answers, in one word that fits into a URI.
//!
//! Rounds are parted by commas, the questions of one round by `+`: `form+roots,url` asks two at once, then one more.
//! `!form` is asked even of a peer that declared no such thing; `form~` is withdrawn once the gate `withdraw` opens.

use crate::revision::Revision;

/// What is asked, round by round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The questions of each round.
    pub rounds: Vec<Vec<Ask>>,
}

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its kind.
    pub kind: Kind,
    /// Asked whatever the peer declared.
    pub blunt: bool,
    /// Withdrawn in place of being waited for; an upstream without live questions asks it as any other.
    pub withdrawn: bool,
}

/// The kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `elicitation/create` with a form.
    Form,
    /// `elicitation/create` with a URL.
    Url,
    /// `sampling/createMessage`.
    Sampling,
    /// `sampling/createMessage` with tools.
    SamplingTools,
    /// `roots/list`.
    Roots,
    /// Nothing: a stateless upstream gives a state alone, another one goes on.
    State,
    /// The error -32042 in place of a question: once for each caller, and from 2025-11-25 alone.
    Required,
}

impl Kind {
    const ALL: [Kind; 7] =
        [Kind::Form, Kind::Url, Kind::Sampling, Kind::SamplingTools, Kind::Roots, Kind::State, Kind::Required];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Form => "form",
            Kind::Url => "url",
            Kind::Sampling => "sampling",
            Kind::SamplingTools => "sampling-tools",
            Kind::Roots => "roots",
            Kind::State => "state",
            Kind::Required => "required",
        }
    }

    /// The method that asks it; nothing for what is no question.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Kind::Form | Kind::Url => "elicitation/create",
            Kind::Sampling | Kind::SamplingTools => "sampling/createMessage",
            Kind::Roots => "roots/list",
            Kind::State | Kind::Required => "",
        }
    }

    /// Whether a revision has it.
    #[must_use]
    pub fn is_in(self, revision: Revision) -> bool {
        match self {
            Kind::Form => revision >= Revision::R2025_06_18,
            Kind::Url | Kind::SamplingTools => revision >= Revision::R2025_11_25,
            Kind::Sampling | Kind::Roots => true,
            Kind::State => revision.is_modern(),
            Kind::Required => revision == Revision::R2025_11_25,
        }
    }

    /// Whether a peer with these capabilities declared it.
    #[must_use]
    pub fn is_declared(self, capabilities: &serde_json::Value) -> bool {
        let elicitation = &capabilities["elicitation"];
        let bare = elicitation.as_object().is_some_and(serde_json::Map::is_empty);
        match self {
            Kind::Form => bare || elicitation["form"].is_object(),
            Kind::Url => elicitation["url"].is_object(),
            Kind::Sampling => capabilities["sampling"].is_object(),
            Kind::SamplingTools => capabilities["sampling"]["tools"].is_object(),
            Kind::Roots => capabilities["roots"].is_object(),
            Kind::State | Kind::Required => true,
        }
    }

    /// The capabilities that it needs, as JSON text.
    #[must_use]
    pub fn needs(self) -> &'static str {
        match self {
            Kind::Form => "{\"elicitation\":{\"form\":{}}}",
            Kind::Url => "{\"elicitation\":{\"url\":{}}}",
            Kind::Sampling => "{\"sampling\":{}}",
            Kind::SamplingTools => "{\"sampling\":{\"tools\":{}}}",
            Kind::Roots => "{\"roots\":{}}",
            Kind::State | Kind::Required => "{}",
        }
    }
}

impl Plan {
    /// Reads a plan.
    #[must_use]
    pub fn parse(text: &str) -> Option<Plan> {
        let round = |text: &str| text.split('+').map(Ask::parse).collect::<Option<Vec<Ask>>>();
        let rounds = text.split(',').map(round).collect::<Option<Vec<_>>>()?;
        Some(Plan { rounds })
    }
}

impl Ask {
    fn parse(text: &str) -> Option<Ask> {
        let (text, blunt) = text.strip_prefix('!').map_or((text, false), |rest| (rest, true));
        let (text, withdrawn) = text.strip_suffix('~').map_or((text, false), |rest| (rest, true));
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == text)?;
        Some(Ask { kind, blunt, withdrawn })
    }
}

#[cfg(test)]
mod tests {
    use super::{Ask, Kind, Plan};

    #[test]
    fn rounds_and_questions_are_read() {
        let plan = Plan::parse("!form+sampling-tools,url~").expect("a plan");
        let ask = |kind, blunt, withdrawn| Ask { kind, blunt, withdrawn };
        let first = vec![ask(Kind::Form, true, false), ask(Kind::SamplingTools, false, false)];
        assert_eq!(plan.rounds, [first, vec![ask(Kind::Url, false, true)]]);
        assert_eq!(Plan::parse("form,,url"), None);
    }
}
