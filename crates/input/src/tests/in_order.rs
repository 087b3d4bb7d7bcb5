//! Batches on all cores.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::Check;
use crate::in_order::WAVE_BYTES;

/// Counts what is read of it.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicUsize>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
}

fn open(stdin: impl Read + Send + 'static) -> Input {
    let needs = Needs {
        check: Check::AsRead,
        ..Needs::CLIENT
    };
    Input::open_with_stdin(&args(Format::Lines, &[]), needs, Box::new(stdin)).unwrap()
}

/// I4.
#[test]
fn no_more_is_read_than_two_waves_ahead() {
    let bytes = Arc::new(AtomicUsize::new(0));
    let stdin = Counted {
        inner: Cursor::new("a line of text\n".repeat(4 << 20)),
        bytes: bytes.clone(),
    };
    let mut taken = 0;
    let mut waves = 0;
    let done: Result<(), InputError> = open(stdin).for_each_batch(
        |batch| {
            let mut documents = 0;
            batch.parse(|_| documents += 1);
            documents
        },
        |batches| {
            let ahead = bytes.load(Ordering::Relaxed) - taken;
            assert!(ahead <= 2 * WAVE_BYTES + (1 << 20), "{ahead} bytes ahead");
            for documents in batches {
                taken += documents? * "a line of text\n".len();
            }
            waves += 1;
            Ok(true)
        },
    );
    done.unwrap();
    assert_eq!(taken, 15 * (4 << 20));
    assert!(waves > 4, "{waves} waves");
}

#[test]
fn what_cannot_be_read_comes_after_all_that_can() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable cut"))
        }
    }
    let mut seen = Vec::new();
    let input = open(Cursor::new("a\nb\nc").chain(Broken));
    let done: Result<(), InputError> = input.for_each_batch(
        |batch| {
            let mut documents = 0;
            batch.parse(|_| documents += 1);
            documents
        },
        |batches| {
            let texts = batches
                .into_iter()
                .map(|batch| batch.map_err(|error| error.to_string()));
            seen.extend(texts);
            Ok(true)
        },
    );
    done.unwrap();
    let expected = Err("cannot read <stdin>: cable cut".to_owned());
    assert_eq!(seen, [Ok(2), expected]);
}
