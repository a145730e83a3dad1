//! Weighs all that each client makes the gateway keep, and finds what is given up first.

use super::account::{Account, Group};
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// The clients by what they hold, while one holder asks for more.
pub(crate) struct Clients<'a> {
    by: HashMap<Group, Client<'a>>,
    /// Those that have something to lose, by weight; a weight that has changed since stands here anew.
    heaviest: BinaryHeap<(usize, Group)>,
    asking: Group,
    /// What the holder that asks would be.
    rank: Rank,
}

/// How soon a holder goes among those of its client: first those that wait for a slow peer, then the larger ones.
type Rank = (bool, usize);

#[derive(Default)]
struct Client<'a> {
    weight: usize,
    /// Those that can be taken away; the first to go is the last.
    holders: Vec<(Rank, &'a Account)>,
}

impl<'a> Clients<'a> {
    /// All clients, as if the holder that asks had got what it wants.
    pub(crate) fn weighed(all: &'a [Arc<Account>], asking: &Account, to: usize) -> Self {
        let mut by = HashMap::<Group, Client<'a>>::new();
        by.entry(asking.group()).or_default().weight = to;
        for one in all.iter().filter(|one| one.key != asking.key && !one.has_lost()) {
            let client = by.entry(one.group()).or_default();
            client.weight += one.bytes();
            if one.may_lose() {
                client.holders.push(((one.waits_for_client(), one.bytes()), one));
            }
        }
        let heaviest = by.iter_mut().filter(|(_, client)| !client.holders.is_empty());
        let heaviest = heaviest.map(|(group, client)| {
            client.holders.sort_unstable_by_key(|(rank, _)| *rank);
            (client.weight, *group)
        });
        let heaviest = heaviest.collect();
        Self { by, heaviest, asking: asking.group(), rank: (asking.waits_for_client(), to) }
    }

    /// What goes next: the first holder of the client that holds most.
    pub(crate) fn first(&self) -> Option<&'a Account> {
        let (_, group) = self.heaviest.peek()?;
        self.by.get(group)?.holders.last().map(|(_, one)| *one)
    }

    /// Whether a holder goes before the one that asks.
    pub(crate) fn goes_before_asking(&self, one: &Account) -> bool {
        let weight = |group| self.by.get(&group).map_or(0, |client| client.weight);
        match one.group() {
            own if own == self.asking => (one.waits_for_client(), one.bytes()) >= self.rank,
            other => weight(other) >= weight(self.asking),
        }
    }

    /// Takes what goes next out.
    pub(crate) fn pop(&mut self) {
        let Some((_, group)) = self.heaviest.pop() else { return };
        let Some(client) = self.by.get_mut(&group) else { return };
        if let Some(((_, bytes), _)) = client.holders.pop() {
            client.weight = client.weight.saturating_sub(bytes);
        }
        if !client.holders.is_empty() {
            self.heaviest.push((client.weight, group));
        }
    }
}
