//! Configuration files: one TOML file into one serde type, or an error that names
//! the file, the line and what is wrong.
//!
//! The type passed to [`load`] is the raw form. It should carry
//! `#[serde(deny_unknown_fields)]`, so that a misspelt key is an error and not a
//! silently ignored setting, and be turned into a validated type afterwards.
//!
//! Flags and environment variables reach the caller already merged as `Option<T>`
//! (flag first). Make every field of the raw type an `Option<T>` as well, and the
//! order "flag, environment, file, default" is one line:
//! `flag_or_env.or(file).unwrap_or(DEFAULT)`.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::toml_mistake::TomlMistake;

/// Why a configuration file could not be used.
///
/// Messages are complete: they include the underlying reason, so `source()` is empty.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum ConfigError {
    #[error(
        "cannot read configuration file {}: {reason}; check that it exists and is readable UTF-8",
        path.display()
    )]
    Unreadable { path: PathBuf, reason: io::Error },
    #[error(
        "configuration file {} {mistake}; correct this line",
        path.display()
    )]
    Malformed { path: PathBuf, mistake: TomlMistake },
}

/// Reads `path` as TOML into `T`. Blocks on the file, so call it before any
/// async work starts.
///
/// # Errors
/// When the file cannot be read, or does not fit `T`.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|reason| ConfigError::Unreadable {
        path: path.to_owned(),
        reason,
    })?;
    parse(path, &text)
}

/// Reads the text of the file at `path` as TOML into `T`.
///
/// # Errors
/// When it does not fit `T`.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Malformed {
        path: path.to_owned(),
        mistake: TomlMistake::of(text, &error),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        listen: Option<String>,
        window: Option<u32>,
    }

    fn load_text(text: &str) -> Result<Raw, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.toml");
        fs::write(&path, text).unwrap();
        load(&path)
    }

    fn message_for(text: &str) -> String {
        let message = load_text(text).unwrap_err().to_string();
        assert!(message.contains("node.toml"), "{message}");
        message
    }

    #[test]
    fn what_a_message_quotes_stays_on_its_line() {
        let message = message_for("\"l\\tsten\" = 1\n");
        assert!(message.contains(r"`l\tsten`"), "{message}");
        assert!(!message.contains('\t'), "{message}");
    }

    #[test]
    fn a_good_file_loads_and_absent_keys_stay_absent() {
        let raw = load_text("# a comment\nlisten = \"127.0.0.1:7470\"\n").unwrap();
        assert_eq!(
            raw,
            Raw {
                listen: Some("127.0.0.1:7470".to_owned()),
                window: None
            }
        );
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        assert_eq!(
            load_text("").unwrap(),
            Raw {
                listen: None,
                window: None
            }
        );
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let message = message_for("window = 3\n\nlisen = \"x\"\n");
        assert!(message.contains("line 3 column 1"), "{message}");
        assert!(message.contains("lisen"), "{message}");
        assert!(message.contains("listen"), "{message}");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_with_its_line_and_column() {
        let message = message_for("listen = \"é\"\nwindow = \"many\"\n");
        assert!(message.contains("line 2 column 10"), "{message}");
        assert!(message.contains("u32"), "{message}");
    }

    #[test]
    fn broken_syntax_is_named_with_its_line_on_one_line() {
        let message = message_for("window = 3\nlisten = \"open\n");
        assert!(message.contains("line 2"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load::<Raw>(Path::new("/nonexistent/node.toml")).unwrap_err();
        assert!(matches!(error, ConfigError::Unreadable { .. }));
        assert!(error.to_string().contains("/nonexistent/node.toml"));
    }

    #[test]
    fn a_file_that_is_not_utf8_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.toml");
        fs::write(&path, b"listen = \"\xff\"").unwrap();
        let error = load::<Raw>(&path).unwrap_err();
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }
}
