//! Documents page by page. The node makes a page only after the reader has taken the one before. So a slow reader slows
//! only its own stream.

use std::sync::Arc;

use futures_util::{Stream, stream};
use simshard_storage::Documents;
use simshard_topology::ShardSet;

use super::{Cancellation, Class, Engine};
use crate::error::NodeError;
use crate::target::Target;

/// Documents in a page: with the longest ids, some megabytes.
pub(super) const PAGE: usize = 4096;

/// Work that makes documents page by page.
pub(super) trait Pages: Send + Sized + 'static {
    /// Whether there are no more.
    fn is_done(&self) -> bool;

    /// Makes the next page.
    fn page(
        &mut self,
        engine: &Engine,
        cancellation: &Cancellation,
    ) -> Result<Documents, NodeError>;
}

impl Engine {
    /// The pages of work on shards of a corpus.
    pub(super) async fn pages<P: Pages>(
        self: &Arc<Self>,
        target: &Target,
        shards: ShardSet,
        pages: P,
    ) -> Result<impl Stream<Item = Result<Documents, NodeError>> + use<P>, NodeError> {
        self.open(target, shards).await?;
        let target = target.clone();
        let next = move |(engine, mut pages): (Arc<Self>, P)| {
            let target = target.clone();
            async move {
                if pages.is_done() {
                    return Ok(None);
                }
                engine.threads.note_work();
                let page = engine.run(Class::Large, None, move |engine, cancellation| {
                    let page = pages.page(engine, cancellation)?;
                    engine.check_not_begun_anew(&target)?;
                    Ok((page, pages))
                });
                let (page, pages) = page.await?;
                Ok(Some((page, (engine, pages))))
            }
        };
        Ok(stream::try_unfold((Arc::clone(self), pages), next))
    }
}
