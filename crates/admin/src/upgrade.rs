//! Which versions run, and the level that they permit the cluster.

use std::collections::BTreeSet;

use serde_json::json;
use simshard_cluster::{MetadataError, RegisteredStore, RunningProcess, Upgrade};
use simshard_topology::NodeId;

use crate::finding::{Finding, finding};
use crate::nodes::Asked;
use crate::{Admin, AdminError, Repeats};

/// What a process does in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A node.
    Node,
    /// A router.
    Router,
}

impl Role {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Router => "router",
        }
    }
}

/// A node or a router.
#[derive(Clone, Debug)]
pub struct Process {
    /// What it does.
    pub role: Role,
    /// The name of a node, or the address of a router.
    pub name: String,
    /// What it shows of itself. `None` if it does not run, or is of an earlier version.
    pub shown: Option<RunningProcess>,
    /// Why the level cannot be raised yet.
    pub problem: Option<String>,
}

/// The level of a cluster, and the processes that permit another one, or do not.
#[derive(Clone, Debug)]
pub struct UpgradeState {
    /// The level of now.
    pub level: u32,
    /// The newest one that this program knows.
    pub next: u32,
    /// The nodes, then the routers.
    pub processes: Vec<Process>,
}

impl UpgradeState {
    /// The names of the processes that keep the level from being raised. None if it is the newest already.
    #[must_use]
    pub fn waits_for(&self) -> Vec<&str> {
        let is_open = self.level < self.next;
        let processes = self.processes.iter();
        let waits_for = processes.filter(|process| is_open && process.problem.is_some());
        waits_for.map(|process| &*process.name).collect()
    }

    /// What keeps the level from being raised, of the processes of these names.
    fn problems(&self, obstacles: &[String]) -> Vec<String> {
        let processes = self.processes.iter();
        let processes = processes.filter(|process| obstacles.contains(&process.name));
        let problems = processes.filter_map(|process| {
            let problem = process.problem.as_ref()?;
            Some(format!(
                "{} {} {problem}",
                process.role.name(),
                process.name
            ))
        });
        problems.collect()
    }

    fn of(upgrade: &Upgrade, asked: &Asked) -> Self {
        Self {
            level: upgrade.level,
            next: upgrade.next,
            processes: processes(upgrade, asked),
        }
    }
}

impl Admin<'_> {
    /// Which versions run, and what keeps the level from rising.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn upgrade(&self) -> Result<UpgradeState, AdminError> {
        let upgrade = Upgrade::read(self.keys).await?;
        Ok(UpgradeState::of(&upgrade, &self.ask_all().await?))
    }

    /// What is to be known before the level rises: routers that do not show themselves. `None` if it is the newest already.
    /// Nodes that are `stopped` keep it from nothing.
    ///
    /// # Errors
    /// If a process keeps the level from being raised, or a node that is `stopped` has not registered.
    pub async fn question_before_finalize(
        &self,
        stopped: &[NodeId],
    ) -> Result<(u32, Option<String>), AdminError> {
        let (upgrade, _) = self.checked(stopped).await?;
        let is_open = upgrade.level < upgrade.next;
        Ok((upgrade.level, is_open.then(|| question(&upgrade))))
    }

    /// Raises the level to the newest one that this program knows, and answers it.
    ///
    /// # Errors
    /// If a process keeps the level from being raised, or a node that is `stopped` has not registered.
    pub async fn finalize(&self, stopped: &[NodeId]) -> Result<u32, AdminError> {
        let mut repeats = Repeats::default();
        loop {
            let (upgrade, stopped) = self.checked(stopped).await?;
            let next = upgrade.next;
            match upgrade.raise(self.keys, &stopped).await {
                Err(MetadataError::Raced) if repeats.wait().await => {}
                raised => return Ok(raised.map(|()| next)?),
            }
        }
    }

    /// The processes of a cluster, if none keeps the level from being raised, and the nodes that are stopped. These are those
    /// that an operator calls so, and that do not answer.
    async fn checked(&self, stopped: &[NodeId]) -> Result<(Upgrade, Vec<NodeId>), AdminError> {
        for node in stopped {
            self.check_known(node).await?;
        }
        let upgrade = Upgrade::read(self.keys).await?;
        if upgrade.level == upgrade.next {
            return Ok((upgrade, Vec::new()));
        }
        let asked = self.ask_all().await?;
        let runs = |node: &NodeId| {
            let mut asked = asked.iter();
            asked.any(|(store, reports)| store.node == *node && reports.is_some())
        };
        let stopped = stopped.iter().filter(|node| !runs(node));
        let stopped: Vec<NodeId> = stopped.cloned().collect();
        let obstacles = upgrade.obstacles(&stopped);
        let problems = UpgradeState::of(&upgrade, &asked).problems(&obstacles);
        if !problems.is_empty() {
            return Err(AdminError::Refused(format!(
                "the level stays {}: {}",
                upgrade.level,
                problems.join("; ")
            )));
        }
        Ok((upgrade, stopped))
    }
}

