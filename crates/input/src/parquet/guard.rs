//! The wall around the library's decoders.
//!
//! They take a page at its word and panic where it contradicts itself, in slices out of range and
//! unmet assertions. A damaged file is no fault of the program, so here, and nowhere else, a panic
//! becomes an error. What panicked is never used again: a reader ends at such an error.
//!
//! A program that aborts on panics has no such wall, so it is not built.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::ParquetError as LibraryError;

#[cfg(panic = "abort")]
compile_error!(
    "a damaged Parquet file would end the program: set panic = \"unwind\" in the profile"
);

thread_local! {
    /// Whether this thread is inside the wall.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls into the library; its panic is an error, and prints nothing.
pub(super) fn guarded<T>(
    call: impl FnOnce() -> Result<T, LibraryError>,
) -> Result<T, LibraryError> {
    keep_guarded_panics_quiet();
    GUARDED.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(false);
    match outcome {
        Ok(result) => result,
        Err(panic) => Err(LibraryError::General(format!(
            "its bytes contradict each other ({})",
            words(panic.as_ref())
        ))),
    }
}

/// Puts a hook before the one there is, once, that passes on what happens outside the wall.
fn keep_guarded_panics_quiet() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                usual(info);
            }
        }));
    });
}

fn words(panic: &(dyn Any + Send)) -> &str {
    if let Some(words) = panic.downcast_ref::<String>() {
        return words;
    }
    panic.downcast_ref::<&str>().unwrap_or(&"no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_is_an_error_with_its_words() {
        let outcome: Result<(), _> = guarded(|| panic!("range end {} out of bounds", 5));
        let message = outcome.unwrap_err().to_string();
        assert!(
            message.ends_with("(range end 5 out of bounds)"),
            "{message}"
        );
        assert!(!GUARDED.get());
    }

    #[test]
    fn what_goes_well_passes_through() {
        assert_eq!(guarded(|| Ok(7)).unwrap(), 7);
        let failed: Result<(), _> = guarded(|| Err(LibraryError::EOF("short".to_owned())));
        assert!(failed.unwrap_err().to_string().ends_with("short"));
    }
}
