//! Who may call which method.

use crate::certified::Party;
use crate::tokens::Role;

/// Whatever state a server is in, those that watch it may ask.
pub(super) const HEALTH: &str = "grpc.health.v1.Health";

pub(super) const CORPUS_SERVICE: &str = "simshard.v1.CorpusService";

pub(super) const ADMIN_SERVICE: &str = "simshard.admin.v1.AdminService";

pub(super) const SHARD_SERVICE: &str = "simshard.shard.v1.ShardService";

/// What a method is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The corpora that its request names, or those that the caller may know.
    Named,
    /// All corpora, or the cluster.
    All,
}

/// Who may call a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Clients with this role, or one that may do more.
    Clients(Role),
    /// What has a certificate of one of these.
    Parties(&'static [Party]),
}

/// Clients that may look.
const READERS: Who = Who::Clients(Role::Read);

/// Clients that may change documents.
const WRITERS: Who = Who::Clients(Role::Write);

/// Clients that may do all.
pub(super) const ADMINS: Who = Who::Clients(Role::Admin);

/// What a caller needs for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) who: Who,
    pub(super) scope: Scope,
}

/// That of a method without a rule.
const MOST: Need = Need {
    who: ADMINS,
    scope: Scope::All,
};

/// What each method but those of health asks for.
pub(super) const RULES: [(&str, Who, Scope, &[&str]); 13] = [
    (
        "grpc.reflection.v1.ServerReflection",
        READERS,
        Scope::Named,
        &["ServerReflectionInfo"],
    ),
    (
        "grpc.reflection.v1alpha.ServerReflection",
        READERS,
        Scope::Named,
        &["ServerReflectionInfo"],
    ),
    (
        CORPUS_SERVICE,
        READERS,
        Scope::Named,
        &[
            "GetCorpus",
            "ListCorpora",
            "FindFirst",
            "FindAll",
            "FindFirstStream",
            "FindAllStream",
            "Scan",
            "FindPairs",
            "FindClusters",
            "Fingerprint",
        ],
    ),
    (
        CORPUS_SERVICE,
        WRITERS,
        Scope::Named,
        &["Insert", "Remove", "InsertStream", "RemoveStream"],
    ),
    (
        CORPUS_SERVICE,
        ADMINS,
        Scope::Named,
        &["CreateCorpus", "DeleteCorpus"],
    ),
    (
        CORPUS_SERVICE,
        ADMINS,
        Scope::All,
        &["ListStoredCorpora", "RecoverCorpus"],
    ),
    (
        ADMIN_SERVICE,
        READERS,
        Scope::All,
        &[
            "GetStatus",
            "ListNodes",
            "ListShards",
            "GetPlan",
            "GetUpgrade",
        ],
    ),
    (
        ADMIN_SERVICE,
        ADMINS,
        Scope::All,
        &[
            "DrawPlan",
            "ApplyPlan",
            "AbortPlan",
            "PauseMoves",
            "ResumeMoves",
            "MoveShards",
            "FreeShards",
            "DrainNode",
            "UndrainNode",
            "ReplaceNode",
            "RemoveNode",
            "SetReplication",
            "SetZone",
            "SetCapacity",
            "SetLimits",
            "FinalizeUpgrade",
        ],
    ),
    (
        SHARD_SERVICE,
        Who::Parties(&[Party::Router]),
        Scope::All,
        &[
            "CreateCorpus",
            "DeleteCorpus",
            "ListCorpora",
            "DescribeCorpus",
            "Scan",
            "FindPairs",
            "LookUp",
        ],
    ),
    (
        SHARD_SERVICE,
        Who::Parties(&[Party::Router, Party::Node]),
        Scope::All,
        &["Work"],
    ),
    (
        SHARD_SERVICE,
        Who::Parties(&[Party::Router, Party::Node, Party::Client(Role::Admin)]),
        Scope::All,
        &["Ping"],
    ),
    (
        SHARD_SERVICE,
        Who::Parties(&[Party::Node]),
        Scope::All,
        &["ListRecords", "TellRecords", "CopyShard"],
    ),
    (
        SHARD_SERVICE,
        Who::Parties(&[Party::Client(Role::Admin)]),
        Scope::All,
        &["ScrubShard", "SumCells", "SettleShards"],
    ),
];

impl Who {
    pub(super) fn has(self, party: Party) -> bool {
        match (self, party) {
            (Self::Clients(least), Party::Client(role)) => least <= role,
            (Self::Clients(_), Party::Router | Party::Node) => false,
            (Self::Parties(parties), party) => parties.contains(&party),
        }
    }

    /// Those that may, in words.
    pub(super) fn names(self) -> String {
        match self {
            Self::Clients(least) => format!("the role {}", least.name()),
            Self::Parties(parties) => {
                let names = parties.iter().map(|party| party.name());
                format!("certificates of {}", Vec::from_iter(names).join(", "))
            }
        }
    }
}

/// What a method asks for; `None` if it is open to all.
pub(super) fn need_of(path: &str) -> Option<Need> {
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    match parts {
        Some((HEALTH, _)) => None,
        Some((service, method)) => Some(rule_for(service, method).unwrap_or(MOST)),
        None => Some(MOST),
    }
}

pub(super) fn rule_for(service: &str, method: &str) -> Option<Need> {
    let mut rules = RULES.iter();
    let rule = rules.find(|(of, .., methods)| *of == service && methods.contains(&method));
    rule.map(|&(_, who, scope, _)| Need { who, scope })
}
