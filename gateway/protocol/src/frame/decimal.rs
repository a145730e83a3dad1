//! The digits of a number, without an allocation.

/// A number in decimal without an allocation.
pub struct Decimal([u8; 20], usize);

impl Decimal {
    /// The digits of `number`.
    pub fn of(mut number: u64) -> Self {
        let (mut digits, mut at) = ([0; 20], 20);
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Self(digits, at);
            }
        }
    }

    /// The digits as text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0[self.1..]
    }
}
