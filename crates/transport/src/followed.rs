//! Files that operators replace while a server runs: they are read again and again.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

/// How often files are looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// What is wrong with files is told again after this many looks.
const TOLD_AGAIN: u32 = 300;

/// Files, and what is made of them.
pub(crate) trait Source: fmt::Debug + Send + Sync + 'static {
    /// What they hold, in words.
    const WHAT: &'static str;
    /// Their bytes.
    type Contents: Clone + PartialEq + Send + Sync;
    /// What is made of the bytes.
    type Made: Send + Sync;
    /// Why the files are of no use.
    type Error: Error + Send + Sync + 'static;

    /// Reads the files.
    fn read(&self) -> Result<Self::Contents, Self::Error>;

    /// Makes what is to be used.
    fn make(&self, contents: &Self::Contents) -> Result<Self::Made, Self::Error>;
}

/// Files that are followed. Clones share what was read last.
pub(crate) struct Followed<S: Source> {
    source: Arc<S>,
    current: Arc<RwLock<Current<S>>>,
}

/// The files that are used, and what was made of them.
struct Current<S: Source> {
    read: S::Contents,
    made: Arc<S::Made>,
    /// What the last look saw, if that is something else.
    seen: Option<S::Contents>,
}

impl<S: Source> Clone for Followed<S> {
    fn clone(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            current: Arc::clone(&self.current),
        }
    }
}

impl<S: Source> fmt::Debug for Followed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Followed");
        shown.field("source", &self.source).finish_non_exhaustive()
    }
}

impl<S: Source> Followed<S> {
    /// Reads the files.
    ///
    /// # Errors
    /// If they are of no use.
    pub(crate) fn load(source: S) -> Result<Self, S::Error> {
        let read = source.read()?;
        let made = Arc::new(source.make(&read)?);
        Ok(Self {
            source: Arc::new(source),
            current: Arc::new(RwLock::new(Current {
                read,
                made,
                seen: None,
            })),
        })
    }

    /// Where the files are.
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// What was made of them last.
    pub(crate) fn current(&self) -> Arc<S::Made> {
        Arc::clone(&self.current.read().made)
    }

    /// Looks at the files again; returns whether others are used from now on. They are once two looks saw the same: the
    /// first one may have seen files that were half written.
    pub(crate) fn look(&self) -> Result<bool, S::Error> {
        let read = self.source.read()?;
        if !self.is_seen_again(&read) {
            return Ok(false);
        }
        let made = Arc::new(self.source.make(&read)?);
        *self.current.write() = Current {
            read,
            made,
            seen: None,
        };
        Ok(true)
    }

    /// Whether files are others than those that are used, and the same as at the last look.
    fn is_seen_again(&self, read: &S::Contents) -> bool {
        let mut current = self.current.write();
        if *read == current.read {
            current.seen = None;
            return false;
        }
        let is_seen = current.seen.as_ref() == Some(read);
        current.seen = Some(read.clone());
        is_seen
    }

    async fn follow(&self) -> Infallible {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failures: u32 = 0;
        loop {
            looks.tick().await;
            let files = self.clone();
            // It fails only as the runtime ends.
            let Ok(looked) = spawn_blocking(move || files.look()).await else {
                continue;
            };
            let source = &self.source;
            match looked {
                Ok(changed) => {
                    if changed {
                        info!(?source, "{} were read again", S::WHAT);
                    }
                    failures = 0;
                }
                Err(error) => {
                    let error: &dyn Error = &error;
                    if failures.is_multiple_of(TOLD_AGAIN) {
                        warn!(error, "{} cannot be used: the earlier ones are", S::WHAT);
                    }
                    failures = failures.wrapping_add(1);
                }
            }
        }
    }
}

/// Keeps what is made of files as they have it, where there are any.
pub(crate) async fn follow<S: Source>(files: Option<&Followed<S>>) -> Infallible {
    match files {
        Some(files) => files.follow().await,
        None => pending().await,
    }
}
