//! Looking through a backup.

use std::pin::pin;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::error::BackupError;
use crate::manifest::Manifest;
use crate::repository::Repository;
use crate::throttle::Throttle;

/// Segments that are read at once.
const AT_ONCE: usize = 4;

/// What was looked through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verified {
    /// Segments.
    pub segments: u64,
    /// Documents.
    pub documents: u64,
}

/// Reads each segment of a backup, and compares it with its hash and with the manifest. `passed` is told how many more
/// documents are read.
///
/// # Errors
/// If a segment is absent or damaged, or has other documents than the manifest says.
pub async fn verify(
    repository: &Repository,
    manifest: &Manifest,
    mut throttle: Throttle,
    mut passed: impl FnMut(u64),
) -> Result<Verified, BackupError> {
    let mut verified = Verified::default();
    for corpus in &manifest.corpora {
        let contents = stream::iter(&corpus.segments).map(async |entry| {
            let contents = repository.segment(entry.hash).await?;
            Ok::<_, BackupError>((entry, contents))
        });
        let mut contents = pin!(contents.buffered(AT_ONCE));
        let mut last = None;
        while let Some((entry, contents)) = contents.try_next().await? {
            throttle.pass(entry.bytes).await;
            if contents.len() as u64 != entry.documents || contents.first() < last {
                return Err(BackupError::Wrong {
                    id: manifest.id.clone(),
                    name: corpus.name.clone(),
                });
            }
            last = contents.last();
            verified.segments += 1;
            verified.documents += entry.documents;
            passed(entry.documents);
        }
    }
    Ok(verified)
}
