//! Public names: what a tool or prompt of an upstream is called in the catalog. Pure.

use super::config::{Naming, Strategy};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashSet;

/// How long the hash is that ends a shortened or contested name.
const HASH_CHARS: usize = 6;
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// One upstream with its own names, in its own order.
pub(super) struct Party<'a> {
    /// Its configured name.
    pub(super) upstream: &'a str,
    /// Its configured prefix.
    pub(super) prefix: &'a str,
    /// Its own names.
    pub(super) names: Vec<&'a str>,
}

/// Whether names and URIs pass as they are: one upstream, and nothing to tell it apart from.
pub(super) fn is_transparent(naming: &Naming, upstreams: usize) -> bool {
    upstreams == 1 && naming.strategy == Strategy::Flat
}

/// Whether an upstream's names bear no prefix where nobody contests them.
pub(super) fn is_bare(naming: &Naming, prefix: &str) -> bool {
    prefix.is_empty() || naming.strategy != Strategy::Prefix
}

/// The public name of every name of every party, in their order; `None` hides one that nothing can call.
///
/// Parties take names in the order of configuration, each first those that it need not alter. So a name depends on its own
/// upstream and on earlier ones only: an upstream that is added at the end changes nobody's names.
pub(super) fn assign(naming: &Naming, parties: &[Party<'_>]) -> Vec<Vec<Option<String>>> {
    let mut taken = HashSet::new();
    let transparent = is_transparent(naming, parties.len());
    let assigned = parties.iter().map(|party| match transparent {
        true => party.names.iter().map(|name| Some((*name).to_owned()).filter(|n| taken.insert(n.clone()))).collect(),
        false => settle(naming, party, &mut taken),
    });
    assigned.collect()
}

fn settle(naming: &Naming, party: &Party<'_>, taken: &mut HashSet<String>) -> Vec<Option<String>> {
    let mut public = vec![None; party.names.len()];
    let mut seen = HashSet::new();
    let unique: Vec<bool> = party.names.iter().map(|name| seen.insert(*name)).collect();
    for is_altered in [false, true] {
        for (at, name) in party.names.iter().enumerate() {
            let wish = Wish::of(naming, party, name);
            if unique[at] && wish.is_altered == is_altered {
                public[at] = wish.forms.into_iter().find(|form| taken.insert(form.clone()));
            }
        }
    }
    public
}

/// What a name would like to be, best first.
struct Wish {
    forms: Vec<String>,
    is_altered: bool,
}

impl Wish {
    fn of(naming: &Naming, party: &Party<'_>, own: &str) -> Self {
        let prefix = if party.prefix.is_empty() { party.upstream } else { party.prefix };
        let prefixed = format!("{prefix}{}{own}", naming.separator);
        let best = if is_bare(naming, party.prefix) { own } else { &prefixed };
        let legal = legalise(best);
        let is_altered = legal.len() > naming.max_length || legal != best;
        let fit = |text: &str| match legalise(text) {
            legal if legal.len() <= naming.max_length => legal.into_owned(),
            legal => hashed(naming, &legal, party.upstream, own),
        };
        let mut forms = vec![fit(best)];
        if naming.strategy != Strategy::Flat {
            forms.push(fit(&prefixed));
            forms.push(hashed(naming, &legalise(&prefixed), party.upstream, own));
        } else if is_altered {
            forms.push(hashed(naming, &legal, party.upstream, own));
        }
        Self { forms, is_altered }
    }
}

/// The text with everything but `A-Za-z0-9_-` made `_`.
fn legalise(text: &str) -> Cow<'_, str> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match text.chars().all(is_legal) {
        true => Cow::Borrowed(text),
        false => text.chars().map(|c| if is_legal(c) { c } else { '_' }).collect(),
    }
}

/// A legal text cut to its length and ended by the hash of whose name it is.
fn hashed(naming: &Naming, legal: &str, upstream: &str, own: &str) -> String {
    let kept = naming.max_length.saturating_sub(HASH_CHARS + 1).min(legal.len());
    format!("{}_{}", &legal[..kept], hash(upstream, own))
}

/// Six base-32 characters that stand for an upstream's own name.
pub(super) fn hash(upstream: &str, own: &str) -> String {
    let digest = Sha256::new().chain_update(upstream).chain_update([0]).chain_update(own).finalize();
    let bits = digest[..4].iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
    (0..HASH_CHARS).map(|at| BASE32[(bits >> (27 - 5 * at)) as usize & 31] as char).collect()
}

#[cfg(test)]
mod tests;