/// The nodes, then the routers.
fn processes(upgrade: &Upgrade, asked: &Asked) -> Vec<Process> {
    let nodes = upgrade.nodes.iter().map(|(store, shown)| Process {
        role: Role::Node,
        name: store.node.to_string(),
        problem: problem(upgrade, shown.as_ref(), || unshown(store, asked)),
        shown: shown.clone(),
    });
    let routers = upgrade.routers.iter().map(|shown| Process {
        role: Role::Router,
        name: shown.router.clone().unwrap_or_default(),
        problem: problem(upgrade, Some(shown), String::new),
        shown: Some(shown.clone()),
    });
    nodes.chain(routers).collect()
}

/// Whether the node of a store answered.
fn answers(asked: &Asked, store: &RegisteredStore) -> bool {
    let mut asked = asked.iter();
    asked.any(|(other, answer)| other.id == store.id && answer.is_some())
}

/// What keeps the level from being raised, of a process. `unshown` says it of one that shows nothing.
fn problem(
    upgrade: &Upgrade,
    process: Option<&RunningProcess>,
    unshown: impl FnOnce() -> String,
) -> Option<String> {
    let too_old = |_| format!("does not know level {}: upgrade it", upgrade.next);
    (!upgrade.is_ready(process)).then(|| process.map_or_else(unshown, too_old))
}

/// Why a node that shows nothing keeps the level from being raised.
fn unshown(store: &RegisteredStore, asked: &Asked) -> String {
    let name = &store.node;
    if answers(asked, store) {
        return "runs an earlier version: upgrade it".to_owned();
    }
    format!(
        "does not answer: start it with this version; if it is gone for good, forget it by `simshard cluster remove {name}`, or \
         give --stopped {name}"
    )
}

/// What an operator is to know before the level rises: routers that do not show themselves.
fn question(upgrade: &Upgrade) -> String {
    let shown = upgrade.routers.iter();
    let shown: Vec<&str> = shown
        .filter_map(|process| process.router.as_deref())
        .collect();
    let shown = match &*shown.join(", ") {
        "" => "none".to_owned(),
        shown => shown.to_owned(),
    };
    format!(
        "routers of versions before level 2 do not show themselves; those that do: {shown}. Does no other router run, and \
         is the level to be {} for good?",
        upgrade.next
    )
}

/// The level of the cluster, and the versions that run. A node that runs, and does not know the level, is to be replaced.
pub(crate) fn versions(upgrade: &Upgrade, asked: &Asked) -> Finding {
    let Upgrade { level, next, .. } = upgrade;
    let nodes = upgrade.nodes.iter();
    let nodes: Vec<_> = nodes.filter(|(store, _)| answers(asked, store)).collect();
    // Level 1 is that of versions that do not show themselves.
    let knows = |process: &Option<RunningProcess>| {
        let process = process.as_ref();
        process.map_or(*level == 1, |process| process.knows(*level))
    };
    let late = nodes.iter().filter(|(_, process)| !knows(process));
    let late: Vec<String> = late.map(|(store, _)| store.node.to_string()).collect();
    let of_nodes = nodes.iter().map(|(_, process)| process.as_ref());
    let of_routers = upgrade.routers.iter().map(Some);
    let versions = of_nodes.chain(of_routers).map(|process| {
        let version = process.map(|process| process.version.clone());
        version.unwrap_or_else(|| "earlier".to_owned())
    });
    let versions: BTreeSet<String> = versions.collect();
    let names = Vec::from_iter(versions.iter().map(String::as_str)).join(", ");
    let mut details = format!("level {level}; versions: {names}");
    if level < next {
        details += &format!("; `simshard cluster upgrade finalize` raises the level to {next}");
    }
    if !late.is_empty() {
        details += &format!("; too old for the level: {}: upgrade them", late.join(","));
    }
    let facts = json!({ "level": level, "next": next, "versions": versions, "too_old": late });
    finding("versions", late.is_empty(), details, facts)
}
