//! Bearer tokens: a file says whose they are, and what each may do.
//!
//! # Invariants
//! - AU1: where there is a file of tokens, a method is served only to a token that is in it and has not expired. The role of
//!   the token must be enough. Health alone is open to all. A method without a rule is for administrators of all corpora.
//! - AU2: no token is stored: the file has digests.
//! - AU3: a token for some corpora opens no other one, and no method that concerns more than one.
//! - AU4: what a token opens is what the file said two looks ago at most, also for the messages of a stream that is open. If the
//!   file becomes unusable, the tokens of before stay.
//! - AU5: where peers show certificates, and there are no tokens, one URI of the certificate says who its owner is. A client
//!   gets to the methods of its role alone, and a process of the cluster to those of its part.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, fs};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use simshard_runtime::config::{self, ConfigError};
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::allowance::{Allowance, Limits};
use crate::followed::{Followed, Source};

/// What a token lets its owner do: each role may also do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Search, read whole corpora, and look at the cluster.
    Read,
    /// Insert and remove documents.
    Write,
    /// Create and delete corpora, and operate the cluster.
    Admin,
}

impl Role {
    /// What it is called in files and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// Who a caller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name of the token.
    pub name: Arc<str>,
    /// What it may do.
    pub role: Role,
    /// The corpora with which it may do that; `None` for all of them.
    pub corpora: Option<Arc<BTreeSet<String>>>,
    /// How much of that at once, and in a second.
    pub limits: Limits,
}

/// Why a file of tokens is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It has no token: each client would be refused.
    #[error("{} has no token, so each client would be refused", .0.display())]
    Empty(PathBuf),
    /// It cannot be read, or is malformed.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// An entry is wrong.
    #[error("{}: the token {name:?} {problem}", file.display())]
    Entry {
        /// The file.
        file: PathBuf,
        /// The name of the entry.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Tokens that a file has, which is read again when it changes. Clones share it.
#[derive(Clone, Debug)]
pub struct Tokens(Followed<TokenFile>);

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// If it cannot be read, or one of its entries is wrong.
    pub fn load(file: &Path) -> Result<Self, TokensError> {
        Followed::load(TokenFile(file.to_owned())).map(Self)
    }

    /// Whether a file with this text would be of use.
    ///
    /// # Errors
    /// If it is malformed, or one of its entries is wrong.
    pub fn check(file: &Path, text: &str) -> Result<(), TokensError> {
        let tokens = TokenFile(file.to_owned()).make(&text.to_owned());
        tokens.map(|_| ())
    }

    /// The file, to be followed.
    pub(super) const fn files(&self) -> &Followed<TokenFile> {
        &self.0
    }

    /// Whose digest this is, unless the token has expired or is none, and what is left of its limits, if it has any. If the
    /// file changes, its limits begin anew.
    pub(super) fn owner(
        &self,
        digest: &TokenDigest,
    ) -> Option<(Principal, Option<Arc<Allowance>>)> {
        let all = self.0.current();
        let mut found = None;
        // All are compared, whichever it is, each in the same time.
        for token in all.iter() {
            if bool::from(token.digest.0.ct_eq(&digest.0)) {
                found = Some(token);
            }
        }
        let now = SystemTime::now();
        let found = found.filter(|token| token.expires.is_none_or(|expires| now < expires));
        found.map(|token| (token.principal.clone(), token.allowance.clone()))
    }
}

/// The SHA-256 digest of a token.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(super) fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// What hexadecimal digits stand for.
    fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
        let (pairs, _) = digits.as_chunks::<2>();
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(pairs) {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            *byte = u8::try_from(high? << 4 | low?).ok()?;
        }
        Some(Self(digest))
    }
}

