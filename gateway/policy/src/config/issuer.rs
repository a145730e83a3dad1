//! Authorization servers whose access tokens clients may bear.

use http::Uri;
use jsonwebtoken::Algorithm;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The algorithms of signatures that can be taken: none that a public key could be turned against, and never none at all.
pub const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// An authorization server whose access tokens are taken, and what they are worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Issuer {
    /// What it is called: tokens and its metadata say exactly this.
    pub name: Arc<str>,
    /// Where it is asked for its metadata.
    pub url: Uri,
    /// Whether that is in a network of one's own, as what its metadata names may be then.
    pub is_within: bool,
    /// Where its keys lie; else its metadata says so.
    pub keys_url: Option<Uri>,
    /// A token is for one of these; empty: for the resource that the gateway is.
    pub audience: Vec<String>,
    /// Only these algorithms are taken.
    pub algorithms: Vec<Algorithm>,
    /// So far its clock may differ from that of this machine.
    pub clock_skew: Duration,
    /// Scopes that every token must have.
    pub scopes: Vec<String>,
    /// A scope, and one that it includes; whatever that one includes stands there, too.
    pub includes: Vec<(String, String)>,
    /// The roles that a token gives; `None`, also of the rules, means that it opens everything.
    pub roles: Option<Vec<Arc<str>>>,
    /// What gives more roles.
    pub rules: Vec<Rule>,
    /// Where tokens are asked about that say nothing themselves.
    pub introspection: Option<Introspection>,
    /// Authorities that are trusted besides those of the platform.
    pub ca: Option<PathBuf>,
}

impl Issuer {
    /// The scopes that are as good as this one: it, and all that include it.
    pub fn as_good_as<'a>(&'a self, scope: &'a str) -> impl Iterator<Item = &'a str> {
        let wider = self.includes.iter().filter(move |(_, narrow)| narrow == scope).map(|(wide, _)| wide.as_str());
        std::iter::once(scope).chain(wider)
    }

    /// The scopes that mean something here: those that every token must have first.
    pub fn known_scopes(&self) -> impl Iterator<Item = &str> {
        let of_rules = self.rules.iter().filter_map(|rule| match &rule.when {
            When::Scope(scope) => Some(scope.as_str()),
            When::Claim { .. } => None,
        });
        self.scopes.iter().map(String::as_str).chain(of_rules)
    }
}

/// What a token must have for these roles.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What.
    pub when: When,
    /// The roles.
    pub roles: Vec<Arc<str>>,
}

/// Something that a token has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A scope.
    Scope(String),
    /// A claim with this value, or with it in its list.
    Claim {
        /// Its name, or a path of names with dots between.
        name: String,
        /// The value.
        value: String,
    },
}

/// How an authorization server is asked about a token (RFC 7662).
#[derive(Clone, PartialEq, Eq)]
pub struct Introspection {
    /// Where; else its metadata says so.
    pub url: Option<Uri>,
    /// Who the gateway is there.
    pub client_id: String,
    /// What it proves that by.
    pub client_secret: String,
}

/// The secret is not shown.
impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// What the gateway is as a resource (RFC 9728): one at the endpoint, and one for each older transport, whose clients look for the URL
/// that they were given. A token for one of them is for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Those of the older transports come after that of the endpoint. Empty where no URL is known.
    pub faces: Vec<ResourceFace>,
}

/// The gateway as clients of one transport reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceFace {
    /// The paths of its requests, behind what a proxy takes off.
    pub requests: Vec<String>,
    /// Its URL.
    pub url: String,
    /// The URL of what it says of itself.
    pub metadata_url: String,
    /// The paths at which that is asked for.
    pub paths: Vec<String>,
}

impl Resource {
    /// Where such documents lie.
    const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

    /// The endpoint, and then the older transports, behind an origin and what a proxy takes off the paths; clients begin at the first path
    /// of each.
    pub fn at(origin: &str, prefix: &str, transports: &[Vec<&str>]) -> Self {
        let known = Self::WELL_KNOWN;
        let mut faces: Vec<ResourceFace> = Vec::new();
        for requests in transports {
            let Some(path) = requests.first() else { continue };
            let metadata = format!("{known}{prefix}{path}");
            let mut paths = vec![format!("{known}{path}"), metadata.clone()];
            if faces.is_empty() {
                paths.insert(0, known.to_owned());
            }
            paths.dedup();
            faces.push(ResourceFace {
                requests: requests.iter().map(|path| (*path).to_owned()).collect(),
                url: format!("{origin}{prefix}{path}"),
                metadata_url: format!("{origin}{metadata}"),
                paths,
            });
        }
        Self { faces }
    }

    /// The face at which a request with this path has come in; else the endpoint.
    pub(crate) fn face(&self, path: &str) -> Option<&ResourceFace> {
        self.faces.iter().find(|face| face.requests.iter().any(|one| one == path)).or(self.faces.first())
    }
}
