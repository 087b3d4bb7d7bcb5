//! How the process ends: the exit code tells scripts what went wrong.

use std::error::Error;
use std::io;
use std::process::{self, ExitCode};

use clap::Command;
use clap::error::{ContextKind, ContextValue};
use simshard_admin::AdminError;
use simshard_backup::BackupError;
use simshard_batch::evaluate::EvaluateError;
use simshard_batch::{JobError, OutputError};
use simshard_bench::BadSettings;
use simshard_client::ClientError;
use simshard_cluster::{MetadataError, MetadataErrorKind};
use simshard_input::{InputError, WithoutParquet};
use simshard_node::{RegistrationError, ServeError};
use simshard_runtime::logging::LoggingError;
use simshard_runtime::terminal::{escaped, is_obeyed};
use simshard_storage::{OpenError, ReadError};

use crate::checkpoint::CheckpointError;
use crate::commands::find::missing::MissingNodes;
use crate::say::warn;

/// Something failed. The same command may succeed later.
pub const FAILURE: u8 = 1;

/// The input or the arguments are wrong: the same command fails again.
pub const BAD_INPUT: u8 = 2;

/// Arguments that contradict each other or the input; ends with [`BAD_INPUT`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The exit code for an error; `None` if there is nothing to complain about.
#[must_use]
pub fn code(error: &anyhow::Error) -> Option<u8> {
    for cause in error.chain() {
        if cause.is::<InputError>() || cause.is::<UsageError>() || cause.is::<LoggingError>() {
            return Some(BAD_INPUT);
        }
        if cause.is::<WithoutParquet>()
            || cause.is::<BadSettings>()
            || cause.downcast_ref().is_some_and(JobError::is_bad_input)
            || cause
                .downcast_ref()
                .is_some_and(EvaluateError::is_bad_input)
            || cause
                .downcast_ref()
                .is_some_and(OutputError::is_bad_argument)
            || cause
                .downcast_ref()
                .is_some_and(BackupError::is_bad_argument)
            || cause
                .downcast_ref()
                .is_some_and(CheckpointError::is_bad_argument)
        {
            return Some(BAD_INPUT);
        }
        let refused = |error: &ClientError| error.is_bad_request();
        if cause.downcast_ref().is_some_and(refused) {
            return Some(BAD_INPUT);
        }
        if cause.downcast_ref().is_some_and(is_operators_mistake)
            || cause.downcast_ref().is_some_and(is_bad_operation)
            || cause.downcast_ref().is_some_and(is_bad_directory)
            || cause.downcast_ref().is_some_and(is_bad_role)
            || cause.downcast_ref().is_some_and(is_bad_registration)
        {
            return Some(BAD_INPUT);
        }
    }
    // The reader of our output has seen enough, as in `simshard find | head`.
    (!is_broken_pipe(error)).then_some(FAILURE)
}

