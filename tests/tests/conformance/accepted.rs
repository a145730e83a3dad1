//! Checks that may be worse through the gateway, each line with its reason. A line that is not needed is said to be so.

use trunkline_tests::conformance::{Behind, Difference, Era, Transport};

/// One accepted difference.
pub(crate) struct Accepted {
    /// With the fixture behind us like this; nothing: however it stands there.
    behind: Option<&'static [Behind]>,
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
        self.behind.is_none_or(|of| of.contains(&behind))
            && says(self.scenario, scenario)
            && says(self.check, &difference.id)
    }

    /// Whether it can be needed with the fixture in one of these places.
    pub(crate) fn is_about(&self, places: &[Behind]) -> bool {
        self.behind.is_none_or(|of| of.iter().any(|behind| places.contains(behind)))
    }

    /// How the line is named in a note.
    pub(crate) fn name(&self) -> String {
        let behind: Vec<String> = self.behind.into_iter().flatten().map(ToString::to_string).collect();
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
    Accepted { behind: Some(behind), scenario, check, why }
}

const fn anywhere(scenario: &'static str, check: &'static str, why: &'static str) -> Accepted {
    Accepted { behind: None, scenario, check, why }
}

const HTTP_HANDSHAKE: Behind = Behind { transport: Transport::Http, era: Era::Handshake };
const STDIO_HANDSHAKE: Behind = Behind { transport: Transport::Stdio, era: Era::Handshake };
const HANDSHAKE: &[Behind] = &[HTTP_HANDSHAKE, STDIO_HANDSHAKE];

const NO_EXTENSION: &str =
    "the fixture has this extension as a stateless server alone, and the gateway invents none for it";

/// Every accepted difference.
pub(crate) const ACCEPTED: &[Accepted] = &[
    anywhere(
        "server-sse-multiple-streams",
        "server-sse-streams-functional",
        "lists are answered as JSON, not as streams; the check then notes that streams are optional, and judges nothing",
    ),
    anywhere(
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
    // The fixture has two extensions as a stateless server alone.
    line(HANDSHAKE, "sep-2640-skills-directory", "sep-2640-capability-directory-read-flag", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-directory", "sep-2640-directory-read-invalid-params", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-directory", "sep-2640-directory-read-method-registered", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-directory", "sep-2640-directory-read-pagination", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-directory", "sep-2640-directory-read-result-resources-shape", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-directory", "sep-2640-directory-read-subdir-mimetype", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-authority-reg-name", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-capability-commits-to-methods", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-capability-declaration-inline", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-capability-empty-object", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-capability-requires-resources", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-entry-frontmatter-identical", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-entry-frontmatter-required", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-entry-resources-required", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-entry-uri-matches-frontmatter-name", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-entry-uri-required", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-limit-resources-per-skill", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-limit-total-size", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-metadata-reserved-prefix", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-name-naming-rules", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-names-should-be-unique", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-resources-complete", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-resources-digest-format", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-resources-size-required", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-resources-uri-within-skill", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skill-uri-scheme", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skillmd-frontmatter", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skillmd-required", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-get-cache-attributes", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-get-entry-shape", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-get-implemented", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-get-no-cursor", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-get-unknown-uri-invalid-params", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-list-cache-attributes", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-list-entry-atomic", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-list-implemented", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-enumeration", "sep-2640-skills-list-pagination", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-manifest", "sep-2640-final-segment-equals-name", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-manifest", "sep-2640-meta-prefix", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-manifest", "sep-2640-skillmd-metadata-description", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-manifest", "sep-2640-skillmd-metadata-name", NO_EXTENSION),
    line(HANDSHAKE, "sep-2640-skills-manifest", "sep-2640-skillmd-mimetype", NO_EXTENSION),
    line(HANDSHAKE, "tasks-capability-negotiation", "tasks-extension-advertised", NO_EXTENSION),
    line(HANDSHAKE, "tasks-capability-negotiation", "tasks-per-request-meta-opt-in", NO_EXTENSION),
    line(HANDSHAKE, "tasks-dispatch-and-envelope", "sep-2663-durable-create-strong-consistency", NO_EXTENSION),
    line(HANDSHAKE, "tasks-dispatch-and-envelope", "tasks-server-directed-creation-no-hint", NO_EXTENSION),
    line(HANDSHAKE, "tasks-lifecycle", "sep-2663-cancel-ack-empty-result", NO_EXTENSION),
    line(HANDSHAKE, "tasks-lifecycle", "sep-2663-result-type-task-on-create", NO_EXTENSION),
    line(HANDSHAKE, "tasks-lifecycle", "sep-2663-tasks-get-status-completed", NO_EXTENSION),
    line(HANDSHAKE, "tasks-lifecycle", "sep-2663-tasks-get-status-failed", NO_EXTENSION),
    line(HANDSHAKE, "tasks-lifecycle", "sep-2663-tasks-get-status-working", NO_EXTENSION),
    line(HANDSHAKE, "tasks-lifecycle", "sep-2663-tool-error-uses-completed-status", NO_EXTENSION),
    line(HANDSHAKE, "tasks-lifecycle", "tasks-cancel-terminal-idempotent-ack", NO_EXTENSION),
    line(HANDSHAKE, "tasks-mrtr-composition", "sep-2663-mrtr-synchronous-before-task-creation", NO_EXTENSION),
    line(HANDSHAKE, "tasks-mrtr-input", "sep-2663-tasks-get-status-input-required", NO_EXTENSION),
    line(HANDSHAKE, "tasks-mrtr-input", "tasks-mrtr-partial-fulfillment", NO_EXTENSION),
    line(HANDSHAKE, "tasks-mrtr-input", "tasks-mrtr-tasks-update-resumes", NO_EXTENSION),
    line(HANDSHAKE, "tasks-request-headers", "sep-2663-routing-headers-accepted-on-tasks-get", NO_EXTENSION),
    line(HANDSHAKE, "tasks-request-headers", "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get", NO_EXTENSION),
    line(HANDSHAKE, "tasks-request-state-removal", "tasks-create-result-no-request-state", NO_EXTENSION),
    line(HANDSHAKE, "tasks-request-state-removal", "tasks-get-detailed-no-request-state", NO_EXTENSION),
    line(HANDSHAKE, "tasks-request-state-removal", "tasks-request-state-removal-setup", NO_EXTENSION),
    line(HANDSHAKE, "tasks-required-task-error", "sep-2663-server-returns-missing-capability-data-shape", NO_EXTENSION),
    line(
        HANDSHAKE,
        "tasks-required-task-error",
        "sep-2663-server-returns-missing-capability-when-required",
        NO_EXTENSION,
    ),
    line(HANDSHAKE, "tasks-wire-fields", "tasks-no-early-ttl-expiry", NO_EXTENSION),
    line(HANDSHAKE, "tasks-wire-fields", "tasks-no-related-task-meta-on-inlined-result", NO_EXTENSION),
    line(HANDSHAKE, "tasks-wire-fields", "tasks-wire-field-renames", NO_EXTENSION),
];
