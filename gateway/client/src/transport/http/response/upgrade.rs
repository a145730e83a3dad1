//! The response by which a connection to an HTTP upstream becomes a WebSocket (RFC 6455, 4).

use crate::health::{Cause, CauseCode};
use crate::protocol::framing::websocket;
use crate::transport::exchange::Lost;
use crate::transport::http::response::refusal;
use crate::transport::http::session::HttpSession;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{
    ACCEPT, CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

/// Opens a connection and has it become a WebSocket, of this subprotocol where one is asked for.
pub(crate) async fn upgrade(http: &HttpSession, subprotocol: Option<&'static str>) -> Result<TokioIo<Upgraded>, Lost> {
    let key = key()?;
    let make = || {
        let mut request = http.get(None);
        let headers = request.headers_mut();
        headers.remove(ACCEPT);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        if let Some(name) = subprotocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
        }
        headers.insert(SEC_WEBSOCKET_KEY, key.clone());
        request
    };
    let response = http.wire.send_alone(&make).await?;
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => {}
        status if status.is_success() => {
            let said = format!("it answered the upgrade to a WebSocket with HTTP {}", status.as_u16());
            return Err(odd(&said, "check that `url` is the address of its WebSocket"));
        }
        _ => return Err(Lost::Status(refusal::read(response, http, None).await.why)),
    }
    agreed(response.headers(), &key, subprotocol)?;
    let upgraded = hyper::upgrade::on(response).await;
    let broken = |error: hyper::Error| Cause::new(CauseCode::ConnectionLost, error.to_string());
    Ok(TokioIo::new(upgraded.map_err(|error| Lost::Unsent(broken(error)))?))
}

fn odd(said: &str, advice: &str) -> Lost {
    Lost::Odd(Cause::new(CauseCode::HandshakeInvalid, said).advise(advice))
}

/// A new key.
fn key() -> Result<HeaderValue, Lost> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| odd(&format!("the system gives no random bytes: {error}"), ""))?;
    HeaderValue::from_str(&BASE64.encode(bytes)).map_err(|error| odd(&error.to_string(), ""))
}

/// Whether the other side has agreed on what was asked for, and on no more. Some name no subprotocol and speak it all the same.
fn agreed(headers: &HeaderMap, key: &HeaderValue, subprotocol: Option<&str>) -> Result<(), Lost> {
    let expected = websocket::accept(key.as_bytes());
    if headers.get(SEC_WEBSOCKET_ACCEPT).is_none_or(|found| found.as_bytes() != expected.as_bytes()) {
        let said = "its answer to the upgrade is not that of a WebSocket server (`Sec-WebSocket-Accept`)";
        return Err(odd(said, "check that `url` is the address of its WebSocket"));
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        return Err(odd(
            "it uses an extension of WebSocket that was not asked for",
            "turn compression off in the server",
        ));
    }
    match headers.get(SEC_WEBSOCKET_PROTOCOL) {
        Some(named) if subprotocol.is_none_or(|asked| named != asked) => Err(match subprotocol {
            Some(asked) => odd(
                &format!("it speaks another subprotocol than `{asked}` on this WebSocket"),
                "check that `url` is the address of MCP",
            ),
            None => {
                odd("it speaks a subprotocol of WebSocket that was not asked for", "remove `dialect` if that is `mcp`")
            }
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_side_agrees_on_is_what_was_asked_for() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        // The example of RFC 6455, 1.3.
        let accept = ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let asked = |subprotocol, all: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            all.iter().for_each(|(name, value)| _ = headers.insert(*name, HeaderValue::from_static(value)));
            agreed(&headers, &key, subprotocol).map_err(|lost| lost.text().full().into_owned())
        };
        let said = |all: &[(&'static str, &'static str)]| asked(Some("mcp"), all);
        assert_eq!(asked(None, &[accept]), Ok(()));
        let unasked = asked(None, &[accept, ("sec-websocket-protocol", "mcp")]);
        assert!(unasked.unwrap_err().contains("not asked for; remove `dialect`"));
        assert_eq!(said(&[accept]), Ok(()), "no subprotocol is named");
        assert_eq!(said(&[accept, ("sec-websocket-protocol", "mcp")]), Ok(()));
        let other = said(&[accept, ("sec-websocket-protocol", "graphql-ws")]);
        assert!(other.unwrap_err().contains("another subprotocol"));
        let extended = said(&[accept, ("sec-websocket-extensions", "permessage-deflate")]);
        assert!(extended.unwrap_err().contains("turn compression off"));
        for wrong in [&[][..], &[("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO=")]] {
            assert!(said(wrong).unwrap_err().contains("Sec-WebSocket-Accept"));
        }
    }
}
