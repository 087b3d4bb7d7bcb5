//! Logging: `tracing` events to stderr, for people or as JSON lines.
//!
//! `SIMSHARD_LOG` filters them (`debug`, `simshard_node=trace,info`, …); unset or
//! blank means what the caller prefers. Standard output is left to the data of
//! commands.

use std::env;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::str::FromStr;

pub use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::util::SubscriberInitExt;

use crate::terminal::{escaped, escaped_json};

/// The environment variable that filters log events.
pub const FILTER_VARIABLE: &str = "SIMSHARD_LOG";

/// How log events are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One line an event for people, coloured on a terminal.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be set up.
///
/// Messages are complete: they include the underlying reason, so `source()` is empty.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum LoggingError {
    #[error(
        "{FILTER_VARIABLE} is {value:?}: {reason}; write a level such as info, \
         or targets with levels such as simshard_node=debug,info"
    )]
    BadFilter { value: String, reason: String },
    #[error("unknown log format {0:?}, use human or json")]
    UnknownFormat(String),
}

impl FromStr for LogFormat {
    type Err = LoggingError;

    fn from_str(word: &str) -> Result<Self, LoggingError> {
        match word {
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            _ => Err(LoggingError::UnknownFormat(word.to_owned())),
        }
    }
}

/// Sends the events of this process to stderr: those that `SIMSHARD_LOG` lets
/// pass, or, where it is not set, `default` does. Later calls change nothing:
/// the first one, or a subscriber that a test installed, stays.
///
/// # Errors
/// When `SIMSHARD_LOG` does not parse.
pub fn init(format: LogFormat, default: Level) -> Result<(), LoggingError> {
    let variable = env::var_os(FILTER_VARIABLE).unwrap_or_default();
    let filter = parse_filter(&variable.to_string_lossy(), default)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // The reader of standard error may go away. That must not end this process, and reporting
        // it on standard error would.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none());
    // An error here means that a subscriber is in place already, which is fine.
    let _already_set = match format {
        LogFormat::Human => builder.fmt_fields(OneLine).finish().try_init(),
        LogFormat::Json => builder
            .json()
            .with_writer(|| EscapedJson(io::stderr()))
            .finish()
            .try_init(),
    };
    Ok(())
}

/// Formats the message and fields of an event without what a terminal would obey: they quote paths and messages of other
/// processes.
struct OneLine;

impl<'writer> FormatFields<'writer> for OneLine {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut plain = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut plain), fields)?;
        writer.write_str(&escaped(&plain))
    }
}

/// Passes on events as JSON, each written whole, without what a terminal would obey.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.0.write_all(escaped_json(&text).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The filter that the variable's value asks for.
fn parse_filter(value: &str, default: Level) -> Result<EnvFilter, LoggingError> {
    let value = value.trim();
    if value.is_empty() {
        return Ok(EnvFilter::default().add_directive(default.into()));
    }
    EnvFilter::builder()
        .parse(value)
        .map_err(|error| LoggingError::BadFilter {
            value: value.to_owned(),
            reason: error.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calling_init_twice_is_harmless() {
        init(LogFormat::Human, Level::INFO).unwrap();
        init(LogFormat::Json, Level::WARN).unwrap();
        tracing::debug!("still standing");
    }

    #[test]
    fn an_unset_or_blank_filter_means_the_default() {
        let filter = |value, default| parse_filter(value, default).unwrap().to_string();
        assert_eq!(filter("", Level::INFO), "info");
        assert_eq!(filter("  ", Level::WARN), "warn");
    }

    #[test]
    fn a_filter_can_name_targets() {
        let filter = parse_filter("simshard_node=debug,warn", Level::INFO).unwrap();
        assert_eq!(filter.to_string(), "simshard_node=debug,warn");
    }

    #[test]
    fn a_bad_filter_is_shown_with_what_to_write() {
        let message = parse_filter("a=b=c", Level::INFO).unwrap_err().to_string();
        assert!(message.contains("SIMSHARD_LOG"), "{message}");
        assert!(message.contains("a=b=c"), "{message}");
    }

    #[test]
    fn formats_are_read_by_name() {
        assert_eq!("human".parse::<LogFormat>().unwrap(), LogFormat::Human);
        assert_eq!("json".parse::<LogFormat>().unwrap(), LogFormat::Json);
        let message = "xml".parse::<LogFormat>().unwrap_err().to_string();
        assert!(
            message.contains("xml") && message.contains("human or json"),
            "{message}"
        );
    }
}
