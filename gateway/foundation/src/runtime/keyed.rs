//! A hash for tables that every call looks into: the standard one takes two hundred instructions for an address or a name.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Hashes what is short, with a secret key for each table: nobody can choose what falls together in it.
#[derive(Debug, Clone)]
pub struct Keyed {
    begin: u64,
    factor: u64,
    end: u64,
}

impl Default for Keyed {
    fn default() -> Self {
        let random = RandomState::new();
        // An even factor would lose a bit.
        let [begin, factor, end] = [0, 1, 2].map(|at| random.hash_one(at));
        Self { begin, factor: factor | 1, end: end | 1 }
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folding;

    fn build_hasher(&self) -> Folding {
        Folding { state: self.begin, factor: self.factor, end: self.end }
    }
}

/// Multiplies by a secret factor and folds the halves of the product, once a word and once at the end: neighbours stand apart only
/// after the second time.
#[derive(Debug)]
pub struct Folding {
    state: u64,
    factor: u64,
    end: u64,
}

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Folding {
    fn write_u64(&mut self, word: u64) {
        self.state = folded(self.state ^ word, self.factor);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u128(&mut self, word: u128) {
        self.write_u64(word as u64);
        self.write_u64((word >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn finish(&self) -> u64 {
        folded(self.state, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::net::IpAddr;

    #[test]
    fn neighbours_do_not_fall_together_and_another_table_has_another_key() {
        let keys = Keyed::default();
        let (mut whole, mut places, mut tags) = (HashSet::new(), HashSet::new(), HashSet::new());
        for at in 0..100_000_u32 {
            let hash = keys.hash_one(IpAddr::from(at.to_be_bytes()));
            whole.insert(hash);
            // What a table goes by: the lowest bits for the place, the highest seven beside it.
            places.insert(hash % 131_072);
            tags.insert(hash >> 57);
        }
        assert_eq!((whole.len(), tags.len()), (100_000, 128));
        assert!(places.len() > 65_000, "{} of about 70,000 places", places.len());
        assert_ne!(keys.hash_one("a"), Keyed::default().hash_one("a"));
        let texts: HashSet<_> = (0..10_000).map(|at| keys.hash_one(format!("u{at}__tool"))).collect();
        assert_eq!(texts.len(), 10_000);
    }
}
