//! The address space that this process may have (`ulimit -v`, `ulimit -d`). An allocation beyond it aborts the process.

use rustix::process::{Resource, getrlimit};

const MIB: u64 = 1 << 20;
/// The program, its libraries and the heap of an idle gateway: 57 MiB were measured with two workers.
const BASE: u64 = 64 * MIB;
/// The stack and the heap of a worker thread and its share of the threads for blocking work.
const WORKER: u64 = 8 * MIB;
/// The least that messages of peers need. With less, bodies of 3 MiB from 40 clients at once aborted the process.
const PEERS_MIN: u64 = 48 * MIB;
/// The part of [`BASE`] that `ulimit -d` does not count: the mapped program.
const PROGRAM: u64 = 32 * MIB;

/// The limit of the address space.
#[derive(Debug, Clone, Copy)]
pub struct AddressSpace {
    limit: u64,
    workers: u64,
}

impl AddressSpace {
    /// The limit of this process with so many worker threads, if it has one.
    pub fn of_process(workers: usize) -> Option<Self> {
        let (all, data) = (getrlimit(Resource::As).current, getrlimit(Resource::Data).current);
        let limit = all.into_iter().chain(data.map(|bytes| bytes.saturating_add(PROGRAM))).min()?;
        Some(Self { limit, workers: workers as u64 })
    }

    /// The bytes that peers may occupy. It is a quarter of the free space: the allocator fragments the rest.
    pub fn for_peers(self) -> u64 {
        self.limit.saturating_sub(self.own()) / 4
    }

    /// The limit, and the least that a gateway needs, in MiB, if the limit is too low.
    pub fn lack(self) -> Option<(u64, u64)> {
        let needed = self.own() + PEERS_MIN;
        (self.limit < needed).then_some((self.limit / MIB, needed / MIB))
    }

    fn own(self) -> u64 {
        BASE.saturating_add(self.workers.saturating_mul(WORKER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_space_is_divided_after_what_the_gateway_needs() {
        let space = |limit: u64, workers| AddressSpace { limit: limit * MIB, workers };
        assert_eq!(space(64, 2).lack(), Some((64, 128)));
        assert_eq!((space(128, 2).lack(), space(128, 2).for_peers()), (None, 12 * MIB));
        assert_eq!((space(128, 8).lack(), space(64, 8).for_peers()), (Some((128, 176)), 0));
        assert_eq!(space(1104, 2).for_peers(), 256 * MIB);
    }
}