impl fmt::Display for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The entry by which a server knows a token: TOML, with no secret in it.
///
/// # Errors
/// If a time cannot be written.
pub fn token_entry(
    principal: &Principal,
    token: &[u8],
    expires: Option<SystemTime>,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let time = |expires| {
        let time = OffsetDateTime::from(expires).replace_nanosecond(0)?;
        Ok::<_, Box<dyn Error + Send + Sync>>(time.format(&Rfc3339)?)
    };
    let entry = Entry {
        name: principal.name.to_string(),
        role: principal.role,
        corpora: principal.corpora.as_deref().cloned(),
        expires: expires.map(time).transpose()?,
        requests_per_second: principal.limits.requests_per_second,
        in_flight_mib: principal.limits.in_flight_mib,
        sha256: TokenDigest::of(token).to_string(),
    };
    let tokens = vec![entry];
    Ok(toml::to_string(&Raw { tokens })?)
}

/// The path of a file of tokens.
#[derive(Debug)]
pub(super) struct TokenFile(PathBuf);

/// A token, as it is compared.
pub(super) struct Token {
    digest: TokenDigest,
    expires: Option<SystemTime>,
    principal: Principal,
    allowance: Option<Arc<Allowance>>,
}

/// The file, as it is written.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    tokens: Vec<Entry>,
}

/// A token of the file. The digest is last: what is cut short is no entry.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    role: Role,
    corpora: Option<BTreeSet<String>>,
    expires: Option<String>,
    requests_per_second: Option<u32>,
    in_flight_mib: Option<u32>,
    sha256: String,
}

impl Source for TokenFile {
    const WHAT: &'static str = "tokens";
    type Contents = String;
    type Made = Vec<Token>;
    type Error = TokensError;

    fn read(&self) -> Result<String, TokensError> {
        let text = fs::read_to_string(&self.0);
        Ok(text.map_err(|reason| ConfigError::Unreadable {
            path: self.0.clone(),
            reason,
        })?)
    }

    fn make(&self, contents: &String) -> Result<Vec<Token>, TokensError> {
        let raw: Raw = config::parse(&self.0, contents)?;
        if raw.tokens.is_empty() {
            return Err(TokensError::Empty(self.0.clone()));
        }
        let (mut names, mut digests) = (BTreeSet::new(), BTreeSet::new());
        // An empty token is none.
        digests.insert(TokenDigest::of(b""));
        let mut tokens = Vec::new();
        for entry in raw.tokens {
            let wrong = |problem| TokensError::Entry {
                file: self.0.clone(),
                name: entry.name.clone(),
                problem,
            };
            let token = entry.token().map_err(wrong)?;
            if !names.insert(entry.name.clone()) {
                return Err(wrong("needs a name of its own"));
            }
            if !digests.insert(token.digest.clone()) {
                return Err(wrong("has the `sha256` of another one, or that of nothing"));
            }
            tokens.push(token);
        }
        Ok(tokens)
    }
}

impl Entry {
    /// # Errors
    /// What is wrong with it.
    fn token(&self) -> Result<Token, &'static str> {
        if self.name.is_empty() {
            return Err("needs a name of its own");
        }
        if self.corpora.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err("is for no corpus: leave `corpora` out if it is for all");
        }
        let limits = Limits {
            requests_per_second: self.requests_per_second,
            in_flight_mib: self.in_flight_mib,
        };
        if [limits.requests_per_second, limits.in_flight_mib].contains(&Some(0)) {
            return Err("has a limit of 0: leave it out, or take the entry out");
        }
        let name: Arc<str> = self.name.as_str().into();
        let digest = TokenDigest::parse(&self.sha256);
        let expires = self.expires.as_deref().map(|text| {
            let time = OffsetDateTime::parse(text, &Rfc3339);
            time.map_err(|_| "has an `expires` that is no time such as \"2027-01-31T00:00:00Z\"")
        });
        Ok(Token {
            digest: digest.ok_or("has no `sha256` of 64 hexadecimal digits")?,
            expires: expires.transpose()?.map(SystemTime::from),
            allowance: Allowance::new(&name, limits),
            principal: Principal {
                name,
                role: self.role,
                corpora: self.corpora.clone().map(Arc::new),
                limits,
            },
        })
    }
}

#[cfg(test)]
mod tests;
