//! What a cluster of processes consists of.

/// What a cluster of processes is made of. By default it has one router, and one replica of each shard.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many nodes it has.
    pub nodes: usize,
    /// How many routers.
    pub routers: usize,
    /// How many replicas each shard has.
    pub replicas: usize,
    /// How many of those answer searches.
    pub hot: usize,
    /// How long nodes leave a shard without a replica, in seconds; as by default if it is not given.
    pub replace_seconds: Option<u32>,
}

impl Shape {
    /// A cluster of this many nodes.
    #[must_use]
    pub const fn of(nodes: usize) -> Self {
        Self {
            nodes,
            routers: 1,
            replicas: 1,
            hot: 1,
            replace_seconds: None,
        }
    }

    /// The same with this many replicas of each shard, all of which answer searches.
    #[must_use]
    pub const fn with_replicas(self, replicas: usize) -> Self {
        Self {
            replicas,
            hot: replicas,
            ..self
        }
    }

    /// The same where this many replicas of each shard answer searches.
    #[must_use]
    pub const fn with_hot(self, hot: usize) -> Self {
        Self { hot, ..self }
    }

    /// The arguments of `cluster init` for it.
    pub(crate) fn init_args(self) -> Vec<String> {
        let counts = [
            ("--nodes", self.nodes),
            ("--replicas", self.replicas),
            ("--hot", self.hot),
        ];
        let counts = counts.map(|(option, count)| format!("{option}={count}"));
        let command = ["cluster", "init"].map(str::to_owned);
        command.into_iter().chain(counts).collect()
    }

    /// The arguments of its nodes.
    pub(crate) fn node_args(self) -> Vec<String> {
        let replace = self.replace_seconds;
        let replace = replace.map(|seconds| format!("--replace-seconds={seconds}"));
        replace.into_iter().collect()
    }
}
