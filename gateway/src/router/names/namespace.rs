//! Public names: what a tool or prompt of an upstream is called in the catalog. Pure.

use crate::router::config::{Naming, Strategy};
use crate::steps;
use crate::upstream::inventory::Inventory;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashSet;

/// How long the hash is that ends a shortened or contested name.
const HASH_CHARS: usize = 6;
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// One upstream with its own names, in its own order.
pub(crate) struct Party<'a> {
    /// Its configured name.
    pub(crate) upstream: &'a str,
    /// Its configured prefix.
    pub(crate) prefix: &'a str,
    /// Its own names.
    pub(crate) names: Vec<&'a str>,
}

/// Whether an upstream's names bear no prefix where nobody contests them.
pub(crate) fn is_bare(naming: &Naming, prefix: &str) -> bool {
    prefix.is_empty() || naming.strategy != Strategy::Prefix
}

/// The public name of every name of every party, in their order; `None` hides one that nothing can call.
///
/// Parties take names in the order of configuration, each first those that it need not alter. So a name depends on its own
/// upstream and on earlier ones only: an upstream that is added at the end changes nobody's names.
pub(crate) fn assign(naming: &Naming, parties: &[Party<'_>]) -> Vec<Vec<Option<String>>> {
    let mut taken = HashSet::new();
    let transparent = naming.is_transparent(parties.len());
    let assigned = parties.iter().map(|party| match transparent {
        true => party.names.iter().map(|name| Some((*name).to_owned()).filter(|n| taken.insert(n.clone()))).collect(),
        false => settle(naming, party, &mut taken),
    });
    assigned.collect()
}

fn settle(naming: &Naming, party: &Party<'_>, taken: &mut HashSet<String>) -> Vec<Option<String>> {
    let mut seen = HashSet::new();
    let wishes = party.names.iter().map(|name| seen.insert(*name).then(|| Wish::of(naming, party, name)));
    let wishes: Vec<_> = wishes.collect();
    let mut public = vec![None; wishes.len()];
    for is_altered in [false, true] {
        for (at, wish) in wishes.iter().enumerate() {
            if let Some(wish) = wish.as_ref().filter(|wish| wish.is_altered == is_altered) {
                public[at] = wish.forms(naming, party).find(|form| taken.insert(form.clone()));
            }
        }
    }
    public
}

/// What a name would like to be.
struct Wish<'a> {
    own: &'a str,
    best: String,
    is_altered: bool,
}

impl<'a> Wish<'a> {
    fn of(naming: &Naming, party: &Party<'_>, own: &'a str) -> Self {
        // Each upstream has that one, and each of them is to be found.
        let is_login = own == Inventory::LOGIN;
        let asked = match is_bare(naming, party.prefix) && !is_login {
            true => Cow::Borrowed(own),
            false => Cow::Owned(party.prefixed(naming, own)),
        };
        let best = party.fit(naming, &asked, own);
        Self { own, is_altered: best != asked, best }
    }

    /// The forms that it may take, best first; each is made when the ones before are taken.
    fn forms(&self, naming: &'a Naming, party: &'a Party<'_>) -> impl Iterator<Item = String> {
        let is_flat = naming.strategy == Strategy::Flat;
        let prefixed = move || party.prefixed(naming, self.own);
        let second = move || (!is_flat).then(|| party.fit(naming, &prefixed(), self.own));
        let last = move || match is_flat {
            false => Some(party.hashed(naming, &legalise(&prefixed()), self.own)),
            // A name that is contested as it is stays hidden: that is what flat means.
            true => self.is_altered.then(|| party.hashed(naming, &legalise(self.own), self.own)),
        };
        let best = std::iter::once_with(|| Some(self.best.clone()));
        best.chain(std::iter::once_with(second)).chain(std::iter::once_with(last)).flatten()
    }
}

impl Party<'_> {
    fn prefixed(&self, naming: &Naming, own: &str) -> String {
        let prefix = if self.prefix.is_empty() { self.upstream } else { self.prefix };
        format!("{prefix}{}{own}", naming.separator)
    }

    /// The text made legal, and cut where it is too long.
    fn fit(&self, naming: &Naming, text: &str, own: &str) -> String {
        match legalise(text) {
            legal if legal.len() <= naming.max_length => legal.into_owned(),
            legal => self.hashed(naming, &legal, own),
        }
    }

    /// A legal text cut to its length and ended by the hash of whose name it is.
    fn hashed(&self, naming: &Naming, legal: &str, own: &str) -> String {
        let kept = naming.max_length.saturating_sub(HASH_CHARS + 1).min(legal.len());
        format!("{}_{}", &legal[..kept], hash(self.upstream, own))
    }
}

/// The text with everything but `A-Za-z0-9_-` made `_`.
fn legalise(text: &str) -> Cow<'_, str> {
    steps::add(text.len());
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match text.chars().all(is_legal) {
        true => Cow::Borrowed(text),
        false => text.chars().map(|c| if is_legal(c) { c } else { '_' }).collect(),
    }
}

/// Six base-32 characters that stand for an upstream's own name.
pub(crate) fn hash(upstream: &str, own: &str) -> String {
    steps::add(own.len());
    let digest = Sha256::new().chain_update(upstream).chain_update([0]).chain_update(own).finalize();
    let bits = digest[..4].iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
    (0..HASH_CHARS).map(|at| BASE32[(bits >> (27 - 5 * at)) as usize & 31] as char).collect()
}

#[cfg(test)]
mod tests;
