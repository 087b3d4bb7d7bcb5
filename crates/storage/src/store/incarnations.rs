//! The file `incarnations`: the last starts of a store that registers itself (`FORMAT.md`, section Incarnations).

use std::io;
use std::sync::Arc;

use simshard_topology::replication::{HeldIncarnations, Incarnation, StoreId};
use uuid::Uuid;

use super::OpenError;
use crate::bytes::{Bytes, Put};
use crate::directory::{Directory, Opening};
use crate::error::{Fault, ReadError, WriteError};
use crate::files;
use crate::seal::{SEAL_BYTES, seal, unseal};

/// The name of the file.
const NAME: &str = "incarnations";

const MAGIC: [u8; 8] = *b"SIMSHINC";

/// The version of its bytes.
const FORMAT: u32 = 1;

const BYTES: usize = 64 + SEAL_BYTES;

/// The last starts of a store; `None` if it never registered itself.
pub(super) fn read(
    directory: &dyn Directory,
    store: StoreId,
) -> Result<Option<HeldIncarnations>, OpenError> {
    let path = directory.path().join(NAME);
    let opened = directory.open(NAME, Opening::Read);
    match opened.and_then(|file| file.read(usize::MAX)) {
        Ok(bytes) => {
            let held = decode(&bytes, store).map_err(|fault| fault.in_file(&path));
            held.map(Some).map_err(OpenError::Incarnations)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(OpenError::Incarnations(ReadError::Io { path, source })),
    }
}

/// Puts these in the place of those before. When this returns, that lasts.
pub(super) fn write(
    directory: &Arc<dyn Directory>,
    store: StoreId,
    held: &HeldIncarnations,
) -> Result<(), WriteError> {
    files::replace(directory, NAME, &encode(store, held))
}

fn encode(store: StoreId, held: &HeldIncarnations) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(BYTES);
    buffer.put(&MAGIC);
    buffer.put_u32(FORMAT);
    buffer.put_u32(held.before.is_some().into());
    buffer.put(&store.0);
    let none = Incarnation {
        number: 0,
        nonce: 0,
    };
    for incarnation in [held.newest, held.before.unwrap_or(none)] {
        buffer.put_u64(incarnation.number);
        buffer.put_u64(incarnation.nonce);
    }
    seal(&mut buffer, 0);
    buffer
}

/// Checks the bytes of a file and takes them apart.
fn decode(bytes: &[u8], store: StoreId) -> Result<HeldIncarnations, Fault> {
    let mut rest = Bytes(bytes);
    if rest.array() != Some(MAGIC) {
        return Err(Fault::Foreign { expected: NAME });
    }
    let version = rest.u32().unwrap_or_default();
    if version > FORMAT {
        let reads = FORMAT;
        return Err(Fault::Newer { version, reads });
    }
    if bytes.len() != BYTES {
        let what = "the file does not have its length";
        return Err(Fault::damaged(bytes.len(), what));
    }
    if unseal(bytes).is_none() {
        return Err(Fault::damaged(0, "the checksum does not match"));
    }
    let has_before = rest.u32();
    let found = StoreId(rest.array().unwrap_or_default());
    if found != store {
        return Err(Fault::OtherStore {
            found: Uuid::from_bytes(found.0),
            expected: Uuid::from_bytes(store.0),
        });
    }
    let mut incarnation = || {
        let number = rest.u64()?;
        let nonce = rest.u64()?;
        Some(Incarnation { number, nonce })
    };
    match (version, has_before, incarnation(), incarnation()) {
        (FORMAT, Some(0), Some(newest), Some(_)) => Ok(HeldIncarnations {
            before: None,
            newest,
        }),
        (FORMAT, Some(1), Some(newest), before) => Ok(HeldIncarnations { before, newest }),
        _ => Err(Fault::damaged(8, "these are no incarnations")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fastrand::Rng;
    use proptest::prelude::*;
    use simshard_topology::replication::renewed;

    use super::*;
    use crate::store::Store;
    use crate::tests::{ForgetfulDirectory, compare_with_golden, fuzz_cases};

    const STORE: StoreId = StoreId([0x5A; 16]);

    fn first() -> HeldIncarnations {
        renewed(None, None, 0x0123_4567_89ab_cdef)
    }

    fn second() -> HeldIncarnations {
        HeldIncarnations {
            before: Some(first().newest),
            newest: Incarnation {
                number: 2,
                nonce: u64::MAX,
            },
        }
    }

    #[test]
    fn the_bytes_are_as_they_were() {
        compare_with_golden("incarnations", &encode(STORE, &second()));
        for held in [first(), second()] {
            assert_eq!(decode(&encode(STORE, &held), STORE).unwrap(), held);
        }
    }

    #[test]
    fn what_is_no_file_of_this_store_is_refused() {
        let good = encode(STORE, &second());
        let resealed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes.truncate(BYTES - SEAL_BYTES);
            seal(&mut bytes, 0);
            bytes
        };
        let cases = [
            (resealed(0, b'x'), "is no incarnations"),
            (resealed(8, 2), "has format version 2"),
            (resealed(8, 0), "these are no incarnations"),
            (resealed(12, 2), "these are no incarnations"),
            (resealed(16, 0), "belongs to store"),
            ([&good[..], b"x"].concat(), "does not have its length"),
        ];
        for (bytes, expected) in cases {
            let fault = decode(&bytes, STORE).unwrap_err();
            let told = fault.in_file(Path::new("f")).to_string();
            assert!(told.contains(expected), "{told}");
        }
    }

    proptest! {
        #![proptest_config(fuzz_cases())]

        #[test]
        fn a_file_that_was_damaged_is_refused(at in 0..BYTES, bit in 0..8_u32, cut in any::<bool>()) {
            let good = encode(STORE, &second());
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            prop_assert!(decode(&bytes, STORE).is_err());
            if cut {
                prop_assert!(decode(&good[..at], STORE).is_err());
            }
        }
    }

    /// However the power fails while a start is kept, the directory has that start or the one before.
    #[test]
    fn a_start_that_is_being_kept_is_kept_or_not() {
        let memory = ForgetfulDirectory::default();
        let mut claim = Store::claim_in(Arc::new(memory.clone())).unwrap();
        claim.keep(first()).unwrap();
        drop(claim);
        for sync_point in 0.. {
            let copy = memory.after_kill();
            copy.crash_at_sync(sync_point);
            let mut claim = Store::claim_in(Arc::new(copy.clone())).unwrap();
            let _ = claim.keep(second());
            let is_over = !copy.has_crashed();
            drop(claim);
            let mut rng = Rng::with_seed(sync_point as u64);
            for _ in 0..20 {
                let image = copy.crash_image(&mut rng);
                let claim = Store::claim_in(Arc::new(image)).unwrap();
                let held = claim.incarnations().copied();
                let expected = [Some(first()), Some(second())];
                assert!(expected.contains(&held), "{held:?}");
                if is_over {
                    assert_eq!(held, Some(second()));
                }
            }
            if is_over {
                return;
            }
        }
    }
}
