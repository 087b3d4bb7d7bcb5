//! How the process ends: the exit code tells scripts what went wrong.

use std::io;
use std::process::ExitCode;

use simshard_client::ClientError;

use crate::input::InputError;

/// Something failed.
pub const FAILURE: u8 = 1;

/// The input or the arguments are wrong: nothing was done.
pub const BAD_INPUT: u8 = 2;

/// Arguments that contradict each other or the input; ends with [`BAD_INPUT`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The exit code for an error; `None` if there is nothing to complain about.
#[must_use]
pub fn code(error: &anyhow::Error) -> Option<u8> {
    for cause in error.chain() {
        if cause.is::<InputError>() || cause.is::<UsageError>() {
            return Some(BAD_INPUT);
        }
        let refused = |error: &ClientError| error.is_bad_request();
        if cause.downcast_ref().is_some_and(refused) {
            return Some(BAD_INPUT);
        }
        // Whoever reads our output has seen enough, as in `simshard find | head`.
        let broken_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if cause.downcast_ref().is_some_and(broken_pipe) {
            return None;
        }
    }
    Some(FAILURE)
}

/// Says what went wrong on standard error.
#[must_use]
pub fn report(error: &anyhow::Error) -> ExitCode {
    let Some(code) = code(error) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("error: {error:#}");
    ExitCode::from(code)
}
