//! A typed client for the Simshard `CorpusService`: deadlines, retries, and
//! batches that fit the limits of the service.
//!
//! ```no_run
//! # async fn example() -> Result<(), simshard_client::ClientError> {
//! use simshard_client::{Client, Documents, SearchSpec, Fingerprint, Queries};
//!
//! let client = Client::new("http://127.0.0.1:7460")?;
//! let documents = Documents {
//!     keys: Queries::Texts(vec!["the cat sat on the mat".into()]),
//!     ids: vec!["page-1".into()],
//! };
//! client.insert("default", documents).await?;
//! let queries = Queries::Fingerprints(vec![Fingerprint(1)]);
//! let found = client.find_all("default", queries, SearchSpec::default()).await?;
//! println!("{} matches", found.queries[0].matches.len());
//! # Ok(())
//! # }
//! ```

mod access;
mod batch;
mod client;
mod corpus_streams;
mod error;
mod find;
mod patience;
mod resend;
mod streams;

pub use access::{Access, Bearer};
pub use batch::{Batcher, Documents, Queries};
pub use client::{Client, Stub, TellOfWaiting};
pub use corpus_streams::{ClusterMember, Document, DocumentPair, Pairs};
pub use error::ClientError;
pub use find::{FindAnswer, Match, Missing, QueryMatches, similarity};
pub use resend::Acknowledged;
pub use simshard_proto::{MAX_BATCH, MAX_ID_BYTES, MAX_MESSAGE_BYTES, Reason, SearchSpec, v1};
pub use simshard_simhash::{Fingerprint, LeadGroups};
