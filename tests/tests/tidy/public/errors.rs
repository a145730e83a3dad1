//! Causes and errors: cause codes, codes of refusals, JSON-RPC codes, and what a client gets for typical faults.

use trunkline_tests::tokens::lexer::{Kind, Token};

use super::live::{self, Probe};
use super::product::{files, is_path, text, tokens};
use super::sorted;

/// A cause code that is there for sure: the others stand beside it.
const CAUSE: &str = "command_not_found";

pub(crate) fn errors() -> Vec<String> {
    let mut lines = Vec::new();
    for source in files() {
        let tokens = tokens(&source);
        if tokens.iter().filter_map(text).any(|text| text == CAUSE) {
            let arms = tokens.windows(2).filter(|pair| pair[0].is("=>")).filter_map(|pair| text(&pair[1]));
            lines.extend(arms.map(|code| format!("cause {code}")));
        }
        lines.extend(numbers(&tokens).into_iter().map(|code| format!("JSON-RPC code {code}")));
        lines.extend(statuses(&tokens).into_iter().map(|status| format!("HTTP status {status}")));
        for text in tokens.iter().filter_map(text) {
            let codes = text.split("\\\"code\\\":\\\"").skip(1).filter_map(|rest| rest.split("\\\"").next());
            lines.extend(codes.filter(|code| !code.contains('{')).map(|code| format!("code in error data {code}")));
        }
    }
    [sorted(lines), live::answers(&PROBES)].concat()
}

/// The JSON-RPC codes that a file has as numbers.
fn numbers(tokens: &[Token<'_>]) -> Vec<String> {
    let code = |pair: &[Token<'_>]| {
        let number = (pair[0].is("-") && pair[1].kind == Kind::Number).then(|| pair[1].text.replace('_', ""))?;
        (number.len() == 5 && number.starts_with("32")).then(|| format!("-{number}"))
    };
    tokens.windows(2).filter_map(code).collect()
}

/// The HTTP statuses that a file names.
fn statuses(tokens: &[Token<'_>]) -> Vec<String> {
    let named = tokens.windows(3).filter(|part| is_path(part, &["StatusCode", "::"]));
    named
        .map(|part| part[2].text)
        .filter(|name| name.chars().all(|char| char.is_uppercase() || char == '_'))
        .map(str::to_owned)
        .collect()
}

const STATELESS: &str =
    r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
/// A request of a stateless client: method, name, and other parameters.
const fn stateless(what: &'static str, method: &'static str, name: &'static str, params: &'static str) -> Probe {
    Probe {
        what,
        method: "POST",
        headers: &[("mcp-protocol-version", "2026-07-28")],
        rpc: Some((method, name, params)),
        body: "",
    }
}

/// A request as it is.
const fn plain(
    what: &'static str,
    method: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> Probe {
    Probe { what, method, headers, rpc: None, body }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

const PROBES: [Probe; 16] = [
    plain("no JSON", "POST", &[], "{"),
    plain("no request", "POST", &[], "[1]"),
    plain("handshake", "POST", &[], INITIALIZE),
    plain("request without a session", "POST", &[], LIST),
    plain("request of an unknown session", "POST", &[("mcp-session-id", "unknown")], LIST),
    plain("stream without a session", "GET", &[("accept", "text/event-stream")], ""),
    plain("end of an unknown session", "DELETE", &[("mcp-session-id", "unknown")], ""),
    plain("another method of HTTP", "PUT", &[], ""),
    plain("another type of content", "POST", &[("content-type", "text/plain")], LIST),
    plain("a foreign origin", "POST", &[("origin", "http://other.example")], LIST),
    plain("an unknown revision", "POST", &[("mcp-protocol-version", "1999-01-01")], LIST),
    stateless("unknown method", "no/such", "", ""),
    stateless("unknown tool", "tools/call", "up__none", r#""name":"up__none","arguments":{},"#),
    stateless("tool of a failed upstream", "tools/call", "ill__none", r#""name":"ill__none","arguments":{},"#),
    stateless("unknown resource", "resources/read", "x://none", r#""uri":"x://none","#),
    stateless("header and body disagree", "tools/call", "up__other", r#""name":"up__none","arguments":{},"#),
];

/// The body of a request of a stateless client.
pub(super) fn body(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{STATELESS}}}}}"#)
}
