//! One request to a server that is no upstream, such as one that gives out tokens: on a connection of its own, bounded, nothing followed.

use crate::config::Remote;
use crate::health::{Cause, CauseCode};
use crate::memory::budget::Budget;
use crate::runtime::Tasks;
use crate::runtime::watched::Pieces;
use crate::transport::events::Nobody;
use crate::transport::http::connection::{ConnectionEpoch, Connector, Unread};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take for its answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Sends a request to this place, whose URL it has, and waits for the head of the answer.
pub async fn send(place: &Remote, request: Request<Vec<u8>>, tasks: &Tasks) -> Result<Response<Incoming>, Cause> {
    let invalid = |why: &str| Cause::new(CauseCode::UrlInvalid, why);
    let unread = Unread::new(Arc::new(Nobody(Budget::default())));
    let connector = Connector::new(place, tasks.clone(), Arc::<ConnectionEpoch>::default(), unread);
    let connector = connector.map_err(|why| invalid(&why))?;
    let (mut head, body) = request.into_parts();
    let host = head.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let path = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    // A URL may have a query and no path.
    let path = if path.starts_with('?') { format!("/{path}").parse() } else { path.parse() };
    head.uri = path.map_err(|_| invalid("its URL has no path"))?;
    head.headers.insert(HOST, host.ok_or_else(|| invalid("its URL has no host"))?);
    head.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION"))));
    if head.method != Method::GET {
        head.headers.insert(CONTENT_LENGTH, body.len().into());
    }
    head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let request = Request::from_parts(head, Pieces::from(Bytes::from(body)));
    connector.send_alone(request).await.map_err(|lost| lost.text().clone())
}

/// The whole body of an answer; `None` where it breaks, or has more than so many bytes.
pub async fn body(of: Incoming, most: usize) -> Option<Vec<u8>> {
    Some(Limited::new(of, most).collect().await.ok()?.to_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Reach;
    use crate::health::CauseCode::AddressRefused;
    use http::{HeaderMap, StatusCode};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn where_a_url_leads_is_judged_by_the_connection_too() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // The URL has no path, so the request asks for `/`.
        let url = format!("http://{}?tenant=x", listener.local_addr().unwrap());
        let asked = async |reach| {
            let place = Remote { reach, ..Remote::new(url.parse().unwrap(), HeaderMap::new()) };
            let request = Request::builder().uri(place.url.clone()).body(Vec::new()).unwrap();
            send(&place, request, &Tasks::new()).await.map(|answer| answer.status()).map_err(|why| why.code())
        };
        let serving = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1024]).await;
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            }
        };
        let asking = async {
            for reach in [Reach::Internet, Reach::Network] {
                assert_eq!(asked(reach).await, Err(AddressRefused), "{reach:?}");
            }
            for reach in [Reach::Machine, Reach::Written] {
                assert_eq!(asked(reach).await, Ok(StatusCode::NO_CONTENT), "{reach:?}");
            }
        };
        tokio::select! {
            () = asking => {}
            () = serving => {}
        }
    }
}
