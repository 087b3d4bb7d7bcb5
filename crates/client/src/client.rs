//! Requests to a router.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use simshard_proto::v1::corpus_service_client::CorpusServiceClient;
use simshard_proto::{MAX_MESSAGE_BYTES, Reason, endpoint::limited, v1 as pb};
use simshard_simhash::Fingerprint;
use tokio::time::{Instant, sleep};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::access::{Access, Bearer};
use crate::batch::{Documents, Queries, insert_request, remove_request};
use crate::error::ClientError;
use crate::find::FindAnswer;
use crate::patience::Patience;
use simshard_proto::SearchSpec;

/// How long a request may take, unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a stream of changes goes on without any progress, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request that may succeed later is tried again so often.
const RETRIES: usize = 3;

/// Room for what surrounds the largest answer.
const MAX_ANSWER_BYTES: usize = MAX_MESSAGE_BYTES + (64 << 10);

/// The messages of the service, with the token of the client on each request.
pub type Stub = CorpusServiceClient<InterceptedService<Channel, Bearer>>;

/// Is told why a stream of changes waits, and for how long it goes on trying.
pub type TellOfWaiting = fn(&ClientError, Duration);

/// A client of one router. Clones share the connection.
///
/// Every request has a deadline. Those that may be repeated without harm, all
/// but the creation and deletion of corpora, are tried again where that may
/// help. If the router refuses or fails one: see [`ClientError::reason`].
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) stub: Stub,
    pub(crate) url: String,
    /// That of every corpus asked about; empty for any.
    pub(crate) recipe: String,
    pub(crate) timeout: Duration,
    pub(crate) patience: Duration,
    pub(crate) tell_of_waiting: Option<TellOfWaiting>,
    pub(crate) beyond_clock: bool,
}

