//! Names of the live system that a shell completes: corpora as the router lists them, nodes as they have registered.
//!
//! If the router or the metadata does not answer at once, nothing is completed. No error is printed either: it would
//! land in the line that a user is typing.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use simshard_client::Client;
use simshard_cluster::{key_values_with, registered_stores};
use tokio::time::timeout;

use crate::args::{EtcdAccessArgs, RouterAccessArgs};
use crate::connection::{DEFAULT_ROUTER, block_on};

/// The variable by which the script of a shell asks this program for candidates.
pub const VARIABLE: &str = "SIMSHARD_COMPLETE";

/// How long a shell waits for names.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The corpora of the router that the line, the environment or the default names.
pub(crate) fn corpora() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let router = said("--router", "SIMSHARD_ROUTER");
        let router = router.unwrap_or_else(|| DEFAULT_ROUTER.to_owned());
        candidates(async {
            let client = Client::with_access(&router, &said_router_access().load()?)?;
            let client = client.with_timeout(PATIENCE);
            let corpora = client.list_corpora().await?;
            let named = |corpus: simshard_client::v1::Corpus| (corpus.name, corpus.recipe);
            Ok(corpora.into_iter().map(named).collect())
        })
    })
}

/// The nodes that have registered in the metadata that the line or the environment names.
pub(crate) fn nodes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(metadata) = said("--metadata", "SIMSHARD_METADATA") else {
            return Vec::new();
        };
        candidates(async {
            let keys = key_values_with(&metadata, &said_access().load()?)?;
            let stores = registered_stores(&*keys).await?.into_iter();
            let named = stores.map(|store| (store.node.to_string(), store.address.to_string()));
            Ok(named.collect())
        })
    })
}

/// What the line and the environment say of the access to the router.
fn said_router_access() -> RouterAccessArgs {
    RouterAccessArgs {
        ca: said_file("--ca", "SIMSHARD_CA"),
        cert: said_file("--cert", "SIMSHARD_CERT"),
        key: said_file("--key", "SIMSHARD_KEY"),
        token_file: said_file("--token-file", "SIMSHARD_TOKEN_FILE"),
    }
}

fn said_file(option: &str, variable: &str) -> Option<PathBuf> {
    said(option, variable).map(PathBuf::from)
}

/// What the line and the environment say of the access to etcd.
fn said_access() -> EtcdAccessArgs {
    let file = said_file;
    EtcdAccessArgs {
        metadata_ca: file("--metadata-ca", "SIMSHARD_METADATA_CA"),
        metadata_cert: file("--metadata-cert", "SIMSHARD_METADATA_CERT"),
        metadata_key: file("--metadata-key", "SIMSHARD_METADATA_KEY"),
        metadata_user: said("--metadata-user", "SIMSHARD_METADATA_USER"),
        metadata_password_file: file(
            "--metadata-password-file",
            "SIMSHARD_METADATA_PASSWORD_FILE",
        ),
    }
}

/// Names, each with its description; none if there is no answer in time.
fn candidates(
    names: impl Future<Output = anyhow::Result<Vec<(String, String)>>>,
) -> Vec<CompletionCandidate> {
    let names = block_on(async { timeout(PATIENCE, names).await? });
    let mut names = names.unwrap_or_default();
    names.sort();
    let candidate =
        |(name, about): (String, String)| CompletionCandidate::new(name).help(Some(about.into()));
    names.into_iter().map(candidate).collect()
}

/// The value of an option in the line that is being completed, else of its variable.
fn said(option: &str, variable: &str) -> Option<String> {
    let words = env::args_os().filter_map(|word| word.into_string().ok());
    value_of(option, words).or_else(|| env::var(variable).ok())
}

/// Bash cuts a word before and behind each `:` and `=`: `--router=http://host` comes as `--router`, `=`, `http`, `:` and
/// `//host`. Other shells hand words on whole.
fn value_of(option: &str, words: impl Iterator<Item = String>) -> Option<String> {
    let mut words = words.peekable();
    let value = loop {
        let word = words.next()?;
        if word == option {
            words.next_if(|word| word == "=");
            break words.next()?;
        }
        let value = word.strip_prefix(option);
        if let Some(value) = value.and_then(|rest| rest.strip_prefix('=')) {
            break value.to_owned();
        }
    };
    let is_cut = |word: &str| word == ":" || word == "=";
    let mut whole = value;
    while let Some(sign) = words.next_if(|word| is_cut(word)) {
        whole += &sign;
        let is_end = |word: &str| is_cut(word) || word.starts_with("--");
        whole += &words.next_if(|word| !is_end(word)).unwrap_or_default();
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_line_has_its_value_behind_it_or_behind_a_sign() {
        let value = |line: &str| value_of("--router", line.split(' ').map(str::to_owned));
        assert_eq!(value("find --router a --corpus"), Some("a".to_owned()));
        assert_eq!(value("find --router=b --corpus"), Some("b".to_owned()));
        assert_eq!(value("find --routers=b --corpus"), None);
        assert_eq!(value("find --router"), None);
    }

    #[test]
    fn what_bash_cut_is_one_value_again() {
        let value = |line: &str| value_of("--router", line.split(' ').map(str::to_owned));
        let whole = Some("http://[::1]:7460".to_owned());
        assert_eq!(
            value("find --router http : //[ : : 1] : 7460 --corpus"),
            whole
        );
        assert_eq!(value("find --router = http : //[ : : 1] : 7460"), whole);
        assert_eq!(
            value("find --router http : --corpus"),
            Some("http:".to_owned())
        );
    }
}
