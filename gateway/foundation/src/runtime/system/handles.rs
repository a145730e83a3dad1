//! How many files and connections this process may have open: raised at its start, and kept for children as it was.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// Where the system sets no limit, this is more than enough.
const ENOUGH: u64 = 1 << 20;
/// What the gateway needs itself: its listeners, its log, its own connections and files.
const OWN: usize = 64;

/// The limit that this process was started with; children get it back.
static ORIGINAL: OnceLock<u64> = OnceLock::new();

/// Raises the limit to the most that this process may have. Where that is refused, the limit stays as it is.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let before = current.unwrap_or(ENOUGH);
    if ORIGINAL.set(before).is_err() {
        return;
    }
    let most = maximum.unwrap_or(ENOUGH).max(before);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }) {
        tracing::debug!(%error, before, most, "cannot raise the limit of open files");
    }
}

/// The limit that children get.
pub fn original() -> u64 {
    *ORIGINAL.get_or_init(|| limit() as u64)
}

/// Sets the limit to what it was, in a child that becomes a program.
pub fn restore(original: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(original.min(maximum.unwrap_or(u64::MAX)));
    // It was this before, so it is never refused; and a program does with more, too.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

/// How many may be open now.
pub fn limit() -> usize {
    getrlimit(Resource::Nofile).current.unwrap_or(ENOUGH).try_into().unwrap_or(usize::MAX)
}

/// So many connections clients may have, where children need `children` files: the rest is for these, for probes, and for one
/// connection to an upstream for each of a client's.
pub fn for_clients(limit: usize, children: usize) -> usize {
    (limit.saturating_sub(OWN + children) / 2).max(limit / 4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_files_for_all_else() {
        assert_eq!(for_clients(1 << 20, 40), (1 << 19) - 52);
        assert_eq!(for_clients(1024, 60), 450);
        assert_eq!((for_clients(40, 4), for_clients(1, 0)), (10, 1), "whatever there is");
    }
}
