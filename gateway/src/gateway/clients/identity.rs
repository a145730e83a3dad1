//! The authorization servers of clients, asked over the connections that upstreams have, too.

use crate::policy::config::{Auth, Issuer};
use crate::policy::oauth::{Asked, Issuers, Provider};
use crate::runtime::Tasks;
use crate::upstream::logins::IdentityProvider;
use std::sync::Arc;

/// Those of a configuration, asked by tasks of this level.
pub(crate) fn issuers(auth: &Auth, tasks: &Tasks) -> Issuers {
    let below = tasks.clone();
    Issuers::new(auth, tasks, move |issuer| Arc::new(Asking(provider(issuer, &below))))
}

fn provider(issuer: &Issuer, tasks: &Tasks) -> IdentityProvider {
    let at = (&issuer.url, issuer.is_within);
    let provider =
        IdentityProvider::new(&issuer.name, at, issuer.ca.clone(), tasks.clone()).with_keys_at(issuer.keys_url.clone());
    match &issuer.introspection {
        Some(asked) => provider.asked_at(asked.url.clone(), &asked.client_id, &asked.client_secret),
        None => provider,
    }
}

/// One of them.
struct Asking(IdentityProvider);

impl Provider for Asking {
    fn keys(&self) -> Asked<'_> {
        Box::pin(async { self.0.keys().await.map_err(|why| why.full().into_owned()) })
    }

    fn introspect<'a>(&'a self, token: &'a str) -> Asked<'a> {
        Box::pin(async { self.0.introspect(token).await.map_err(|why| why.full().into_owned()) })
    }
}
