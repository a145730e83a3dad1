//! Upstreams that each person logs in to for itself, and what they were shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use trunkline_tests::authority::Authority;
use trunkline_tests::identity::Identity;
use trunkline_tests::journal::What;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

/// An upstream, who judges for it, and where persons log in to it.
pub(crate) struct Guarded {
    pub(crate) upstream: Upstream,
    pub(crate) guard: Arc<Authority>,
    pub(crate) identity: Arc<Identity>,
}

/// A request that was let in.
pub(crate) struct Shown {
    pub(crate) token: String,
    /// The upstream's session, where it has any.
    pub(crate) session: Option<String>,
    /// Whose it is, by its own words.
    pub(crate) of: String,
}

impl Guarded {
    pub(crate) async fn start(name: &str, revision: Revision) -> Guarded {
        let upstream = Upstream::http(Script::new(name, revision).with(|script| script.more_tools = 1)).await;
        let guard = Authority::start().await;
        upstream.guarded_by(&guard);
        let identity = Identity::start(&guard).await;
        let document = identity.resource(&upstream.url());
        upstream.shows("/.well-known/oauth-protected-resource/mcp", 200, &document);
        Guarded { upstream, guard, identity }
    }

    /// The calls and prompts that were let in, in order.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let frame = |what: What| match what {
            What::Frame { raw, headers } => Some((serde_json::from_str::<Value>(&raw).ok()?, headers)),
            _ => None,
        };
        let shown = |(frame, headers): (Value, Vec<(String, String)>)| {
            let given = &frame["params"]["arguments"];
            let of = given["of"].as_str().or(given["who"].as_str())?.to_owned();
            let find = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let token = find("authorization")?.strip_prefix("Bearer ")?.to_owned();
            Some(Shown { token, session: find("mcp-session-id"), of })
        };
        self.upstream.events.all().into_iter().filter_map(|event| frame(event.what)).filter_map(shown).collect()
    }

    /// The token that a person's last call was made with.
    pub(crate) fn last_token(&self, of: &str) -> String {
        self.shown().into_iter().rfind(|shown| shown.of == of).expect("it has called").token
    }

    /// Each login by its number, and whose calls were made with it.
    pub(crate) fn logins(&self) -> BTreeMap<usize, BTreeSet<String>> {
        let mut logins = BTreeMap::<usize, BTreeSet<String>>::new();
        for shown in self.shown() {
            let login = self.identity.login_of(&shown.token).expect("the token is from here");
            logins.entry(login).or_default().insert(shown.of);
        }
        logins
    }

    /// How many tokens each person's calls were made with.
    pub(crate) fn tokens(&self) -> BTreeMap<String, usize> {
        let mut tokens = BTreeMap::<String, BTreeSet<String>>::new();
        for shown in self.shown() {
            tokens.entry(shown.of).or_default().insert(shown.token);
        }
        tokens.into_iter().map(|(of, tokens)| (of, tokens.len())).collect()
    }

    /// All that it and where one logs in to it were told by the gateway, as text.
    pub(crate) fn told(&self) -> String {
        let (judged, asked) = (self.guard.judged.all(), self.identity.asked.all());
        format!("{:?} {judged:?} {asked:?}", self.upstream.events.all())
    }
}
