//! A disk that does not answer.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Fixture, Store, fingerprint, insert, owned, small};
use crate::tests::ForgetfulDirectory;
use crate::writer::Awaited;

/// Fails if this has not happened by then.
const SOON: Duration = Duration::from_secs(20);

fn happens_soon(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        let is_so = is_so();
        if is_so || begun.elapsed() > SOON {
            return is_so;
        }
        thread::yield_now();
    }
}

/// The log has nothing to write then: it waits until what was written before is applied.
#[test]
fn a_write_of_a_flush_is_awaited_once_changes_wait_for_it() {
    let directory = ForgetfulDirectory::default();
    let store = Store::open_in(Arc::new(directory.clone()), owned().into(), small()).unwrap();
    let fixture = Fixture::start(store);
    fixture.create();
    directory.hold_whole_files();
    let load = || {
        for version in 1..400 {
            let documents = (0..20).map(|n| (fingerprint(version * 20 + n), "an id"));
            insert(&fixture, version, &documents.collect::<Vec<_>>());
        }
    };
    let awaits_write = || matches!(fixture.writer.awaited(), Some(Awaited::Write(_)));
    thread::scope(|scope| {
        let loaded = scope.spawn(load);
        let has_awaited = happens_soon(awaits_write);
        // Writes before the one that is held end soon.
        let stays = || {
            let awaited = fixture.writer.awaited();
            (0..1_000_000).all(|_| fixture.writer.awaited() == awaited) && awaits_write()
        };
        let has_stayed = happens_soon(stays);
        let is_loaded = loaded.is_finished();
        directory.release_whole_files();
        assert!(has_awaited && has_stayed && !is_loaded);
    });
    assert!(happens_soon(|| fixture.writer.awaited().is_none()));
}