impl Client {
    /// A client of the router at `url`, which is connected to when first needed. At an `https` URL, the authorities of
    /// the system have to vouch for it.
    ///
    /// # Errors
    /// If the URL is unusable.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_access(url, &Access::default())
    }

    /// The same, with what it needs for TLS, or to be known.
    ///
    /// # Errors
    /// If the URL, a certificate or the token is unusable.
    pub fn with_access(url: &str, access: &Access) -> Result<Self, ClientError> {
        let channel = limited(access.endpoint(url)?).connect_lazy();
        let stub = CorpusServiceClient::with_interceptor(channel, access.bearer()?)
            .max_decoding_message_size(MAX_ANSWER_BYTES)
            .max_encoding_message_size(usize::MAX);
        Ok(Self {
            stub,
            url: url.to_owned(),
            recipe: String::new(),
            timeout: TIMEOUT,
            patience: PATIENCE,
            tell_of_waiting: None,
            beyond_clock: false,
        })
    }

    /// The messages themselves, for what this client has no method for. They have no deadline, and nothing is tried again.
    #[must_use]
    pub fn into_stub(self) -> Stub {
        self.stub
    }

    /// The same client with another deadline for each request.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same client with another patience: how long streams of changes send their batches again
    /// after a failure before they give up. Every answer begins it anew.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same client, whose streams of changes tell of it when they wait for more than a moment: once
    /// until something gets through.
    #[must_use]
    pub fn telling_of_waiting(mut self, tell: TellOfWaiting) -> Self {
        self.tell_of_waiting = Some(tell);
        self
    }

    /// The same client for corpora of one recipe: whatever concerns the documents of others is refused with
    /// [`Reason::RecipeMismatch`].
    #[must_use]
    pub fn with_recipe(mut self, recipe: &str) -> Self {
        recipe.clone_into(&mut self.recipe);
        self
    }

    /// The same client, whose removals also remove documents that were written while a clock was over a minute ahead.
    /// Other clients are refused with [`Reason::ClockAhead`]. For operators, once the clocks of the machines are right.
    #[must_use]
    pub fn removing_beyond_clock(mut self) -> Self {
        self.beyond_clock = true;
        self
    }

    /// Creates a corpus.
    pub async fn create_corpus(
        &self,
        request: pb::CreateCorpusRequest,
    ) -> Result<pb::Corpus, ClientError> {
        let call = async |mut stub: Stub, request| stub.create_corpus(request).await;
        let answer = self.call_once(request, call).await?;
        Ok(answer.corpus.unwrap_or_default())
    }

    /// Describes a corpus and what each node holds of it.
    pub async fn get_corpus(&self, name: &str) -> Result<pb::GetCorpusResponse, ClientError> {
        let request = pb::GetCorpusRequest {
            name: name.to_owned(),
        };
        let call = async |mut stub: Stub, request| stub.get_corpus(request).await;
        self.call(&request, call).await
    }

    /// Lists all corpora, by name.
    pub async fn list_corpora(&self) -> Result<Vec<pb::Corpus>, ClientError> {
        let mut corpora = Vec::new();
        let mut request = pb::ListCorporaRequest::default();
        loop {
            let call = async |mut stub: Stub, request| stub.list_corpora(request).await;
            let page = self.call(&request, call).await?;
            corpora.extend(page.corpora);
            if page.next_page_token.is_empty() {
                return Ok(corpora);
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Lists the corpora that nodes store, by uid, whether the metadata names them or not.
    pub async fn list_stored_corpora(&self) -> Result<Vec<pb::StoredCorpus>, ClientError> {
        let call = async |mut stub: Stub, request| stub.list_stored_corpora(request).await;
        let answer = self.call(&pb::ListStoredCorporaRequest {}, call).await?;
        Ok(answer.corpora)
    }

    /// Restores the lost record of a corpus that nodes store.
    pub async fn recover_corpus(
        &self,
        request: pb::RecoverCorpusRequest,
    ) -> Result<pb::Corpus, ClientError> {
        let call = async |mut stub: Stub, request| stub.recover_corpus(request).await;
        let answer = self.call_once(request, call).await?;
        Ok(answer.corpus.unwrap_or_default())
    }

    /// Deletes a corpus and all its documents.
    pub async fn delete_corpus(&self, name: &str) -> Result<(), ClientError> {
        let request = pb::DeleteCorpusRequest {
            name: name.to_owned(),
        };
        let call = async |mut stub: Stub, request| stub.delete_corpus(request).await;
        self.call_once(request, call).await?;
        Ok(())
    }

    /// Inserts a batch; returns how many documents were new.
    pub async fn insert(&self, corpus: &str, documents: Documents) -> Result<u64, ClientError> {
        let request = insert_request(corpus, &self.recipe, documents);
        let call = async |mut stub: Stub, request| stub.insert(request).await;
        Ok(self.call(&request, call).await?.inserted_count)
    }

    /// Removes a batch; returns how many documents there were.
    pub async fn remove(&self, corpus: &str, documents: Documents) -> Result<u64, ClientError> {
        let request = remove_request(corpus, &self.recipe, documents, self.beyond_clock);
        let call = async |mut stub: Stub, request| stub.remove(request).await;
        Ok(self.call(&request, call).await?.removed_count)
    }

    /// Finds all matches of a batch. A batch whose answer would be too large is
    /// asked in halves.
    pub async fn find_all(
        &self,
        corpus: &str,
        queries: Queries,
        spec: SearchSpec,
    ) -> Result<FindAnswer, ClientError> {
        in_halves(queries, async |queries| {
            let request = self.find_all_request(corpus, queries, spec);
            let call = async |mut stub: Stub, request| stub.find_all(request).await;
            let answer = self.call(&request, call).await?;
            let matches = answer.matches.unwrap_or_default();
            Ok(FindAnswer::new(
                &answer.queries,
                matches,
                answer.completeness,
            )?)
        })
        .await
    }

    /// Finds the nearest match of each query of a batch: none or one each. A
    /// batch whose answer would be too large is asked in halves.
    pub async fn find_first(
        &self,
        corpus: &str,
        queries: Queries,
        spec: SearchSpec,
    ) -> Result<FindAnswer, ClientError> {
        in_halves(queries, async |queries| {
            let request = self.find_first_request(corpus, queries, spec);
            let call = async |mut stub: Stub, request| stub.find_first(request).await;
            let answer = self.call(&request, call).await?;
            let matches = answer.matches.unwrap_or_default();
            Ok(FindAnswer::new(
                &answer.queries,
                matches,
                answer.completeness,
            )?)
        })
        .await
    }

    /// The name of a corpus's recipe: the cheapest way to see that the corpus
    /// exists, as no node is asked.
    pub async fn recipe(&self, corpus: &str) -> Result<String, ClientError> {
        let request = pb::FingerprintRequest {
            corpus: corpus.to_owned(),
            recipe: self.recipe.clone(),
            texts: Vec::new(),
        };
        let call = async |mut stub: Stub, request| stub.fingerprint(request).await;
        Ok(self.call(&request, call).await?.recipe)
    }

    /// Turns texts into fingerprints by a corpus's recipe.
    pub async fn fingerprint(
        &self,
        corpus: &str,
        texts: Vec<String>,
    ) -> Result<Vec<Fingerprint>, ClientError> {
        let request = pb::FingerprintRequest {
            corpus: corpus.to_owned(),
            recipe: self.recipe.clone(),
            texts,
        };
        let call = async |mut stub: Stub, request| stub.fingerprint(request).await;
        let answer = self.call(&request, call).await?;
        Ok(answer.fingerprints.into_iter().map(Fingerprint).collect())
    }

    /// The same before a stream of changes: as this may wait for the router, so does the first request. It goes on for as
    /// long as the client's patience, and tells of that.
    pub async fn await_recipe(&self, corpus: &str) -> Result<String, ClientError> {
        let mut patience = Patience::new(self.patience);
        loop {
            let began = Instant::now();
            let error = match self.recipe(corpus).await {
                Ok(recipe) => return Ok(recipe),
                Err(error) if error.is_passing() => error,
                Err(error) => return Err(error),
            };
            let Some(pause) = patience.after_failure(began, Instant::now()) else {
                return Err(error);
            };
            if let (Some(tell), Some(left)) =
                (self.tell_of_waiting, patience.overdue(Instant::now()))
            {
                tell(&error, left);
            }
            sleep(pause).await;
        }
    }

    /// Makes a request that may be repeated: again, where that may help and time is left.
    async fn call<M, A, F>(
        &self,
        message: &M,
        method: impl Fn(Stub, Request<M>) -> F,
    ) -> Result<A, ClientError>
    where
        M: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let end = Instant::now() + self.timeout;
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_times(RETRIES)
            .with_jitter();
        let mut pauses = pauses.build();
        loop {
            let left = end - Instant::now();
            let error = match self.call_within(left, message.clone(), &method).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_passing() => error,
                Err(error) => return Err(error),
            };
            let pause = pauses.next();
            let Some(pause) = pause.filter(|pause| Instant::now() + *pause < end) else {
                return Err(error);
            };
            sleep(pause).await;
        }
    }

    async fn call_once<M, A, F>(
        &self,
        message: M,
        method: impl Fn(Stub, Request<M>) -> F,
    ) -> Result<A, ClientError>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        self.call_within(self.timeout, message, method).await
    }

    async fn call_within<M, A, F>(
        &self,
        time: Duration,
        message: M,
        method: impl Fn(Stub, Request<M>) -> F,
    ) -> Result<A, ClientError>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let mut request = Request::new(message);
        request.set_timeout(time);
        let answer = method(self.stub.clone(), request).await;
        answer
            .map(Response::into_inner)
            .map_err(|status| self.error(status))
    }

    pub(crate) fn error(&self, status: Status) -> ClientError {
        ClientError::from_status(status, &self.url)
    }
}

/// Does `find` with all queries, or with ever smaller parts of them where the
/// answer is too large.
async fn in_halves<F>(
    queries: Queries,
    find: impl Fn(Queries) -> F,
) -> Result<FindAnswer, ClientError>
where
    F: Future<Output = Result<FindAnswer, ClientError>>,
{
    let mut found = FindAnswer::default();
    let mut waiting = vec![queries];
    while let Some(mut queries) = waiting.pop() {
        match find(queries.clone()).await {
            Ok(answer) => found.append(answer),
            Err(error) if error.reason() == Some(Reason::AnswerTooLarge) && queries.len() > 1 => {
                let second = queries.split_off(queries.len() / 2);
                waiting.extend([second, queries]);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
