//! Which corpora a caller may use.
//!
//! # Invariants
//! - AU6: where callers are known, the log tells of each batch of removals who asks for it, the corpus and how many documents,
//!   before any is removed.

use simshard_cluster::CorpusName;
use simshard_proto::Reason;
use simshard_transport::{Caller, Principal};
use tonic::{Request, Status};
use tracing::info;

/// The rights of a caller. Before they are known, there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights(Option<Caller>);

impl Rights {
    /// Those of the caller of a request.
    pub(super) fn of<T>(request: &Request<T>) -> Self {
        Self(request.extensions().get().cloned())
    }

    /// Whose token it is, as the file of tokens says now; `None` where no token is asked for.
    fn principal(&self) -> Result<Option<Principal>, Status> {
        let caller = self.0.as_ref();
        let caller = caller.ok_or_else(|| {
            Reason::Internal.status("the rights of the caller were not looked at", [])
        })?;
        caller.check()
    }

    /// AU3, AU4. Whether there is such a corpus is not told.
    pub(super) fn check(&self, corpus: &CorpusName) -> Result<(), Status> {
        let principal = self.principal()?;
        if let Some(principal) = principal.filter(|principal| !covers(principal, corpus)) {
            let name = &principal.name;
            let message = format!("the token {name:?} is for other corpora than {corpus}");
            return Err(Reason::PermissionDenied.status(message, []));
        }
        Ok(())
    }

    /// AU6. Tells the log who removes documents, before any is removed. Where callers are not asked who they are, it tells
    /// nothing.
    pub(super) fn log_removal(&self, corpus: &CorpusName, documents: usize) -> Result<(), Status> {
        if let Some(Principal { name: owner, .. }) = self.principal()? {
            info!(%owner, %corpus, documents, "documents are to be removed");
        }
        Ok(())
    }

    /// Which corpora the caller may know of.
    pub(super) fn filter(&self) -> Result<impl Fn(&CorpusName) -> bool + use<>, Status> {
        let principal = self.principal()?;
        Ok(move |corpus: &CorpusName| {
            principal
                .as_ref()
                .is_none_or(|principal| covers(principal, corpus))
        })
    }
}

fn covers(principal: &Principal, corpus: &CorpusName) -> bool {
    let allowed = principal.corpora.as_ref();
    allowed.is_none_or(|allowed| allowed.contains(corpus.as_str()))
}
