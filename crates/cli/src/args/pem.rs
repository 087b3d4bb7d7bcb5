//! Certificates and keys in files, which flags name.

use std::fs;
use std::path::Path;

use crate::exit::UsageError;

/// What a file holds.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read(path: &Path) -> Result<String, UsageError> {
    let text = fs::read_to_string(path);
    text.map_err(|error| UsageError(format!("cannot read {}: {error}", path.display())))
}

/// A certificate and its private key, each with the flag that names its file.
///
/// # Errors
/// If one goes without the other, or cannot be read.
pub(super) fn identity(
    (cert_flag, certificate): (&str, Option<&Path>),
    (key_flag, key): (&str, Option<&Path>),
) -> Result<Option<(String, String)>, UsageError> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((read(certificate)?, read(key)?))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing(key_flag, cert_flag)),
        (None, Some(_)) => Err(missing(cert_flag, key_flag)),
    }
}

/// A flag that another one needs.
pub(crate) fn missing(flag: &str, beside: &str) -> UsageError {
    UsageError(format!("{flag} is missing beside {beside}"))
}
