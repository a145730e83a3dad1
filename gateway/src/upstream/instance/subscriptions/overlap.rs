//! What the streams of changes tell that were replaced and are heard for a while more: each change is told once.

use std::collections::BTreeSet;
use std::sync::Arc;

/// How many resources are remembered for one such stream; what goes beyond may be told twice.
const HELD_MAX: usize = 1024;

/// The streams that were replaced, oldest first. An update that comes on one of them comes on the newer stream too, unless
/// the upstream had not taken that one by then: it is held, and told at the end where the newer one has not told it.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    streams: Vec<Fading>,
}

#[derive(Debug)]
struct Fading {
    id: u64,
    /// Heard here, and on no newer stream so far.
    held: BTreeSet<Arc<str>>,
    /// Heard on a newer stream: whatever this one told or will tell of them came before, or comes there too.
    told: BTreeSet<Arc<str>>,
}

impl Overlap {
    /// A stream was replaced; streams are numbered in their order.
    pub(crate) fn begin(&mut self, id: u64) {
        self.streams.push(Fading { id, held: BTreeSet::new(), told: BTreeSet::new() });
    }

    /// Whether an update that came on this stream is told now.
    pub(crate) fn is_told(&mut self, uri: &Arc<str>, on: Option<u64>) -> bool {
        let Some(on) = on else { return true };
        for older in self.streams.iter_mut().filter(|stream| stream.id < on) {
            older.held.remove(uri);
            if older.told.len() < HELD_MAX {
                older.told.insert(uri.clone());
            }
        }
        let Some(fading) = self.streams.iter_mut().find(|stream| stream.id == on) else { return true };
        let is_held = fading.held.len() < HELD_MAX;
        if is_held && !fading.told.contains(uri) {
            fading.held.insert(uri.clone());
        }
        !is_held
    }

    /// A stream is no longer heard: what came on it alone, and is to be told now.
    pub(crate) fn end(&mut self, id: u64) -> BTreeSet<Arc<str>> {
        let at = self.streams.iter().position(|stream| stream.id == id);
        at.map(|at| self.streams.remove(at).held).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_on_both_streams_is_told_once_and_what_came_on_the_older_alone_at_its_end() {
        let mut overlap = Overlap::default();
        let uri = |name: &str| Arc::<str>::from(name);
        overlap.begin(3);
        assert!(overlap.is_told(&uri("a:new first"), Some(4)));
        assert!(!overlap.is_told(&uri("a:new first"), Some(3)));
        assert!(!overlap.is_told(&uri("a:old first"), Some(3)));
        assert!(overlap.is_told(&uri("a:old first"), Some(4)));
        assert!(!overlap.is_told(&uri("a:old alone"), Some(3)));
        assert!(overlap.is_told(&uri("a:untagged"), None));
        assert_eq!(overlap.end(3), BTreeSet::from([uri("a:old alone")]));
        assert!(overlap.is_told(&uri("a:old alone"), Some(4)), "nothing is remembered of it");
    }

    #[test]
    fn of_several_older_streams_the_newest_that_heard_tells() {
        let mut overlap = Overlap::default();
        let uri = Arc::<str>::from("a:1");
        overlap.begin(3);
        overlap.begin(4);
        assert!(!overlap.is_told(&uri, Some(3)));
        assert!(!overlap.is_told(&uri, Some(4)));
        assert!(overlap.end(3).is_empty());
        assert_eq!(overlap.end(4), BTreeSet::from([uri]));
    }
}
