//! The backend for processes on one machine: a layout file that the operator
//! writes, and beside it a file of corpora that the processes write.
//!
//! For `cluster.toml` the corpora are in `cluster.corpora.toml`, guarded by
//! `cluster.corpora.lock`; both appear when the first corpus is created. The
//! folder must be on a local file system, where locks and renames can be relied on.
//! A process that reads only the layout needs only the layout file. A node also reads the
//! corpora at its start, and runs without them.
//!
//! # Invariants
//! - FS1: the layout file is never written
//!   (`the_layout_file_is_never_written`).
//! - FS2: every process that opens the same layout file has the same map
//!   (`two_stores_on_one_file_plan_the_same_map`).
//! - FS3: the layout of an open store does not change; an edited file counts from the next start. A map planned afresh
//!   would name owners that do not hold the data yet (`an_edited_layout_file_counts_from_the_next_start`).
//! - FS4: a corpora file that cannot be understood is never replaced
//!   (`a_corrupt_corpora_file_is_refused_and_left_alone`).
//! - FS5: the corpora file is whole at every instant: it changes by rename only
//!   (`what_a_crash_left_half_written_is_ignored`).
//! - FS6: no async thread waits for a file: all file work runs on blocking threads
//!   (`waiting_for_the_lock_holds_up_no_async_thread`).
//! - FS7: a store opens, and has its layout, whatever has become of the corpora file;
//!   only those who read or change corpora are refused
//!   (`a_damaged_corpora_file_leaves_the_layout_readable`).
//! - FS8: at most one thread of a process waits for the lock, however many changes
//!   are waiting or were given up
//!   (`changes_that_wait_for_the_lock_hold_up_no_reading`).
//! - FS9: a corpora file of version 2 that lost its end, or of which any bits changed, is refused
//!   (`every_flipped_bit_is_refused`, `every_truncation_is_refused`).
//! - FS10: what the file says is read from it each time: what was understood before serves only while all bytes are
//!   the same (`a_file_of_the_same_size_and_time_is_read_anew`).
//! - FS11: a change decides on what survives a power cut: it syncs the folder before. So a repeated change confirms
//!   what the one before left unsynced (`a_repeated_change_confirms_nothing_before_the_folder_is_synced`).

mod corpora_format;
mod layout_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use simshard_topology::CorpusUid;
use tokio::sync::{Mutex, watch};

use crate::corpora::Corpora;
use crate::corpus::{CorpusName, CorpusRecord};
use crate::layout::ClusterLayout;
use crate::store::{MetadataError, MetadataStore};

use crate::durable_file::{DurableFile, FileError};
use corpora_format::FormatError;

/// Metadata in two files of one folder, shared by the processes of one machine.
///
/// Each read of the corpora reads the file, and parses it if it has changed; callers on a hot
/// path keep what they read. A change waits for the lock as long as another process holds it.
#[derive(Debug)]
pub struct FileStore {
    /// Never sent to (FS3); kept so that receivers stay connected.
    layout: watch::Sender<Arc<ClusterLayout>>,
    corpora: DurableFile<Corpora>,
    /// Held by the change that has its turn, until its thread is done (FS8).
    turn: Arc<Mutex<()>>,
}

impl FileStore {
    /// Reads the layout file at `path`. The corpora beside it are read when they are
    /// first asked for, so a damaged corpora file shows only then.
    ///
    /// # Errors
    /// When the layout file cannot be read or understood, or the nodes make no layout.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, MetadataError> {
        let path = path.into();
        blocking(move || {
            let layout = layout_file::load(&path)?;
            Ok(Self::of_layout(layout, &path))
        })
        .await
    }

    /// A layout that is known, with the corpora beside where its file would be: for a process whose nodes are its
    /// own, and listen elsewhere every time.
    #[must_use]
    pub fn of_layout(layout: ClusterLayout, path: &Path) -> Self {
        let lock = path.with_extension("corpora.lock");
        Self {
            layout: watch::Sender::new(Arc::new(layout)),
            corpora: DurableFile::new(Self::corpora_file(path), lock),
            turn: Arc::default(),
        }
    }

    /// The file of the corpora beside a layout file: there as soon as a corpus was ever made.
    #[must_use]
    pub fn corpora_file(layout: &Path) -> PathBuf {
        layout.with_extension("corpora.toml")
    }

    /// Changes the corpora, one change after the other.
    async fn change<T: Send + 'static>(
        &self,
        change: impl Fn(&mut Corpora) -> Result<T, MetadataError> + Send + 'static,
    ) -> Result<T, MetadataError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let file = self.corpora.clone();
        blocking(move || {
            let _until_done = turn;
            file.change(change)
        })
        .await
    }
}

#[async_trait]
impl MetadataStore for FileStore {
    fn watch_layout(&self) -> watch::Receiver<Arc<ClusterLayout>> {
        self.layout.subscribe()
    }

    async fn corpora(&self) -> Result<Arc<Corpora>, MetadataError> {
        let file = self.corpora.clone();
        blocking(move || Ok(file.read()?)).await
    }

    async fn create_corpus(
        &self,
        record: CorpusRecord,
        max_corpora: usize,
    ) -> Result<CorpusRecord, MetadataError> {
        self.change(move |corpora| corpora.create(record.clone(), max_corpora))
            .await
    }

    async fn finish_creation(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        let (name, uid) = (name.clone(), *uid);
        self.change(move |corpora| corpora.finish_creation(&name, &uid))
            .await
    }

    async fn begin_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        let (name, uid) = (name.clone(), *uid);
        self.change(move |corpora| corpora.begin_deletion(&name, &uid))
            .await
    }

    async fn finish_deletion(
        &self,
        name: &CorpusName,
        uid: &CorpusUid,
    ) -> Result<(), MetadataError> {
        let (name, uid) = (name.clone(), *uid);
        self.change(move |corpora| corpora.finish_deletion(&name, &uid))
            .await
    }
}

impl From<FileError<FormatError>> for MetadataError {
    fn from(error: FileError<FormatError>) -> Self {
        match error {
            FileError::Unreadable { path, reason } => Self::Unreadable { path, reason },
            FileError::Damaged { path, damage } => match damage {
                FormatError::UnknownVersion { found } => {
                    Self::UnknownCorporaVersion { path, found }
                }
                FormatError::Corrupt(damage) => Self::CorruptCorpora { path, damage },
            },
            FileError::Unwritable { path, reason } => Self::Unwritable { path, reason },
            FileError::NotDurable { path, reason } => Self::NotDurable { path, reason },
        }
    }
}

/// Runs file work away from the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MetadataError> + Send + 'static,
) -> Result<T, MetadataError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_cancelled) => Err(MetadataError::Stopping),
        },
    }
}
