//! Whom a person logs in at, and how the gateway becomes a client there: all that is asked before anybody is shown a page.

use crate::config::Login;
use crate::health::Cause;
use crate::oauth::client::{Entry, Reached, entry};
use crate::oauth::resource::{Resource, resource};
use crate::oauth::server::{Server, server};
use crate::oauth::way::{quoted, to};
use crate::runtime::Tasks;
use crate::token_request::unavailable;
use crate::transport::http::once::ANSWER_MAX;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// So long it may take to find out where to log in; and so often a person who waits for it is told who is being asked.
const DISCOVERED_WITHIN: Duration = Duration::from_secs(30);
const TOLD_EVERY: Duration = Duration::from_secs(3);

/// What a person logs in to, where, and how the gateway becomes a client there, which may be as it is reached; `tell` is told meanwhile who is being asked.
pub(super) async fn discovered(
    (login, reached): (&Login, Option<Reached<'_>>),
    tasks: &Tasks,
    tell: &(impl Fn(String) + Sync),
) -> Result<(Resource, Server, Entry), Cause> {
    let asked = Mutex::new("the upstream".to_owned());
    let now = || asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let asking = async {
        let resource = resource(login, tasks).await?;
        let asks = |issuer: &str| {
            let said = format!("the authorization server{}", quoted(issuer));
            *asked.lock().unwrap_or_else(PoisonError::into_inner) = said;
        };
        let (server, entry) = first_that_will_do((login, reached), &resource, &asks, tasks).await?;
        Ok((resource, server, entry))
    };
    let telling = async {
        loop {
            sleep(TOLD_EVERY).await;
            tell(now());
        }
    };
    let late = |_| {
        let said = format!("nobody to log in at was found within {} s: ", DISCOVERED_WITHIN.as_secs());
        Err(unavailable(said).foreign(&now()).own(" was asked last"))
    };
    tokio::select! {
        found = timeout(DISCOVERED_WITHIN, Box::pin(asking)) => found.unwrap_or_else(late),
        () = telling => unreachable!("it is told as long as it lasts"),
    }
}

/// The first authorization server of the upstream that a person can log in at, and how the gateway becomes its client.
async fn first_that_will_do(
    (login, reached): (&Login, Option<Reached<'_>>),
    resource: &Resource,
    asks: &(impl Fn(&str) + Sync),
    tasks: &Tasks,
) -> Result<(Server, Entry), Cause> {
    let mut failed: Option<Cause> = None;
    for issuer in &resource.issuers {
        asks(issuer);
        let late = |_| Err(unavailable("no answer within 10 s from").foreign(&quoted(issuer)));
        let found = timeout(ANSWER_MAX, Box::pin(server(login, resource, issuer, tasks))).await.unwrap_or_else(late);
        let found = found.and_then(|server| {
            // It is for the browser; all the same it leads to no scheme of a program, and to nothing that the gateway would not ask itself.
            to(login, "the page of the authorization server", &server.authorization_endpoint)?;
            let entry = entry(login, &server, reached)?;
            Ok((server, entry))
        });
        match found {
            Ok(found) => return Ok(found),
            Err(why) => failed = Some(failed.map_or(why.clone(), |before| before.own("; ").then(&why))),
        }
    }
    Err(failed.unwrap_or_else(|| unavailable("the upstream names no authorization server")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::way::tests::login;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn where_to_log_in_is_found_within_half_a_minute_or_not_at_all_and_who_is_asked_is_told_meanwhile() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (login, tasks, told) = (login("up", port), Tasks::new(), Mutex::new(Vec::new()));
        let servers: Vec<_> = (0..8).map(|at| format!("http://127.0.0.1:{port}/a{at}")).collect();
        let document = json!({ "resource": login.resource, "authorization_servers": servers }).to_string();
        // All that an authorization server says takes nine seconds, and is nothing.
        let serving = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let document = document.clone();
                tasks.spawn_until_end(async move {
                    let mut head = vec![0; 4096];
                    let length = stream.read(&mut head).await.unwrap_or_default();
                    let head = String::from_utf8_lossy(&head[..length]).into_owned();
                    let (status, body) = match head.contains("oauth-protected-resource") {
                        true => ("200 OK", &*document),
                        false => ("404 Not Found", ""),
                    };
                    if head.contains("/a") {
                        sleep(Duration::from_secs(9)).await;
                    }
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
                    _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        };
        let tell = |who: String| told.lock().unwrap().push(who);
        let begun = Instant::now();
        let why = tokio::select! {
            found = discovered((&login, None), &tasks, &tell) => found.err().unwrap(),
            () = serving => unreachable!(),
        };
        // Each has ten seconds, so that the fourth one is asked in the end.
        let last = format!("the authorization server `http://127.0.0.1:{port}/a3`");
        assert_eq!(begun.elapsed().as_secs(), 30);
        assert_eq!(why.full(), format!("nobody to log in at was found within 30 s: {last} was asked last"));
        let told = told.into_inner().unwrap();
        assert!(told.len() >= 9 && told[0].ends_with("/a0`") && told[8].ends_with("/a2`"), "{told:?}");
        tasks.end();
    }
}
