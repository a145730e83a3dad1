//! Texts that are made from sealed ones and are none of them: cut, extended, put together from two, with other letters.

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.";

/// Makes them, the same ones for the same number.
pub struct Mutants {
    good: Vec<Vec<u8>>,
    number: u64,
}

impl Mutants {
    /// From these texts, which are ASCII.
    pub fn new<'a>(good: impl IntoIterator<Item = &'a str>, number: u64) -> Self {
        Self { good: good.into_iter().map(|text| text.as_bytes().to_vec()).collect(), number }
    }

    /// A number below this one (SplitMix64).
    fn below(&mut self, end: usize) -> usize {
        self.number = self.number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.number;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % end.max(1)
    }

    fn letter(&mut self) -> u8 {
        ALPHABET[self.below(ALPHABET.len())]
    }

    fn one(&mut self) -> Vec<u8> {
        let [mut text, other] = [(); 2].map(|()| {
            let at = self.below(self.good.len());
            self.good[at].clone()
        });
        for _ in 0..=self.below(3) {
            let at = self.below(text.len());
            match self.below(8) {
                0..3 if at < text.len() => text[at] = self.letter(),
                3 => text.insert(at, self.letter()),
                4 if at < text.len() => drop(text.remove(at)),
                5 => text.truncate(at),
                // The begin of one and the end of the other.
                6 => text.splice(at.., other[at.min(other.len())..].iter().copied()).for_each(drop),
                _ => (0..8).for_each(|_| {
                    let letter = self.letter();
                    text.push(letter);
                }),
            }
        }
        text
    }
}

impl Iterator for Mutants {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let text = self.one();
            if !self.good.contains(&text) {
                return String::from_utf8(text).ok();
            }
        }
    }
}
