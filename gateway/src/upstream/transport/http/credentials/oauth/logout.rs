//! The end of a login: its tokens are revoked where that can be done (RFC 7009), and it is kept no more.

use super::client::{proof, said};
use super::record::Record;
use super::store::Store;
use super::way::{form, to};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::upstream::config::Login;
use crate::upstream::transport::http::credentials::granted::unavailable;

/// What became of a login.
#[derive(Debug)]
pub struct LoggedOut {
    /// Who had given its tokens, where that could be read.
    pub issuer: Option<String>,
    /// Whether its tokens are good for nothing any more; else why they may still be.
    pub revoked: Result<(), Cause>,
}

/// Ends the login for an upstream; `None` where there is none. It is kept no more, whether its tokens can be revoked or not.
pub async fn log_out(login: &Login, tasks: &Tasks) -> Result<Option<LoggedOut>, Cause> {
    let store = Store::of(login)?;
    if private::off_the_workers(|| store.stamp()).is_none() {
        return Ok(None);
    }
    // No gateway refreshes it meanwhile.
    let _lock = store.locked().await?;
    let ended = match private::off_the_workers(|| store.read()) {
        Ok(None) => return Ok(None),
        Ok(Some(record)) => LoggedOut { revoked: revoke(login, &record, tasks).await, issuer: Some(record.issuer) },
        Err(error) => {
            let why = unavailable(format!("the kept login cannot be read: {error}"));
            LoggedOut { revoked: Err(why), issuer: None }
        }
    };
    private::off_the_workers(|| store.remove())?;
    Ok(Some(ended))
}

/// Makes the tokens good for nothing: that which others are had by, and then the one that is shown.
async fn revoke(login: &Login, record: &Record, tasks: &Tasks) -> Result<(), Cause> {
    if *record.upstream != *login.upstream || record.resource != login.resource {
        return Err(unavailable("it is the login of another upstream"));
    }
    let endpoint = record.revocation_endpoint.as_deref();
    let endpoint = endpoint.ok_or_else(|| unavailable("the authorization server offers no revocation"))?;
    let place = to(login, "the revocation end point", endpoint)?;
    let secrets = mask::Learned::new();
    record.secrets().for_each(|secret| secrets.note(secret));
    // A secret that was put right in the configuration counts.
    let configured = login.client.clone().filter(|client| client.id == record.client_id);
    let client = configured.unwrap_or_else(|| record.client());
    let (proven, header) = proof(&client);
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
