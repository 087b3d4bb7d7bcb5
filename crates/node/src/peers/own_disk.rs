//! Whether the disk of this node answers. Pure.
//!
//! # Invariants
//! - PE8: this process counts its own looks, so its disk does not hang because the process was away.

/// The disk hangs if it has not answered one batch of changes for this number of looks: about five seconds.
const PATIENT_LOOKS: u32 = 25;

/// What this process saw of its own disk.
#[derive(Debug, Default)]
pub(super) struct OwnDisk {
    /// The batch that was on its way at the last look.
    batch: Option<u64>,
    /// The number of looks in a row that saw it.
    looks: u32,
}

impl OwnDisk {
    /// Looks once more. Answers whether the disk hangs.
    pub(super) fn hangs(&mut self, batch: Option<u64>) -> bool {
        self.looks = match batch {
            None => 0,
            Some(_) if batch == self.batch => self.looks.saturating_add(1),
            Some(_) => 1,
        };
        self.batch = batch;
        self.looks > PATIENT_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PE8.
    #[test]
    fn a_disk_hangs_once_it_has_not_answered_a_batch_for_many_looks() {
        let mut disk = OwnDisk::default();
        for look in 0..PATIENT_LOOKS * 3 {
            assert!(!disk.hangs(Some(u64::from(look / PATIENT_LOOKS))), "{look}");
        }
        assert!(!disk.hangs(None));
        for look in 0..PATIENT_LOOKS {
            assert!(!disk.hangs(Some(9)), "{look}");
        }
        assert!(disk.hangs(Some(9)));
        assert!(!disk.hangs(Some(10)));
    }
}
