//! The names in a folder as readers see them and as the disk has them.

use std::collections::BTreeMap;

use fastrand::Rng;

/// What a name stands for: a file or a folder, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File(usize),
    Folder(usize),
}

/// A change of names, which reaches the disk whole or not at all.
#[derive(Clone, Debug)]
enum Change {
    Add(String, Node),
    Rename(String, String, Node),
    Remove(String),
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Add(name, node) => drop(names.insert(name.clone(), *node)),
            Self::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            Self::Remove(name) => drop(names.remove(name)),
        }
    }
}

/// The names in a folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The names that readers see.
    pub(super) now: BTreeMap<String, Node>,
    /// What is on disk for sure.
    synced: BTreeMap<String, Node>,
    /// What was changed since, in order.
    changes: Vec<Change>,
}

impl Names {
    /// These names, all of them on disk.
    pub(super) fn on_disk(now: BTreeMap<String, Node>) -> Self {
        Self {
            synced: now.clone(),
            now,
            changes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, name: &str, node: Node) {
        self.change(Change::Add(name.to_owned(), node));
    }

    /// Gives what is there another name; says whether it is there.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(&node) = self.now.get(from) else {
            return false;
        };
        self.change(Change::Rename(from.to_owned(), to.to_owned(), node));
        true
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.change(Change::Remove(name.to_owned()));
    }

    pub(super) fn sync(&mut self) {
        self.synced = self.now.clone();
        self.changes.clear();
    }

    /// What a crash may leave: of all changes that were not synced none, all, the first ones, or any.
    pub(super) fn mixed(&self, rng: &mut Rng) -> BTreeMap<String, Node> {
        let count = self.changes.len();
        let (first, any) = match rng.u8(..4) {
            0 => (0, false),
            1 => (count, false),
            2 => (rng.usize(..=count), false),
            _ => (0, true),
        };
        let mut names = self.synced.clone();
        for (place, change) in self.changes.iter().enumerate() {
            if place < first || (any && rng.bool()) {
                change.apply(&mut names);
            }
        }
        names
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.changes.push(change);
    }
}
