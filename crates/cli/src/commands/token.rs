//! `simshard token new`: tokens, and the entries of the file by which a router knows them.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use simshard_cluster::CorpusName;
use simshard_router::{Limits, Principal, Tokens, token_entry};

use crate::exit::UsageError;
use crate::say::{self, note};

/// What a token begins with, so that tools find those that were published by mistake.
const PREFIX: &str = "simshard_";

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The verbs of `token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token, and the entry by which routers know it
    #[command(after_help = "\
The token goes into a file of its own, which only its owner reads: give it to
the client, by --token-file. The entry has no secret: it is added to the file
of --tokens, or printed. Routers read that file again when it changes. Take an
entry out, and its token opens nothing any more.

Roles, each with what those before it may do:
  read    search, read whole corpora, and look at the cluster
  write   insert and remove documents
  admin   create and delete corpora, and operate the cluster

Example:
  simshard token new crawler --role write --token-file crawler.token \\
    --tokens tokens.toml
  simshard serve --tokens tokens.toml
  simshard insert pages.jsonl --token-file crawler.token")]
    New(NewArgs),
}

/// Arguments of `token new`.
#[derive(Args, Debug)]
pub struct NewArgs {
    /// Whose it is, as errors and logs call its owner
    #[arg(value_name = "OWNER", value_parser = name)]
    pub name: String,
    /// What it lets its owner do
    #[arg(long, value_name = "ROLE")]
    pub role: RoleName,
    /// The file that gets the token, which must not be there yet
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: PathBuf,
    /// The file of a router that gets the entry [default: print it]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tokens: Option<PathBuf>,
    /// The only corpora that it is for [default: all]
    #[arg(long, value_name = "CORPUS,…", value_delimiter = ',', value_parser = corpus)]
    pub corpora: Vec<CorpusName>,
    /// Days until it opens nothing any more [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..))]
    pub expires_days: Option<u16>,
    /// Requests, and batches of streams, that it may begin in a second [default: any number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_second: Option<u32>,
    /// Mebibytes that its requests and answers in flight may hold [default: as all]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub in_flight_mib: Option<u32>,
}

/// The name of a role.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RoleName {
    /// Search, read whole corpora, and look at the cluster
    Read,
    /// Insert and remove documents, too
    Write,
    /// Create and delete corpora, and operate the cluster, too
    Admin,
}

impl From<RoleName> for simshard_router::Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Read => Self::Read,
            RoleName::Write => Self::Write,
            RoleName::Admin => Self::Admin,
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    if text.is_empty() || text.len() > 64 || !text.chars().all(is_plain) {
        return Err("a name has 1 to 64 letters, digits and -_.@".to_owned());
    }
    Ok(text.to_owned())
}

fn corpus(text: &str) -> Result<CorpusName, String> {
    CorpusName::new(text).map_err(|error| error.to_string())
}

pub(crate) fn run(command: &TokenCommand) -> anyhow::Result<()> {
    match command {
        TokenCommand::New(args) => make(args),
    }
}

fn make(args: &NewArgs) -> anyhow::Result<()> {
    let token = random_token()?;
    let days = args.expires_days.map(u32::from);
    let expires = days.map(|days| SystemTime::now() + DAY * days);
    let corpora = args.corpora.iter().map(ToString::to_string);
    let principal = Principal {
        name: args.name.as_str().into(),
        role: args.role.into(),
        corpora: (!args.corpora.is_empty()).then(|| Arc::new(corpora.collect())),
        limits: Limits {
            requests_per_second: args.requests_per_second,
            in_flight_mib: args.in_flight_mib,
        },
    };
    let entry = token_entry(&principal, token.as_bytes(), expires);
    let entry = entry.map_err(|error| anyhow!(error).context("cannot write the entry"))?;
    write_secret(&args.token_file, &token)?;
    let told = match &args.tokens {
        Some(tokens) => append(tokens, &entry),
        None => say::print(entry.trim_end()),
    };
    if told.is_err() {
        // No server knows it.
        let _ = fs::remove_file(&args.token_file);
    }
    told?;
    note(format!(
        "{} has the token: only its owner is to read it",
        args.token_file.display()
    ));
    Ok(())
}

fn random_token() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the system gives no random bytes")?;
    Ok(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

/// Writes a file that only its owner reads.
fn write_secret(file: &Path, secret: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(file);
    let written = opened.and_then(|mut file| writeln!(file, "{secret}"));
    written.with_context(|| format!("cannot write {}", file.display()))
}

/// Adds an entry to a file of tokens. Refuses one that would make the file useless: another has its name, say.
fn append(tokens: &Path, entry: &str) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", tokens.display());
    let mut options = OpenOptions::new();
    let opened = options.create(true).read(true).append(true).open(tokens);
    let mut file = opened.with_context(cannot)?;
    // Another command may add one at the same time.
    file.lock().with_context(cannot)?;
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(cannot)?;
    let gap = if text.is_empty() { "" } else { "\n" };
    let more = format!("{gap}{entry}");
    let checked = Tokens::check(tokens, &format!("{text}{more}"));
    checked.map_err(|error| UsageError(error.to_string()))?;
    file.write_all(more.as_bytes()).with_context(cannot)
}
