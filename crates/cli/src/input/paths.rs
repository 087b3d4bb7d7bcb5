//! Paths as they were given, patterns expanded.

use std::path::PathBuf;

use glob::{MatchOptions, Paths};

use super::InputError;

/// As shells have it: a wildcard matches neither `/` nor the dot of a hidden file.
const AS_SHELLS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The paths that `given` mean, in its order, those of one pattern sorted. What exists is no
/// pattern, whatever its name.
pub(super) fn expand(given: &[PathBuf]) -> Result<Vec<PathBuf>, InputError> {
    let mut paths = Vec::with_capacity(given.len());
    for path in given {
        match path.to_str().filter(|path| path.contains(['*', '?', '['])) {
            Some(pattern) if !path.exists() => paths.extend(matches(pattern)?),
            Some(_) | None => paths.push(path.clone()),
        }
    }
    Ok(paths)
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>, InputError> {
    let found = glob::glob_with(pattern, AS_SHELLS);
    let found: Paths = found.map_err(|error| InputError::BadPattern {
        pattern: pattern.to_owned(),
        reason: error.msg,
    })?;
    let mut paths = Vec::new();
    for path in found {
        paths.push(path.map_err(|error| InputError::Unreadable {
            file: error.path().display().to_string(),
            error: error.into(),
        })?);
    }
    if paths.is_empty() {
        let pattern = pattern.to_owned();
        return Err(InputError::NoMatch { pattern });
    }
    paths.sort();
    Ok(paths)
}
