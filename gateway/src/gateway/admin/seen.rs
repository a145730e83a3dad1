//! What one who calls may see, by a configuration and the lists that upstreams gave last: nothing is started for it.

use crate::call::caller::{Grants, Principal};
use crate::config::Config;
use crate::gateway::{terms, upstreams};
use crate::health::StatusBoard;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::policy::authenticate::AuthenticateLayer;
use crate::router::{Listeners, Offered, Router};
use crate::runtime::Tasks;
use crate::upstream::inventory::InventoryCache;
use serde::Serialize;
use tokio::sync::watch;

/// What somebody sees.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Whose it is.
    pub principal: String,
    /// The roles; without them everything is seen.
    pub roles: Option<Vec<String>>,
    /// The upstreams of which anything may be seen.
    pub upstreams: Vec<String>,
    /// Those of them whose lists are not known: they were never read, or are not kept.
    pub unknown: Vec<String>,
    /// Tools, by public name.
    pub tools: Vec<String>,
    /// Prompts, by public name.
    pub prompts: Vec<String>,
    /// Resources, by public URI.
    pub resources: Vec<String>,
    /// Templates of resources.
    pub templates: Vec<String>,
}

/// What a principal would see. A runtime must be there.
pub fn seen_by(config: &Config, principal: &Principal) -> Seen {
    let grants = AuthenticateLayer::new(&config.auth, None).grants_of(principal);
    let (budget, tasks) = (Budget::default(), Tasks::new());
    let listeners = Listeners::new(budget.clone(), Refusals::default());
    let terms = upstreams::Terms {
        is_of_one_client: false,
        board: StatusBoard::new(budget),
        listeners: listeners.clone(),
        said: watch::Sender::new(None),
        store: InventoryCache::at(&config.cache),
        kept: None,
        tasks: tasks.clone(),
        ground: tasks.clone(),
    };
    let upstreams = upstreams::Upstreams::new(terms, &config.upstreams);
    let router = Router::start(upstreams.owners(), terms::of(config, false), listeners, &tasks);
    seen(&router.offered(), principal, &grants)
}

/// What a principal sees of what is offered.
fn seen(offered: &Offered, principal: &Principal, grants: &Grants) -> Seen {
    let [tools, prompts, resources, templates] =
        offered.seen_by(grants).map(|names| names.iter().map(ToString::to_string).collect());
    let (mut upstreams, mut unknown) = (Vec::new(), Vec::new());
    for (name, is_known) in offered.upstreams().filter(|(name, _)| grants.sees(name)) {
        unknown.extend((!is_known).then(|| name.to_string()));
        upstreams.push(name.to_string());
    }
    let roles = grants.keep().map(|rights| rights.roles().iter().map(|role| role.name.to_string()).collect());
    Seen { principal: principal.name().to_owned(), roles, upstreams, unknown, tools, prompts, resources, templates }
}
