//! The text of this machine that is read where the caller names none.

use std::env;
use std::path::PathBuf;

/// The files and folders that were named, else the sources of the crates that were ever built here.
/// Those are plenty of real text, with near-duplicates in it.
pub(crate) fn files_or_sources(named: &[PathBuf]) -> Vec<PathBuf> {
    if named.is_empty() {
        return vec![sources()];
    }
    named.to_vec()
}

fn sources() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    home.map(|home| home.join("registry").join("src"))
        .filter(|sources| sources.is_dir())
        .unwrap_or_else(|| PathBuf::from("."))
}
