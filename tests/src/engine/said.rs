//! What is said in answer: a result or an error, as JSON text.

use crate::frame::quote;
use crate::revision::Revision;
use crate::script::Script;

/// An answer without its id.
pub(crate) enum Said {
    /// A result object.
    Result(String),
    /// An error object.
    Error(String),
}

impl Said {
    /// A result as it is.
    pub(crate) fn result(text: impl Into<String>) -> Said {
        Said::Result(text.into())
    }

    /// A result with what the revision wants in it; `cacheable` ones say how long they hold.
    pub(crate) fn dressed(script: &Script, revision: Revision, cacheable: bool, text: &str) -> Said {
        if !revision.is_modern() {
            return Said::Result(text.into());
        }
        let cache = if cacheable { "\"ttlMs\":0,\"cacheScope\":\"private\"," } else { "" };
        let rest = text.strip_prefix('{').expect("a result is an object");
        let comma = if rest.starts_with('}') { "" } else { "," };
        Said::Result(format!(
            "{{\"resultType\":\"complete\",{cache}\"_meta\":{{\"io.modelcontextprotocol/serverInfo\":{}}}{comma}{rest}",
            identity(script)
        ))
    }

    /// An error; `data` is JSON text.
    pub(crate) fn error(code: i64, message: &str, data: Option<&str>) -> Said {
        let data = data.map(|data| format!(",\"data\":{data}")).unwrap_or_default();
        Said::Error(format!("{{\"code\":{code},\"message\":{}{data}}}", quote(message)))
    }

    /// The whole frame.
    pub(crate) fn into_frame(self, id: &str) -> String {
        match self {
            Said::Result(text) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{text}}}"),
            Said::Error(text) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{text}}}"),
        }
    }
}

/// The upstream's identity.
pub(crate) fn identity(script: &Script) -> String {
    format!("{{\"name\":{},\"version\":\"1.0.0\"}}", quote(&script.name))
}
