//! Moves are paused while an operator says so.

use std::time::SystemTime;

use simshard_cluster::{Feature, Paused, paused, require, set_paused};

use crate::{Admin, AdminError};

/// Moves are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Since when, in seconds since the beginning of 1970.
    pub since: u64,
    /// Whether they were before.
    pub was_there: bool,
}

/// Seconds since the beginning of 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

impl Admin<'_> {
    /// Whether moves are paused. Warns of a record that is damaged: it counts as a pause for nodes, too.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn paused(&self) -> Result<Option<Paused>, AdminError> {
        Ok(paused(self.keys, |error| self.warn_of_bad(error)).await?)
    }

    /// Lets no shard begin to move.
    ///
    /// # Errors
    /// If the cluster is at a level whose nodes do not know that.
    pub async fn pause(&self) -> Result<Pause, AdminError> {
        let before = paused(self.keys, |_| {}).await?;
        if let Some(since) = before.and_then(|paused| paused.since) {
            return Ok(Pause {
                since,
                was_there: true,
            });
        }
        // Nodes of an earlier version would move shards all the same.
        require(self.keys, Feature::Pausing).await?;
        let since = now();
        set_paused(self.keys, Some(since)).await?;
        Ok(Pause {
            since,
            was_there: before.is_some(),
        })
    }

    /// Lets shards begin to move again. Answers whether they were paused.
    ///
    /// # Errors
    /// If the metadata cannot be read or written.
    pub async fn resume(&self) -> Result<bool, AdminError> {
        let was_paused = paused(self.keys, |_| {}).await?.is_some();
        set_paused(self.keys, None).await?;
        Ok(was_paused)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use simshard_node::Dialer;

    use super::*;
    use crate::scene::{cluster, put};

    /// What an operator looks at first must not fail for one damaged key.
    #[tokio::test(start_paused = true)]
    async fn a_damaged_pause_is_one_and_is_told() {
        let keys = cluster(1).await;
        put(&keys, "paused", "{").await;
        let warnings = AtomicUsize::new(0);
        let warn = |warning: &str| {
            assert!(warning.contains("paused"), "{warning}");
            warnings.fetch_add(1, Ordering::Relaxed);
        };
        let admin = Admin::new(&keys, &Dialer::PLAIN, &warn);
        let paused = admin.paused().await.unwrap();
        assert_eq!(paused, Some(Paused { since: None }));
        assert_eq!(warnings.load(Ordering::Relaxed), 1);
        let findings = admin.status().await.unwrap();
        let moves = findings.iter().find(|found| found.part == "moves").unwrap();
        assert_eq!(moves.facts["paused"], true);
        let metadata = findings.iter().find(|found| found.part == "metadata");
        assert!(metadata.unwrap().details.contains("paused"));
        // Each replaces it.
        assert!(admin.pause().await.unwrap().was_there);
        let paused = admin.paused().await.unwrap();
        assert!(paused.is_some_and(|paused| paused.since.is_some()));
        put(&keys, "paused", "{").await;
        assert!(admin.resume().await.unwrap());
        assert_eq!(admin.paused().await.unwrap(), None);
        assert_eq!(warnings.load(Ordering::Relaxed), 1);
    }
}
