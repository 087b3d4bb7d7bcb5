//! The store of processes on one machine: a file.
//!
//! ```text
//! simshard-metadata 1 CHECKSUM
//! {"revision": 7, "last_lease": 1, "leases": {…}, "keys": {…}}
//! ```
//!
//! The checksum is the BLAKE3 hash of all bytes after the first line, as 64 lower-case hexadecimal digits. The folder
//! must be on a local file system, where locks and renames can be relied on. The times of leases are those of the
//! machine's clock.
//!
//! # Invariants
//! - KF1: a file of which any bit changed, or that lost its end, is refused and left as it is
//!   (`every_flipped_bit_and_every_truncation_is_refused`).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::time::{MissedTickBehavior, interval};

use super::contract::{
    Changes, KeyValueError, KeyValueStore, LeaseId, Outcome, Revision, Snapshot, Transaction,
};
use super::state::State;
use crate::durable_file::{Content, DurableFile, FileError};

/// How often a process that waits looks at the file.
const TICK: Duration = Duration::from_millis(50);

const MAGIC: &str = "simshard-metadata 1 ";

/// Keys in a file. It appears with the first change.
#[derive(Debug)]
pub struct FileKeyValues {
    file: DurableFile<State>,
    /// Held by the change that has its turn, until its thread is done.
    turn: Arc<Mutex<()>>,
}

impl FileKeyValues {
    /// The store at `path`. Beside it are `PATH.lock`, and files `PATH.next-UUID` during changes.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let mut lock = path.clone().into_os_string();
        lock.push(".lock");
        Self {
            file: DurableFile::new(path, lock.into()),
            turn: Arc::default(),
        }
    }

    /// The state of now. If leases have ended since it was written, this writes what is left.
    async fn state(&self) -> Result<Arc<State>, KeyValueError> {
        let file = self.file.clone();
        let state = self.blocking(move || Ok(file.read()?)).await?;
        if state.ended(SystemTime::now()).is_none() {
            return Ok(state);
        }
        self.change(|state, _| Ok(Arc::new(state.clone()))).await
    }

    /// Changes the state, one change after the other.
    async fn change<T: Send + 'static>(
        &self,
        change: impl Fn(&mut State, SystemTime) -> Result<T, KeyValueError> + Send + 'static,
    ) -> Result<T, KeyValueError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let file = self.file.clone();
        self.blocking(move || {
            let _until_done = turn;
            file.change(|state| {
                let now = SystemTime::now();
                state.expire(now);
                change(state, now)
            })
        })
        .await
    }

    /// Runs file work away from the async threads.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, KeyValueError> + Send + 'static,
    ) -> Result<T, KeyValueError> {
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_cancelled) => Err(KeyValueError::Unknown {
                    store: self.file.path().display().to_string(),
                    reason: "the process is stopping".to_owned(),
                }),
            },
        }
    }
}

#[async_trait]
impl KeyValueStore for FileKeyValues {
    async fn read(&self, prefix: &str) -> Result<Snapshot, KeyValueError> {
        Ok(self.state().await?.read(prefix))
    }

    fn changes(&self, prefix: &str) -> Box<dyn Changes + '_> {
        Box::new(FileChanges {
            store: self,
            prefix: prefix.to_owned(),
        })
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Outcome, KeyValueError> {
        transaction.check()?;
        let transaction = transaction.clone();
        self.change(move |state, _| state.commit(&transaction))
            .await
    }

    async fn grant(&self, time_to_live: Duration) -> Result<LeaseId, KeyValueError> {
        self.change(move |state, now| Ok(state.grant(time_to_live, now)))
            .await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.change(move |state, now| state.keep_alive(lease, now))
            .await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<(), KeyValueError> {
        self.change(move |state, _| {
            state.revoke(lease);
            Ok(())
        })
        .await
    }
}

/// The changes of some of the keys.
#[derive(Debug)]
struct FileChanges<'a> {
    store: &'a FileKeyValues,
    prefix: String,
}

#[async_trait]
impl Changes for FileChanges<'_> {
    async fn next(&mut self, after: Revision) -> Result<Snapshot, KeyValueError> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let state = self.store.state().await?;
            if state.revision() > after {
                return Ok(state.read(&self.prefix));
            }
        }
    }
}

impl Content for State {
    type Damage = String;

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let (header, body) = text.split_once('\n').unwrap_or((text, ""));
        let Some(checksum) = header.strip_prefix(MAGIC) else {
            let head = header.chars().take(40).collect::<String>();
            return Err(format!("it begins with {head:?}, and not with {MAGIC:?}"));
        };
        if checksum != checksum_of(body) {
            return Err("its checksum is that of another text".to_owned());
        }
        serde_json::from_str(body).map_err(|error| error.to_string())
    }

    fn render(&self) -> io::Result<String> {
        let body = serde_json::to_string(self)?;
        Ok(format!("{MAGIC}{}\n{body}", checksum_of(&body)))
    }
}

fn checksum_of(body: &str) -> String {
    blake3::hash(body.as_bytes()).to_hex().to_string()
}

impl From<FileError<String>> for KeyValueError {
    fn from(error: FileError<String>) -> Self {
        let store = |path: PathBuf| path.display().to_string();
        let text = |reason: io::Error| reason.to_string();
        match error {
            FileError::Unreadable { path, reason } => Self::Unreachable {
                store: store(path),
                reason: text(reason),
            },
            FileError::Damaged { path, damage } => Self::Damaged {
                store: store(path),
                reason: damage,
            },
            FileError::Unwritable { path, reason } => Self::Refused {
                store: store(path),
                reason: text(reason),
            },
            FileError::NotDurable { path, reason } => Self::Unknown {
                store: store(path),
                reason: text(reason),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KF1.
    #[test]
    fn every_flipped_bit_and_every_truncation_is_refused() {
        let mut state = State::default();
        let lease = state.grant(Duration::from_secs(1), SystemTime::UNIX_EPOCH);
        let put = Transaction::new().put("a", "é").put_leased("b", "", lease);
        assert!(matches!(state.commit(&put), Ok(Outcome::Committed(_))));
        let whole = state.render().unwrap().into_bytes();
        assert_eq!(State::parse(&whole), Ok(state));
        for end in 0..whole.len() {
            assert!(State::parse(&whole[..end]).is_err(), "the first {end}");
        }
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(State::parse(&bytes).is_err(), "bit {bit}");
        }
    }
}
