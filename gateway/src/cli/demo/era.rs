//! What the eras do not share: how a request says its revision, and what a result must carry.

use serde_json::{Map, Value, json};

/// The revisions with a handshake, newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision without.
pub(super) const MODERN: &str = "2026-07-28";

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const IDENTITY_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// Names the listen request whose stream a notice belongs to.
pub(super) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// A JSON-RPC error.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

/// In which revision a request is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Era {
    /// After a handshake that settled on this revision.
    Legacy(&'static str),
    /// The request itself says so.
    Modern,
}

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn frame(self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

impl Era {
    /// The era of a request; `settled` is what a handshake has settled on.
    pub(super) fn of(method: &str, params: &Value, settled: Option<&'static str>) -> Result<Self, Refusal> {
        let meta = &params["_meta"];
        let Some(asked) = meta.get(REVISION_KEY) else {
            return match (settled, method) {
                (Some(revision), _) => Ok(Self::Legacy(revision)),
                (None, "initialize" | "ping") => Ok(Self::Legacy(LEGACY[0])),
                (None, _) => {
                    Err(Refusal::new(-32600, format!("{method} before initialize, and without a revision in _meta")))
                }
            };
        };
        if asked != MODERN {
            return Err(Refusal {
                data: Some(json!({ "supported": [MODERN], "requested": asked })),
                ..Refusal::new(-32022, "this revision is not supported")
            });
        }
        if !meta[CAPABILITIES_KEY].is_object() {
            return Err(Refusal::new(-32602, format!("_meta lacks {CAPABILITIES_KEY}")));
        }
        Ok(Self::Modern)
    }

    /// Whether what came with `revision` may be said. Dated revisions sort as texts.
    pub(super) fn knows(self, revision: &str) -> bool {
        match self {
            Self::Legacy(settled) => settled >= revision,
            Self::Modern => true,
        }
    }

    /// The result as this era wants it; `fresh_ms` is for results that may be kept.
    pub(super) fn dress(self, mut result: Value, fresh_ms: Option<u64>) -> Value {
        if self == Self::Modern {
            result["resultType"] = json!("complete");
            result["_meta"][IDENTITY_KEY] = identity();
            if let Some(fresh_ms) = fresh_ms {
                result["ttlMs"] = json!(fresh_ms);
                result["cacheScope"] = json!("public");
            }
        }
        result
    }

    /// The answer to `initialize`, and the revision that it settles on.
    pub(super) fn handshake(params: &Value) -> (&'static str, Value) {
        let asked = params["protocolVersion"].as_str();
        let revision = LEGACY.into_iter().find(|revision| asked == Some(revision)).unwrap_or(LEGACY[0]);
        let mut capabilities = capabilities();
        if !Self::Legacy(revision).knows("2025-03-26") {
            capabilities.remove("completions");
        }
        let result = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "serverInfo": identity(),
            "instructions": INSTRUCTIONS,
        });
        (revision, result)
    }

    /// The answer to `server/discover`.
    pub(super) fn discovery() -> Value {
        json!({ "supportedVersions": [MODERN], "capabilities": capabilities(), "instructions": INSTRUCTIONS })
    }
}

fn capabilities() -> Map<String, Value> {
    let entries = [
        ("tools", json!({})),
        ("resources", json!({ "subscribe": true })),
        ("prompts", json!({})),
        ("completions", json!({})),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn identity() -> Value {
    json!({ "name": "trunkline-demo", "version": env!("CARGO_PKG_VERSION") })
}

const INSTRUCTIONS: &str = "A demonstration. Try `echo` or `add`, and read demo://counter.";
