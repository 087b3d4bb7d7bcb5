//! Whole files, with some bytes put wrong.

use bolero::{Driver, ValueGenerator};

use super::splice::{Bytes, damage, pick};

/// Damages whole files.
pub(super) struct Damaged {
    pub(super) victims: Vec<Vec<u8>>,
    /// What is put into them, beside random bytes.
    pub(super) pieces: Vec<Vec<u8>>,
}

impl ValueGenerator for Damaged {
    type Output = Bytes;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Bytes> {
        let mut bytes = pick(driver, &self.victims)?.clone();
        damage(driver, &mut bytes, &self.pieces)?;
        Some(Bytes(bytes))
    }
}
