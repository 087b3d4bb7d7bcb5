//! What the processes of a cluster agree by.

use std::path::Path;

/// Where their metadata is.
#[derive(Clone, Debug)]
pub(crate) enum Metadata {
    /// A layout file, and the corpora beside it.
    Files,
    /// A layout file, and the corpora at an address that `--metadata` takes.
    FileAndStore(String),
    /// All is at an address that `--metadata` takes, and nodes register themselves.
    Store(String),
}

impl Metadata {
    /// The arguments of a process.
    pub(crate) fn args(&self, layout: &Path) -> Vec<String> {
        let layout = || ["--cluster".to_owned(), layout.display().to_string()];
        let store = |address: &String| ["--metadata".to_owned(), address.clone()];
        match self {
            Self::Files => layout().into(),
            Self::FileAndStore(address) => [layout(), store(address)].concat(),
            Self::Store(address) => store(address).into(),
        }
    }
}
