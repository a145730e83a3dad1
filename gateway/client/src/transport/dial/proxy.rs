//! A connection by way of an HTTP proxy, which is told where it is to lead (CONNECT).

use crate::health::{Cause, CauseCode};
use crate::runtime::timer::late::within;
use crate::secrets::printable;
use http::HeaderValue;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How long the proxy may take to reach the host.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The most bytes of its answer.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// So much of its status line is told on.
const STATUS_CHARS_MAX: usize = 80;

/// Has the proxy at the other end lead to a host and a port. Nothing behind its answer is read.
pub(super) async fn lead(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    (host, port): (&str, u16),
    credentials: Option<&HeaderValue>,
) -> Result<(), Cause> {
    let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n").into_bytes();
    if let Some(credentials) = credentials {
        head.extend_from_slice(b"Proxy-Authorization: ");
        head.extend_from_slice(credentials.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    let broken = |error: std::io::Error| refused(&format!("the proxy closed the connection: {error}"));
    let asked = async {
        stream.write_all(&head).await.map_err(broken)?;
        let (mut answer, mut bytes) = (Vec::new(), 0);
        loop {
            while !answer.ends_with(b"\r\n\r\n") {
                if bytes >= HEAD_BYTES_MAX {
                    return Err(refused("the proxy's answer has more than 8 KiB"));
                }
                // What comes behind it is the host's.
                answer.push(stream.read_u8().await.map_err(broken)?);
                bytes += 1;
            }
            let (line, status) = status(&answer);
            // The answer is yet to come, but where the proxy says that it goes on in another protocol.
            match status {
                Some(100 | 102..=199) => answer.clear(),
                status => return Ok((line, status)),
            }
        }
    };
    let (line, status) = within(ANSWER_MAX, asked)
        .await
        .map_err(|_| refused(&format!("the proxy did not answer within {} s", ANSWER_MAX.as_secs())))??;
    let shown: String = line.chars().take(STATUS_CHARS_MAX).collect();
    match status {
        Some(200..=299) => Ok(()),
        Some(407) => Err(refused("the proxy asks for credentials")
            .advise("write them in `proxy`, as http://user:password@host:port")),
        Some(_) => Err(refused("the proxy refuses to lead there")
            .foreign(&format!(": {}", printable(&shown)))
            .advise("have the proxy allow this host and port, or set `proxy = \"off\"` or NO_PROXY")),
        None => Err(refused("what answers is no HTTP proxy").advise("check `proxy`, or HTTPS_PROXY and HTTP_PROXY")),
    }
}

/// The status line of a head, and the status in it.
fn status(head: &[u8]) -> (String, Option<u16>) {
    let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    (line, status)
}

fn refused(why: &str) -> Cause {
    Cause::new(CauseCode::ProxyRefused, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the proxy was sent, and what came of it.
    async fn led(answer: &'static str, credentials: Option<&'static str>) -> (String, Result<(), String>) {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 14);
        let proxy = async move {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(theirs.read_u8().await.unwrap());
            }
            theirs.write_all(answer.as_bytes()).await.unwrap();
            (String::from_utf8(asked).unwrap(), theirs)
        };
        let credentials = credentials.map(HeaderValue::from_static);
        let leading = lead(&mut ours, ("2001:db8::1", 443), credentials.as_ref());
        let (led, (asked, _open)) = tokio::join!(leading, proxy);
        if led.is_ok() {
            assert_eq!(ours.read_u8().await.unwrap(), b'!', "what is behind the answer is left");
        }
        (asked, led.map_err(|why| why.full().into_owned()))
    }

    #[tokio::test]
    async fn the_proxy_is_told_where_to_lead_and_what_it_refuses_is_said() {
        let (asked, led) = led("HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n!", Some("Basic dTpw")).await;
        assert_eq!(
            asked,
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\nProxy-Authorization: Basic dTpw\r\n\r\n"
        );
        assert_eq!(led, Ok(()));
        for interim in
            ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\nx: y\r\n\r\nHTTP/1.0 199 x\r\n\r\n"]
        {
            let answer = format!("{interim}HTTP/1.1 200 OK\r\n\r\n!");
            assert_eq!(self::led(Box::leak(answer.into_boxed_str()), None).await.1, Ok(()), "{interim}");
        }
        let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(HEAD_BYTES_MAX / 25 + 1);
        assert!(self::led(Box::leak(endless.into_boxed_str()), None).await.1.unwrap_err().contains("8 KiB"));
        for (answer, says) in [
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "refuses to lead there: HTTP/1.1 101"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 407 Who\r\n\r\n", "user:password"),
            ("HTTP/1.1 407 Who are you\r\n\r\n", "user:password"),
            ("HTTP/1.0 403 No\r\n\r\n", "refuses to lead there: HTTP/1.0 403 No"),
            ("220 mail ready\r\n\r\n", "no HTTP proxy"),
        ] {
            let (asked, led) = self::led(answer, None).await;
            assert!(!asked.contains("Authorization") && led.unwrap_err().contains(says), "{answer}");
        }
        let long: &'static str = Box::leak(format!("HTTP/1.1 200 {}", "x".repeat(HEAD_BYTES_MAX)).into_boxed_str());
        assert!(self::led(long, None).await.1.unwrap_err().contains("8 KiB"));
    }
}
