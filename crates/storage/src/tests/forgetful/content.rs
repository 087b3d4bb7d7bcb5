//! A file as readers see it and as the disk has it: what is synced, what a failed sync gave up, and what a crash leaves.

use fastrand::Rng;

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// What every reader sees.
    pub(super) now: Vec<u8>,
    /// What is on disk for sure.
    pub(super) synced: Vec<u8>,
    /// Bytes that a failed sync did not bring to the disk, and that no other one will try to.
    given_up: Vec<bool>,
}

impl Content {
    pub(super) fn on_disk(now: Vec<u8>) -> Self {
        Self {
            synced: now.clone(),
            given_up: vec![false; now.len()],
            now,
        }
    }

    pub(super) fn resize(&mut self, length: usize) {
        self.now.resize(length, 0);
        self.given_up.resize(length, false);
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        self.resize(self.now.len().max(end));
        self.now[offset..end].copy_from_slice(bytes);
        self.given_up[offset..end].fill(false);
    }

    /// Brings the file to the disk as it was at some time.
    pub(super) fn sync(&mut self, then: Vec<u8>) {
        let before = std::mem::replace(&mut self.synced, then);
        for (place, byte) in self.synced.iter_mut().enumerate() {
            if self.given_up.get(place) == Some(&true) {
                *byte = before.get(place).copied().unwrap_or_default();
            }
        }
    }

    /// Fails to: as Linux does, it takes for written what was not.
    pub(super) fn give_up(&mut self) {
        for (place, byte) in self.now.iter().enumerate() {
            self.given_up[place] |= self.synced.get(place) != Some(byte);
        }
    }

    /// Pieces of what was written, the others as they were synced last.
    pub(super) fn mixed(&self, piece: usize, rng: &mut Rng) -> Vec<u8> {
        let Self { now, synced, .. } = self;
        let length = if rng.bool() { now.len() } else { synced.len() };
        let mut image = Vec::with_capacity(length);
        while image.len() < length {
            let source = if rng.bool() { now } else { synced };
            let end = (image.len() + piece).min(length);
            let known = source.get(image.len()..end.min(source.len()));
            image.extend_from_slice(known.unwrap_or_default());
            image.resize(end, 0);
        }
        image
    }
}
