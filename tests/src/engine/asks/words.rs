//! The words of a question: its parameters in a revision.

use crate::frame::quote;
use crate::revision::Revision;
use crate::script::plan::Kind;

/// The parameters of a question of that kind; `mark` tells it from every other one.
pub(crate) fn params(kind: Kind, revision: Revision, who: &str, mark: &str) -> String {
    let says = quote(&format!("{} for {who} ({mark})", kind.word()));
    match kind {
        Kind::Form => {
            let mode = if revision >= Revision::R2025_11_25 { "\"mode\":\"form\"," } else { "" };
            let fields = "\"from\":{\"type\":\"string\"},\"about\":{\"type\":\"string\"}";
            let schema = format!("{{\"type\":\"object\",\"properties\":{{{fields}}},\"required\":[\"from\"]}}");
            format!("{{{mode}\"message\":{says},\"requestedSchema\":{schema}}}")
        }
        Kind::Url => {
            let id =
                if revision.is_modern() { String::new() } else { format!(",\"elicitationId\":{}", quote(&id(mark))) };
            let url = quote(&format!("https://consent.example/{who}/{mark}"));
            format!("{{\"mode\":\"url\",\"message\":{says},\"url\":{url}{id}}}")
        }
        Kind::Sampling | Kind::SamplingTools => {
            let tools = "\"tools\":[{\"name\":\"dice\",\"inputSchema\":{\"type\":\"object\"}}],\"toolChoice\":{\"mode\":\"auto\"}";
            let tools = if kind == Kind::SamplingTools { format!(",{tools}") } else { String::new() };
            let message = format!("{{\"role\":\"user\",\"content\":{{\"type\":\"text\",\"text\":{says}}}}}");
            format!("{{\"messages\":[{message}],\"maxTokens\":16{tools}}}")
        }
        Kind::Roots | Kind::State | Kind::Required => "{}".into(),
    }
}

/// The id of an elicitation by URL.
pub(crate) fn id(mark: &str) -> String {
    format!("elicitation-{mark}")
}
