//! The end of a login: it is kept no more, and its tokens are revoked where that can be done (RFC 7009).

use super::client::said;
use super::record::Record;
use super::store::Store;
use super::way::{form, to};
use crate::config::Login;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::token_request::{proof, unavailable};
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// So long the tokens of all logins may take together to be revoked.
const REVOKED_WITHIN: Duration = Duration::from_secs(10);

/// What became of a login.
#[derive(Debug)]
pub struct LoggedOut {
    /// Who had given its tokens, where that could be read.
    pub issuer: Option<String>,
    /// Whether its tokens are good for nothing any more; else why they may still be.
    pub revoked: Result<(), Cause>,
}

/// The logins that are kept, for whatever upstream; and which files cannot be read, and why.
#[derive(Default)]
pub struct StoredLogins {
    /// By name, URL and principal, as they were made.
    pub logins: Vec<Login>,
    /// What may be a login as well.
    pub unreadable: Vec<(PathBuf, String)>,
}

impl StoredLogins {
    /// All logins that are kept in this folder of our state and open with these keys. Blocks.
    pub fn read(state: &Path, keys: &[Vec<u8>]) -> std::io::Result<Self> {
        let mut found = Self::default();
        for (path, read) in Store::all(state, keys)? {
            let login = read.map_err(|error| error.to_string()).and_then(|record| {
                let login = Login::stored(&record.upstream, &record.resource, (state, keys));
                let principal = record.principal.as_deref().map(Into::into);
                let login = login.map(|login| Login { principal, ..login });
                let is_its_own = |login: &Login| Store::of(login).is_ok_and(|store| store.path() == path);
                login.filter(is_its_own).ok_or_else(|| "it is the login of another upstream or principal".to_owned())
            });
            match login {
                Ok(login) => found.logins.push(login),
                Err(why) => found.unreadable.push((path, why)),
            }
        }
        Ok(found)
    }

    /// Whether what is in the place of a login cannot be read.
    pub fn has_unreadable(&self, login: &Login) -> bool {
        Store::of(login).is_ok_and(|store| self.unreadable.iter().any(|(path, _)| path == store.path()))
    }
}

impl LoggedOut {
    /// Ends logins: what became of each; `None` where there is none. First none is kept any more, so that no gateway uses what is being revoked,
    /// whatever breaks this off; then the tokens are revoked.
    pub async fn end(logins: &[Login], tasks: &Tasks) -> Vec<Result<Option<Self>, Cause>> {
        let mut removed = Vec::new();
        for login in logins {
            removed.push(remove(login).await);
        }
        let until = Instant::now() + REVOKED_WITHIN;
        let each = removed.into_iter().zip(logins).map(|(removed, login)| async move {
            let Some(read) = removed? else { return Ok(None) };
            let record = match read {
                Ok(record) => record,
                Err(why) => return Ok(Some(Self { issuer: None, revoked: Err(why) })),
            };
            let late = |_| Err(unavailable(format!("they were not revoked within {} s", REVOKED_WITHIN.as_secs())));
            let revoked = timeout_at(until, Box::pin(revoke(login, &record, tasks))).await.unwrap_or_else(late);
            Ok(Some(Self { issuer: Some(record.issuer), revoked }))
        });
        join_all(each).await
    }
}

/// Keeps a login no more: what it was, or why that cannot be read; `None` where there is none.
async fn remove(login: &Login) -> Result<Option<Result<Record, Cause>>, Cause> {
    let store = Store::of(login)?;
    if private::off_the_workers(|| store.stamp()).is_none() {
        return Ok(None);
    }
    // No gateway refreshes it meanwhile.
    let _lock = store.locked().await?;
    let read = private::off_the_workers(|| store.read());
    private::off_the_workers(|| store.remove())?;
    let unreadable = |error: std::io::Error| unavailable(format!("the kept login cannot be read: {error}"));
    Ok(read.map_err(unreadable).transpose())
}

/// Makes the tokens good for nothing: that which others are had by, and then the one that is shown.
async fn revoke(login: &Login, record: &Record, tasks: &Tasks) -> Result<(), Cause> {
    if *record.upstream != *login.upstream || record.resource != login.resource {
        return Err(unavailable("it is the login of another upstream"));
    }
    if record.principal.as_deref() != login.principal.as_deref() {
        return Err(unavailable("it is the login of another principal"));
    }
    let endpoint = record.revocation_endpoint.as_deref();
    let endpoint = endpoint.ok_or_else(|| unavailable("the authorization server offers no revocation"))?;
    let place = to(login, "the revocation end point", endpoint)?;
    let secrets = mask::Learned::new();
    record.secrets().for_each(|secret| secrets.note(secret));
    // A secret that was put right in the configuration counts.
    let configured = login.client.clone().filter(|client| client.id == record.client_id);
    let client = configured.unwrap_or_else(|| record.client());
    let (proven, header) = proof(&client.id, client.secret.as_deref(), client.is_in_body);
    let tokens = record.refresh.iter().map(|token| (token, "refresh_token"));
    for (token, kind) in tokens.chain([(&record.access, "access_token")]) {
        let mut fields = vec![("token", &**token), ("token_type_hint", kind)];
        fields.extend(&proven);
        let (status, body) = form(&place, &fields, header.clone(), tasks).await?;
        if !status.is_success() {
            let cause = Cause::new(
                CauseCode::TokenRefused,
                format!("the authorization server answers HTTP {}", status.as_u16()),
            );
            return Err(cause.foreign(&said(&body)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::super::way::tests::login;
    use super::*;
    use crate::runtime::Scratch;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_logout_keeps_nothing_before_it_revokes_and_has_ten_seconds_for_all() {
        let (scratch, listener) = (Scratch::new(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let endpoint = format!("http://{}/revoke", listener.local_addr().unwrap());
        let logins = ["a", "b"].map(|name| Login { state: Some(scratch.0.clone()), ..login(name, 1) });
        let store = |login: &Login| Store::of(login).unwrap();
        for login in &logins {
            let kept = record(&login.resource, "canary-of-logout-1", Some("canary-of-logout-2"));
            let endpoint = Some(endpoint.clone());
            let kept = Record { upstream: login.upstream.to_string(), revocation_endpoint: endpoint, ..kept };
            store(login).write(&kept).unwrap();
        }
        let (begun, tasks, was_kept) = (Instant::now(), Tasks::new(), AtomicBool::new(false));
        // Each answer comes in its own time, and the second one of a login too late for all.
        let slow = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                was_kept.fetch_or(logins.iter().any(|login| store(login).stamp().is_some()), Ordering::Relaxed);
                tasks.spawn(async move {
                    _ = stream.read(&mut [0; 4096]).await;
                    sleep(Duration::from_secs(6)).await;
                    let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                    _ = stream.write_all(answer).await;
                });
            }
        };
        let ended = tokio::select! {
            ended = LoggedOut::end(&logins, &tasks) => ended,
            () = slow => unreachable!("it goes on"),
        };
        assert!(!was_kept.into_inner(), "no gateway shows a token that is being revoked");
        assert_eq!(begun.elapsed().as_secs(), 10);
        for ended in ended {
            let why = ended.unwrap().unwrap().revoked.unwrap_err();
            assert!(why.full().contains("they were not revoked within 10 s"), "{why:?}");
        }
        tasks.end();
    }
}
