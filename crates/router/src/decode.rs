//! From requests to domain types: everything a client can get wrong is refused
//! here, field by field.

use std::fmt::Display;
use std::sync::Arc;

use simshard_cluster::{CorpusName, CorpusUid};
use simshard_proto::v1::ResultForm;
use simshard_proto::{Documents, SearchSpec, Violations, check_batch, check_ids, v1};
use simshard_simhash::{Fingerprint, Layout, LayoutError, Recipe, TextRecipe};
use tonic::Status;

use crate::error::RouterError;
use crate::offload::offload;
use crate::remembered::OpenCorpus;
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

    pub(crate) fn len(&self) -> usize {
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
    match accepted(field, CorpusName::new(name), &mut violations) {
        Some(name) if violations.is_empty() => Ok(name),
        _ => Err(violations.status()),
    }
}

pub(crate) fn insert(from: v1::InsertRequest) -> Result<OnCorpus<Vec<String>>, Status> {
    let keys = (from.fingerprints, from.texts);
    on_corpus(&from.corpus, from.recipe, keys, documents(from.ids))
}

pub(crate) fn remove(from: v1::RemoveRequest) -> Result<OnCorpus<Vec<String>>, Status> {
    let keys = (from.fingerprints, from.texts);
    on_corpus(&from.corpus, from.recipe, keys, documents(from.ids))
}

/// The ids of documents, of which there must be one each or none.
fn documents(ids: Vec<String>) -> impl FnOnce(&Batch, &mut Violations) -> Vec<String> {
    |batch, violations| {
        check_ids(&ids, batch.len(), violations);
        ids
    }
}

/// What a search is for, and how it is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Find {
    pub(crate) spec: SearchSpec,
    pub(crate) form: ResultForm,
}

pub(crate) fn find_first(from: v1::FindFirstRequest) -> Result<OnCorpus<Find>, Status> {
    let spec = SearchSpec::of_find_first(&from);
    let keys = (from.fingerprints, from.texts);
    on_corpus(
        &from.corpus,
        from.recipe,
        keys,
        find(spec, from.result_form),
    )
}

pub(crate) fn find_all(from: v1::FindAllRequest) -> Result<OnCorpus<Find>, Status> {
    let spec = SearchSpec::of_find_all(&from);
    let keys = (from.fingerprints, from.texts);
    on_corpus(
        &from.corpus,
        from.recipe,
        keys,
        find(spec, from.result_form),
    )
}

/// A search, answered in the form with this number.
fn find(spec: SearchSpec, form: i32) -> impl FnOnce(&Batch, &mut Violations) -> Find {
    move |_, violations| Find {
        spec,
        form: result_form(form, violations),
    }
}

/// The form of an answer. A later version may know more of them.
fn result_form(asked: i32, violations: &mut Violations) -> ResultForm {
    ResultForm::try_from(asked).unwrap_or_else(|_| {
        let problem = format!("is {asked}: 1 means columns, and 2 rows");
        violations.add("result_form", problem);
        ResultForm::Unspecified
    })
}

pub(crate) fn fingerprint(from: v1::FingerprintRequest) -> Result<OnCorpus<()>, Status> {
    let keys = (Vec::new(), from.texts);
    on_corpus(&from.corpus, from.recipe, keys, |_, _| ())
}

/// A request with these columns of fingerprints and texts; `rest` checks what else there is.
fn on_corpus<T>(
    corpus: &str,
    recipe: String,
    (fingerprints, texts): (Vec<u64>, Vec<String>),
    rest: impl FnOnce(&Batch, &mut Violations) -> T,
) -> Result<OnCorpus<T>, Status> {
    let mut violations = Violations::default();
    let batch = Batch::new(fingerprints, texts, &mut violations);
    let rest = rest(&batch, &mut violations);
    let name = corpus_name("corpus", corpus, violations)?;
    Ok(OnCorpus {
        name,
        recipe,
        batch,
        rest,
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

pub(crate) fn recover_corpus(
    request: &v1::RecoverCorpusRequest,
) -> Result<(CorpusUid, CorpusName, Recipe), Status> {
    let mut violations = Violations::default();
    let uid = accepted("uid", request.uid.parse(), &mut violations);
    let recipe = accepted("recipe", request.recipe.parse(), &mut violations);
    let name = accepted("name", CorpusName::new(&request.name), &mut violations);
    match (uid, name, recipe) {
        (Some(uid), Some(name), Some(recipe)) => Ok((uid, name, recipe)),
        _ => Err(violations.status()),
    }
}

/// Most corpora of one page.
const MAX_PAGE: u32 = 1_000;

/// A page of the list of corpora.
#[derive(Debug)]
pub(crate) struct Page {
    /// Most corpora on it.
    pub(crate) size: usize,
    /// The last name of the page before.
    pub(crate) after: Option<CorpusName>,
}

pub(crate) fn page(request: &v1::ListCorporaRequest) -> Result<Page, Status> {
    let size = match request.page_size {
        0 => MAX_PAGE,
        size => size.min(MAX_PAGE),
    };
    let after = match request.page_token.as_str() {
        "" => None,
        token => Some(corpus_name("page_token", token, Violations::default())?),
    };
    Ok(Page {
        size: size as usize,
        after,
    })
}

pub(crate) fn new_corpus(request: &v1::CreateCorpusRequest) -> Result<NewCorpus, Status> {
    let mut violations = Violations::default();
    let blocks = request.blocks.unwrap_or(Layout::default().blocks());
    let distance = request.distance.unwrap_or(Layout::default().distance());
    let layout = Layout::new(blocks, distance);
    let field = match layout {
        Err(LayoutError::TooFar { .. } | LayoutError::Distance { .. }) => "distance",
        Ok(_) | Err(LayoutError::Blocks { .. } | LayoutError::Tables { .. }) => "blocks",
    };
    let layout = accepted(field, layout, &mut violations);
    let recipe = match request.recipe.as_str() {
        // An empty name keeps its meaning from before clients could choose a recipe.
        "" => Ok(Recipe::Text(TextRecipe::WordsV1)),
        name => name.parse(),
    };
    let recipe = accepted("recipe", recipe, &mut violations);
    let name = accepted("name", CorpusName::new(&request.name), &mut violations);
    match (name, layout, recipe) {
        (Some(name), Some(layout), Some(recipe)) => Ok(NewCorpus {
            name,
            layout,
            recipe,
        }),
        _ => Err(violations.status()),
    }
}

/// The value of a field, or nothing and a violation that says why it is refused.
fn accepted<T>(
    field: &str,
    value: Result<T, impl Display>,
    violations: &mut Violations,
) -> Option<T> {
    let refused = |error| violations.add(field, format!("is refused: {error}"));
    value.map_err(refused).ok()
}
