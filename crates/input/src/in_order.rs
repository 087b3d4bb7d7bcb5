//! All cores at work on batches, results in the order of the input.
//!
//! ```text
//!     read     |  wave 1  |  wave 2  |  wave 3  |
//!     work                |  wave 1  |  wave 2  |  wave 3  |
//!     take                           1          2          3
//! ```
//!
//! # Invariants
//! - I4: at most two waves are in memory, each of [`WAVE_BYTES`] and a record more, with what was
//!   made of one of them.

use rayon::prelude::*;

use crate::batches::{Batch, Batches};
use crate::chunk::READ_BYTES;
use crate::error::InputError;

/// Bytes worked on together, in one wave.
pub(crate) const WAVE_BYTES: usize = 16 * READ_BYTES;

/// Batches of one wave, where they are small because the source is slow.
const WAVE_BATCHES: usize = 64;

/// Batches read together, and why no more follow.
#[derive(Default)]
struct Wave {
    batches: Vec<Batch>,
    error: Option<InputError>,
}

/// Does `work` with each batch, on all cores, while the next batches are read. It hands the results
/// to `take` in the order of the input, several at once, until that says `false`. What cannot be
/// read is the last of them.
///
/// # Errors
/// Those of `take`.
pub(crate) fn for_each<T: Send, E>(
    batches: &mut Batches,
    work: impl Fn(&Batch) -> T + Sync,
    mut take: impl FnMut(Vec<Result<T, InputError>>) -> Result<bool, E>,
) -> Result<(), E> {
    let mut wave = read(batches);
    while !wave.is_empty() {
        let last = wave.error.is_some();
        let (next, done) = rayon::join(
            || if last { Wave::default() } else { read(batches) },
            || wave.batches.par_iter().map(&work).map(Ok).collect(),
        );
        let mut done: Vec<Result<T, InputError>> = done;
        done.extend(wave.error.map(Err));
        // Before `take`, which may need this memory once nothing more is to be read.
        for batch in wave.batches {
            if !next.is_empty() {
                batches.reuse(batch);
            }
        }
        if !take(done)? {
            return Ok(());
        }
        wave = next;
    }
    Ok(())
}

impl Wave {
    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.error.is_none()
    }
}

fn read(batches: &mut Batches) -> Wave {
    let mut wave = Wave::default();
    let mut bytes = 0;
    while bytes < WAVE_BYTES && wave.batches.len() < WAVE_BATCHES {
        match batches.next(READ_BYTES) {
            None => break,
            Some(Ok(batch)) => {
                bytes += batch.bytes();
                wave.batches.push(batch);
            }
            Some(Err(error)) => {
                wave.error = Some(error);
                break;
            }
        }
    }
    wave
}
