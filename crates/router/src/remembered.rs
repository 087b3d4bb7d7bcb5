//! The corpora that this router has seen, with what is derived from their
//! configuration. The metadata store decides; this only remembers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use simshard_cluster::{CorpusName, CorpusRecord, CorpusState, KeyValueError, MetadataError};
use simshard_simhash::{Layout, Recipe, Tables, TextRecipe};
use tokio::time::timeout;

use crate::error::RouterError;
use crate::metadata::Metadata;

/// Most corpora that are remembered. Those that were deleted elsewhere are never asked for again.
const MOST_CORPORA: usize = 4096;

/// How long the metadata has to answer before a remembered corpus is used.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// A corpus, ready for requests.
#[derive(Debug)]
pub(crate) struct OpenCorpus {
    pub(crate) record: CorpusRecord,
    pub(crate) recipe: Recipe,
    layout: Layout,
    /// Made when first needed.
    tables: OnceLock<Arc<Tables>>,
}

/// Corpora by name, read from the store when first asked for.
#[derive(Debug)]
pub(crate) struct RememberedCorpora {
    metadata: Metadata,
    open: Mutex<HashMap<CorpusName, Arc<OpenCorpus>>>,
}

impl RememberedCorpora {
    pub(crate) fn new(metadata: Metadata) -> Self {
        Self {
            metadata,
            open: Mutex::default(),
        }
    }

    /// The corpus of this name, as last seen.
    pub(crate) async fn get(&self, name: &CorpusName) -> Result<Arc<OpenCorpus>, RouterError> {
        if let Some(corpus) = self.open.lock().get(name) {
            return Ok(Arc::clone(corpus));
        }
        self.reread(name).await
    }

    /// The corpus of this name, as the store has it now. What was remembered stays if the store does not answer.
    pub(crate) async fn reread(&self, name: &CorpusName) -> Result<Arc<OpenCorpus>, RouterError> {
        let read = self.metadata.corpus(name).await?;
        self.forget(name);
        let corpus = Arc::new(live(name, read)?);
        remember(&mut self.open.lock(), Arc::clone(&corpus));
        Ok(corpus)
    }

    /// The corpus of this name, as the store has it now. If the store does not answer, the corpus as it is remembered: then
    /// another router that reaches the store may have deleted it.
    pub(crate) async fn newest(&self, name: &CorpusName) -> Result<Arc<OpenCorpus>, RouterError> {
        let remembered = self.open.lock().get(name).map(Arc::clone);
        let Some(remembered) = remembered else {
            return self.reread(name).await;
        };
        match timeout(ANSWER_TIME, self.reread(name)).await {
            Ok(Err(error)) if !is_absence(&error) => Err(error),
            Ok(Ok(corpus)) => Ok(corpus),
            Ok(Err(_)) | Err(_) => Ok(remembered),
        }
    }

    /// Has the next request read the corpus of this name anew.
    pub(crate) fn forget(&self, name: &CorpusName) {
        self.open.lock().remove(name);
    }
}

/// Whether the metadata store cannot be reached now.
const fn is_absence(error: &RouterError) -> bool {
    matches!(
        error,
        RouterError::MetadataLate(_)
            | RouterError::Metadata(MetadataError::KeyValues(KeyValueError::Unreachable { .. }))
    )
}

/// The corpus of a record. Only a live one can be used.
fn live(name: &CorpusName, record: Option<CorpusRecord>) -> Result<OpenCorpus, RouterError> {
    let record = record.ok_or_else(|| RouterError::CorpusNotFound(name.clone()))?;
    match record.state {
        CorpusState::Live => OpenCorpus::new(record),
        state @ (CorpusState::Creating | CorpusState::Deleting) => {
            let corpus = name.clone();
            Err(RouterError::NotLive { corpus, state })
        }
    }
}

fn remember(open: &mut HashMap<CorpusName, Arc<OpenCorpus>>, corpus: Arc<OpenCorpus>) {
    if open.len() >= MOST_CORPORA {
        open.clear();
    }
    open.insert(corpus.record.name.clone(), corpus);
}

impl OpenCorpus {
    pub(crate) fn new(record: CorpusRecord) -> Result<Self, RouterError> {
        let foreign = || RouterError::ForeignCorpus(Box::new(record.clone()));
        let recipe: Recipe = record.recipe.parse().map_err(|_| foreign())?;
        let layout = Layout::new(record.blocks, record.distance).map_err(|_| foreign())?;
        Ok(Self {
            recipe,
            layout,
            tables: OnceLock::new(),
            record,
        })
    }

    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn tables(&self) -> &Arc<Tables> {
        self.tables.get_or_init(|| Tables::shared(self.layout))
    }

    /// The recipe as one for texts, if it is.
    pub(crate) fn text_recipe(&self) -> Result<TextRecipe, RouterError> {
        self.recipe
            .for_texts()
            .map_err(|refusal| RouterError::NoTexts {
                corpus: self.record.name.clone(),
                refusal,
            })
    }

    /// Refuses a request that names another recipe.
    pub(crate) fn check_recipe(&self, given: &str) -> Result<(), RouterError> {
        if given.is_empty() || given.parse() == Ok(self.recipe) {
            return Ok(());
        }
        Err(RouterError::RecipeMismatch {
            corpus: self.record.name.clone(),
            recipe: self.recipe,
            given: given.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use simshard_cluster::CorpusUid;

    use super::*;

    #[test]
    fn corpora_deleted_elsewhere_are_not_remembered_for_ever() {
        let mut open = HashMap::new();
        for number in 0..2 * MOST_CORPORA {
            let record = CorpusRecord {
                name: CorpusName::new(format!("corpus-{number}")).unwrap(),
                uid: CorpusUid([0; 16]),
                blocks: 5,
                distance: 3,
                recipe: "words-v2".to_owned(),
                create_time: SystemTime::UNIX_EPOCH,
                state: CorpusState::Live,
            };
            let corpus = Arc::new(OpenCorpus::new(record).unwrap());
            let name = corpus.record.name.clone();
            remember(&mut open, corpus);
            assert!(open.contains_key(&name));
            assert!(open.len() <= MOST_CORPORA);
        }
    }
}