/// Whether the reader of our output has gone.
#[must_use]
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let errors = error.chain().filter_map(<dyn Error>::downcast_ref);
    let mut kinds = errors.map(io::Error::kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Whether the same command fails until the operator mends something, or asks for something else.
const fn is_operators_mistake(error: &MetadataError) -> bool {
    match error.kind() {
        MetadataErrorKind::Refusal | MetadataErrorKind::Mistake => true,
        MetadataErrorKind::OfCorpus | MetadataErrorKind::Race | MetadataErrorKind::Failure => false,
    }
}

/// Whether an operation on a cluster is another one than the operator may ask for.
fn is_bad_operation(error: &AdminError) -> bool {
    match error {
        AdminError::UnknownNode(_) | AdminError::Impossible(_) => true,
        AdminError::Refused(_) | AdminError::OtherOperator | AdminError::Unfinished { .. } => false,
        AdminError::Metadata(error) => is_operators_mistake(error),
    }
}

/// Whether a node cannot start as the operator asked for it.
fn is_bad_role(error: &ServeError) -> bool {
    match error {
        ServeError::Metadata(error) => is_operators_mistake(error),
        ServeError::Open(error) => is_bad_directory(error),
        ServeError::Registration(error) => is_bad_registration(error),
        ServeError::UnknownNode { .. } => true,
        ServeError::Threads(_)
        | ServeError::Storage(_)
        | ServeError::Records(_)
        | ServeError::Stopped
        | ServeError::Transport(_) => false,
    }
}

/// Whether a node may not go on with the directory that it was given.
fn is_bad_registration(error: &RegistrationError) -> bool {
    match error {
        RegistrationError::Stale { .. } | RegistrationError::Replaced { .. } => true,
        // It may end, or be started again.
        RegistrationError::Runs { .. } | RegistrationError::Removed => false,
        RegistrationError::Kept { refused, .. } => is_bad_registration(refused),
        RegistrationError::Metadata(error) => is_operators_mistake(error),
        RegistrationError::Open(error) => is_bad_directory(error),
    }
}

/// Whether another data directory should have been given. One that is damaged is the right one.
fn is_bad_directory(error: &OpenError) -> bool {
    match error {
        OpenError::NoStore { .. }
        | OpenError::OtherShards { .. }
        | OpenError::NoRecords { .. }
        | OpenError::OtherRecords { .. }
        | OpenError::Occupied { .. }
        | OpenError::Manifest(ReadError::Foreign { .. } | ReadError::Newer { .. }) => true,
        OpenError::Io { source, .. } | OpenError::Manifest(ReadError::Io { source, .. }) => {
            is_bad_path(source)
        }
        OpenError::Manifest(
            ReadError::ShardAbsent(_) | ReadError::OtherStore { .. } | ReadError::Corrupt { .. },
        )
        | OpenError::Incarnations(_)
        | OpenError::Segment(_)
        | OpenError::Locked { .. }
        | OpenError::Failed { .. }
        | OpenError::NoManifest { .. }
        | OpenError::Write(_)
        | OpenError::Log(_)
        | OpenError::HasWriter
        | OpenError::Threads(_) => false,
    }
}

/// Whether the system says that a path cannot be what it is given for.
fn is_bad_path(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Says what went wrong on standard error, with the reason by which the pages know it.
#[must_use]
pub fn report(error: &anyhow::Error) -> ExitCode {
    let Some(code) = code(error) else {
        return ExitCode::SUCCESS;
    };
    let reason = error.chain().find_map(|cause| {
        let missing = cause.downcast_ref().map(|MissingNodes(error)| error);
        cause.downcast_ref::<ClientError>().or(missing)?.reason()
    });
    let reason = reason.map(|reason| format!(" ({})", reason.name()));
    warn(format!("error: {error:#}{}", reason.unwrap_or_default()));
    ExitCode::from(code)
}

/// Ends the process where its arguments are wrong, or ask for help or the version. Help that cannot be written is an
/// error, as any other output.
pub(crate) fn end_with(error: clap::Error) -> ! {
    let error = shown(error);
    let code = match error.print() {
        Ok(()) => error.exit_code(),
        Err(unwritten) if unwritten.kind() == io::ErrorKind::BrokenPipe => error.exit_code(),
        Err(unwritten) => {
            warn(format!(
                "error: cannot write to standard output: {unwritten}"
            ));
            FAILURE.into()
        }
    };
    process::exit(code)
}

/// The same command and verbs, whose errors show the usage that their help shows. That of clap repeats the options that
/// are given, also those that the environment gives.
#[must_use]
pub(crate) fn with_usage_of_help(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    command
        .override_usage(usage)
        .mut_subcommands(with_usage_of_help)
}

/// An error about the arguments, with what it quotes of them escaped.
#[must_use]
pub(crate) fn shown(mut error: clap::Error) -> clap::Error {
    let quoted: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| Some((kind, escaped_value(value)?)))
        .collect();
    if !quoted.is_empty() {
        // Hints quote arguments too, among colours of their own.
        error.remove(ContextKind::Suggested);
    }
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
    error
}

/// The replacement of a value that a terminal would interpret.
fn escaped_value(value: &ContextValue) -> Option<ContextValue> {
    if let ContextValue::String(text) = value
        && text.contains(is_obeyed)
    {
        return Some(ContextValue::String(escaped(text).into_owned()));
    }
    if let ContextValue::Strings(texts) = value
        && texts.iter().any(|text| text.contains(is_obeyed))
    {
        let shown = texts.iter().map(|text| escaped(text).into_owned());
        return Some(ContextValue::Strings(shown.collect()));
    }
    None
}
