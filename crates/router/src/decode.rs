//! From requests to domain types: everything a client can get wrong is refused
//! here, field by field.

use std::sync::Arc;

use simshard_cluster::{CorpusName, CorpusUid};
use simshard_proto::{Documents, SearchSpec, Violations, check_batch, check_ids, v1};
use simshard_simhash::{Fingerprint, Layout, Recipe, TextRecipe};
use tonic::Status;

use crate::corpora::OpenCorpus;
use crate::error::RouterError;
use crate::offload::offload;
use crate::router::NewCorpus;

/// The documents or queries of a request.
#[derive(Clone, Debug)]
pub(crate) enum Batch {
    Fingerprints(Vec<u64>),
    Texts(Arc<[String]>),
}

impl Batch {
    /// One of the two columns.
    pub(crate) fn new(
        fingerprints: Vec<u64>,
        texts: Vec<String>,
        violations: &mut Violations,
    ) -> Self {
        check_batch("fingerprints", fingerprints.len(), violations);
        check_batch("texts", texts.len(), violations);
        if !fingerprints.is_empty() && !texts.is_empty() {
            violations.add("texts", "is set beside fingerprints: set one of the two");
        }
        if texts.is_empty() {
            Self::Fingerprints(fingerprints)
        } else {
            Self::Texts(texts.into())
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Fingerprints(values) => values.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// The fingerprints, by the corpus's recipe where these are texts.
    pub(crate) async fn fingerprints(
        &self,
        corpus: &OpenCorpus,
    ) -> Result<Vec<Fingerprint>, RouterError> {
        let texts = match self {
            Self::Fingerprints(values) => {
                return Ok(values.iter().copied().map(Fingerprint).collect());
            }
            Self::Texts(texts) => Arc::clone(texts),
        };
        let recipe = corpus.text_recipe()?;
        let bytes: usize = texts.iter().map(String::len).sum();
        offload(bytes / 64, move || {
            let texts = texts.iter().enumerate();
            texts
                .map(|(place, text)| {
                    let made = recipe.fingerprint(text);
                    made.ok_or(RouterError::NoFingerprint { place, recipe })
                })
                .collect()
        })
        .await?
    }
}

/// A request about documents or queries of a corpus.
#[derive(Clone, Debug)]
pub(crate) struct OnCorpus<T> {
    pub(crate) name: CorpusName,
    /// The recipe that the request names, or nothing.
    pub(crate) recipe: String,
    pub(crate) batch: Batch,
    pub(crate) rest: T,
}

/// The distance that a request asks for, at most the corpus's.
pub(crate) fn distance(asked: Option<u32>, layout: Layout) -> Result<u32, RouterError> {
    let most = layout.distance();
    match asked {
        Some(given) if given > most => Err(RouterError::DistanceTooLarge { given, most }),
        given => Ok(given.unwrap_or(most)),
    }
}

/// The corpus that a field names, if that and all else is well formed.
pub(crate) fn corpus_name(
    field: &str,
    name: &str,
    mut violations: Violations,
) -> Result<CorpusName, Status> {
    let parsed = CorpusName::new(name);
    if let Err(error) = &parsed {
        violations.add(field, format!("is refused: {error}"));
    }
    match parsed {
        Ok(name) if violations.is_empty() => Ok(name),
        _ => Err(violations.status()),
    }
}

pub(crate) fn insert(request: v1::InsertRequest) -> Result<OnCorpus<Vec<String>>, Status> {
    let v1::InsertRequest {
        corpus,
        recipe,
        fingerprints,
        texts,
        ids,
    } = request;
    documents(&corpus, recipe, fingerprints, texts, ids)
}

pub(crate) fn remove(request: v1::RemoveRequest) -> Result<OnCorpus<Vec<String>>, Status> {
    let v1::RemoveRequest {
        corpus,
        recipe,
        fingerprints,
        texts,
        ids,
        beyond_clock: _,
    } = request;
    documents(&corpus, recipe, fingerprints, texts, ids)
}

fn documents(
    corpus: &str,
    recipe: String,
    fingerprints: Vec<u64>,
    texts: Vec<String>,
    ids: Vec<String>,
) -> Result<OnCorpus<Vec<String>>, Status> {
    let mut violations = Violations::default();
    let batch = Batch::new(fingerprints, texts, &mut violations);
    check_ids(&ids, batch.len(), &mut violations);
    let name = corpus_name("corpus", corpus, violations)?;
    Ok(OnCorpus {
        name,
        recipe,
        batch,
        rest: ids,
    })
}

impl OnCorpus<Vec<String>> {
    /// The documents, by the corpus's recipe where they came as texts.
    pub(crate) async fn documents(
        &self,
        corpus: &OpenCorpus,
    ) -> Result<Arc<Documents>, RouterError> {
        Ok(Arc::new(Documents {
            fingerprints: self.batch.fingerprints(corpus).await?,
            ids: self.rest.clone(),
        }))
    }
}

pub(crate) fn find_first(from: v1::FindFirstRequest) -> Result<OnCorpus<SearchSpec>, Status> {
    let spec = SearchSpec::of_find_first(&from);
    search(
        &from.corpus,
        from.recipe,
        from.fingerprints,
        from.texts,
        spec,
    )
}

pub(crate) fn find_all(from: v1::FindAllRequest) -> Result<OnCorpus<SearchSpec>, Status> {
    let spec = SearchSpec::of_find_all(&from);
    search(
        &from.corpus,
        from.recipe,
        from.fingerprints,
        from.texts,
        spec,
    )
}

fn search(
    corpus: &str,
    recipe: String,
    fingerprints: Vec<u64>,
    texts: Vec<String>,
    rest: SearchSpec,
) -> Result<OnCorpus<SearchSpec>, Status> {
    let mut violations = Violations::default();
    let batch = Batch::new(fingerprints, texts, &mut violations);
    let name = corpus_name("corpus", corpus, violations)?;
    Ok(OnCorpus {
        name,
        recipe,
        batch,
        rest,
    })
}

pub(crate) fn fingerprint(request: v1::FingerprintRequest) -> Result<OnCorpus<()>, Status> {
    let mut violations = Violations::default();
    let batch = Batch::new(Vec::new(), request.texts, &mut violations);
    let name = corpus_name("corpus", &request.corpus, violations)?;
    Ok(OnCorpus {
        name,
        recipe: request.recipe,
        batch,
        rest: (),
    })
}

pub(crate) fn recover_corpus(
    request: &v1::RecoverCorpusRequest,
) -> Result<(CorpusUid, CorpusName, Recipe), Status> {
    let mut violations = Violations::default();
    let uid = request.uid.parse::<CorpusUid>();
    if let Err(error) = &uid {
        violations.add("uid", format!("is refused: {error}"));
    }
    let recipe = request.recipe.parse::<Recipe>();
    if let Err(error) = &recipe {
        violations.add("recipe", format!("is refused: {error}"));
    }
    match (uid, recipe, CorpusName::new(&request.name)) {
        (Ok(uid), Ok(recipe), Ok(name)) => Ok((uid, name, recipe)),
        (_, _, Ok(_)) => Err(violations.status()),
        (_, _, Err(error)) => {
            violations.add("name", format!("is refused: {error}"));
            Err(violations.status())
        }
    }
}

pub(crate) fn new_corpus(request: &v1::CreateCorpusRequest) -> Result<NewCorpus, Status> {
    let mut violations = Violations::default();
    let blocks = request.blocks.unwrap_or(Layout::default().blocks());
    let distance = request.distance.unwrap_or(Layout::default().distance());
    let layout = Layout::new(blocks, distance);
    if let Err(error) = layout {
        let field = match error {
            simshard_simhash::LayoutError::Distance { .. } => "distance",
            simshard_simhash::LayoutError::Blocks { .. }
            | simshard_simhash::LayoutError::Tables { .. } => "blocks",
        };
        violations.add(field, format!("is refused: {error}"));
    }
    let recipe = match request.recipe.as_str() {
        // What it meant before there were others to choose from.
        "" => Ok(Recipe::Text(TextRecipe::WordsV1)),
        name => name.parse(),
    };
    if let Err(error) = &recipe {
        violations.add("recipe", format!("is refused: {error}"));
    }
    match (layout, recipe, CorpusName::new(&request.name)) {
        (Ok(layout), Ok(recipe), Ok(name)) => Ok(NewCorpus {
            name,
            layout,
            recipe,
        }),
        (_, _, Ok(_)) => Err(violations.status()),
        (_, _, Err(error)) => {
            violations.add("name", format!("is refused: {error}"));
            Err(violations.status())
        }
    }
}
