//! Checks that may be worse through the gateway, each line with its reason. A line that is not needed is said to be so.

use trunkline_tests::conformance::{Behind, Difference, Era, Transport};

/// One accepted difference.
pub(crate) struct Accepted {
    /// With the fixture behind us like this.
    behind: &'static [Behind],
    /// In this scenario; `*` at the end stands for anything.
    scenario: &'static str,
    /// For this check; `*` at the end stands for anything.
    check: &'static str,
    /// Why nothing can be done about it.
    pub(crate) why: &'static str,
}

impl Accepted {
    /// Whether the line is about this difference.
    pub(crate) fn covers(&self, behind: Behind, scenario: &str, difference: &Difference) -> bool {
        self.behind.contains(&behind) && says(self.scenario, scenario) && says(self.check, &difference.id)
    }

    /// How the line is named in a note.
    pub(crate) fn name(&self) -> String {
        let behind: Vec<String> = self.behind.iter().map(ToString::to_string).collect();
        format!("{} / {} ({})", self.scenario, self.check, behind.join(", "))
    }
}

fn says(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

const fn line(behind: &'static [Behind], scenario: &'static str, check: &'static str, why: &'static str) -> Accepted {
    Accepted { behind, scenario, check, why }
}

const ALL: &[Behind] = &Behind::ALL;
const HTTP_HANDSHAKE: Behind = Behind { transport: Transport::Http, era: Era::Handshake };
const STDIO_HANDSHAKE: Behind = Behind { transport: Transport::Stdio, era: Era::Handshake };
const HANDSHAKE: &[Behind] = &[HTTP_HANDSHAKE, STDIO_HANDSHAKE];
const STATELESS: &[Behind] = &[
    Behind { transport: Transport::Http, era: Era::Stateless },
    Behind { transport: Transport::Stdio, era: Era::Stateless },
];

const NO_EXTENSION: &str =
    "the fixture has this extension as a stateless server alone, and the gateway invents none for it";

/// Every accepted difference.
pub(crate) const ACCEPTED: &[Accepted] = &[
    line(
        ALL,
        "server-sse-multiple-streams",
        "server-sse-streams-functional",
        "lists are answered as JSON, not as streams; the check then notes that streams are optional, and judges nothing",
    ),
    line(
        ALL,
        "server-sse-polling",
        "server-sse-disconnect-resume",
        "the gateway takes the upstream's stream up again itself, so that no client has to; the check then judges nothing",
    ),
    line(
        HANDSHAKE,
        "server-stateless",
        "sep-2575-server-rejects-undeclared-capability",
        "what the client has not declared is not declared to the upstream's session either, and how its tool then fails is its own",
    ),
    line(
        HANDSHAKE,
        "server-stateless",
        "sep-2575-missing-capability-http-400",
        "the same: a tool's own failure is a result, and results have status 200",
    ),
    line(
        HANDSHAKE,
        "input-required-result-basic-elicitation",
        "sep-2322-elicitation-*",
        "the check wants the question under a key of its server's choice, and a live question of a handshake upstream has none",
    ),
    line(
        HANDSHAKE,
        "input-required-result-ignore-extra-params",
        "sep-2322-ignore-unexpected-params",
        "answers without state, before anything was asked: they continue no call that an upstream's session knows, and to run \
         the tool for them might be to run it twice",
    ),
    line(
        HANDSHAKE,
        "input-required-result-missing-input-response",
        "sep-2322-missing-response-rerequests",
        "the same: answers without state, before anything was asked",
    ),
    line(HANDSHAKE, "tasks-*", "*", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-*", "sep-2640-*", NO_EXTENSION),
    line(STATELESS, "tasks-*", "*", "until the extension is passed on"),
    line(STATELESS, "sep-2640-*", "sep-2640-*", "until the extension is passed on"),
];
