//! Which files of a crate import which.

use std::collections::{BTreeMap, BTreeSet};

use super::reader::Source;
use crate::rust_source::has_word;

/// The names that lead from the root of a crate to a module.
type Path = Vec<String>;

/// The files of a crate and the imports between them.
pub(super) struct Graph {
    modules: BTreeMap<Path, Module>,
    edges: BTreeMap<Path, BTreeSet<Path>>,
}

struct Module {
    file: String,
    source: Source,
}

impl Graph {
    /// The imports between files, given by their paths below `src`.
    pub(super) fn of(files: &BTreeMap<String, String>) -> Self {
        let mut graph = Self {
            modules: BTreeMap::new(),
            edges: BTreeMap::new(),
        };
        for (file, text) in files {
            if let Some(path) = module_path(file) {
                let (file, source) = (file.clone(), Source::of(text));
                graph.modules.insert(path, Module { file, source });
            }
        }
        for path in graph.modules.keys() {
            graph.edges.insert(path.clone(), graph.imported_by(path));
        }
        graph
    }

    /// The files that reach each other, circle by circle.
    pub(super) fn circles(&self) -> BTreeSet<BTreeSet<Path>> {
        let paths = self.modules.keys();
        let reached: BTreeMap<_, _> = paths.map(|path| (path, self.reached_from(path))).collect();
        let mut circles = BTreeSet::new();
        for (path, ahead) in &reached {
            let returns = |next: &&Path| reached[*next].contains(*path);
            let circle: BTreeSet<Path> = ahead.iter().filter(returns).cloned().collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles
    }

    /// Whether all files of a circle are at home in one folder.
    pub(super) fn is_within_one_folder(&self, circle: &BTreeSet<Path>) -> bool {
        let mut homes = circle.iter().map(|path| self.homes(path));
        let first = homes.next().unwrap_or_default();
        let common = homes.fold(first, |common, homes| &common & &homes);
        !common.is_empty()
    }

    /// The circle, in words.
    pub(super) fn describe(&self, circle: &BTreeSet<Path>) -> String {
        let files: BTreeSet<&str> = circle
            .iter()
            .map(|path| self.modules[path].file.as_str())
            .collect();
        let files: Vec<&str> = files.into_iter().collect();
        let (last, others) = files.split_last().unwrap_or((&"nothing", &[]));
        format!("{} and {last} import each other", others.join(", "))
    }

    /// Whether one file imports the other.
    pub(super) fn has_edge(&self, from: &str, to: &str) -> bool {
        let (from, to) = (module_path(from), module_path(to));
        let edges = from.and_then(|from| self.edges.get(&from));
        edges.is_some_and(|edges| to.is_some_and(|to| edges.contains(&to)))
    }

    /// The folders that a file is at home in: where it is, and that of its name.
    fn homes(&self, path: &Path) -> BTreeSet<Path> {
        let mut homes = BTreeSet::new();
        if let Some((_, folder)) = path.split_last() {
            homes.insert(folder.to_vec());
        }
        let has_folder = |other: &Path| other.len() > path.len() && other.starts_with(path);
        if self.modules.keys().any(has_folder) {
            homes.insert(path.clone());
        }
        homes
    }

    fn reached_from(&self, path: &Path) -> BTreeSet<Path> {
        let mut reached = BTreeSet::new();
        let mut open = vec![path];
        while let Some(path) = open.pop() {
            for next in &self.edges[path] {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    }

    /// The files that one imports, by `use` or by a path in its code.
    fn imported_by(&self, path: &Path) -> BTreeSet<Path> {
        let source = &self.modules[path].source;
        let mut targets = Vec::new();
        for import in &source.imports {
            // A name that is only passed on is not used here.
            if !import.is_public || has_word(&source.rest, &import.name) {
                targets.push(import.path.clone());
            }
        }
        let children = self.modules.keys().filter_map(|child| {
            let (name, parent) = child.split_last()?;
            (parent == path.as_slice()).then_some(name.as_str())
        });
        for first in ["crate", "super"].into_iter().chain(children) {
            targets.extend(source.paths(first));
        }
        let absolute = targets
            .iter()
            .filter_map(|names| self.absolute(path, names));
        let mut imported: BTreeSet<Path> = absolute
            .filter_map(|target| self.resolve(&target, &mut BTreeSet::new()))
            .collect();
        imported.remove(path);
        imported
    }

    /// A path from the root, if it leads into this crate.
    fn absolute(&self, module: &Path, names: &[String]) -> Option<Path> {
        let first = names.first()?;
        if first == "crate" {
            return Some(names[1..].to_vec());
        }
        if first == "self" {
            return Some([module, &names[1..]].concat());
        }
        let ups = names.iter().take_while(|name| *name == "super").count();
        let child = [module.as_slice(), std::slice::from_ref(first)].concat();
        if ups == 0 && !self.modules.contains_key(&child) {
            return None;
        }
        let base = module.len().checked_sub(ups)?;
        Some([&module[..base], &names[ups..]].concat())
    }

    /// The file that has what a path names, looking through files that pass the name on.
    fn resolve(&self, target: &[String], seen: &mut BTreeSet<Path>) -> Option<Path> {
        if !seen.insert(target.to_vec()) {
            return None;
        }
        let longest = (0..=target.len())
            .rev()
            .find(|&length| self.modules.contains_key(&target[..length]))?;
        let (module, rest) = target.split_at(longest);
        let module = module.to_vec();
        let Some(name) = rest.first() else {
            return Some(module);
        };
        let imports = self.modules[&module].source.imports.iter();
        let mut named = imports.filter(|import| import.name == *name);
        let passed_on = named.next().and_then(|import| {
            let target = self.absolute(&module, &import.path)?;
            Some([&target, &rest[1..]].concat())
        });
        match passed_on {
            Some(target) => self.resolve(&target, seen),
            None => Some(module),
        }
    }
}

/// The module of a file; `None` for that of a program, which no other file imports.
fn module_path(file: &str) -> Option<Path> {
    let names = file.strip_suffix(".rs")?.split('/').map(str::to_owned);
    let mut path: Path = names.collect();
    if path == ["main"] {
        return None;
    }
    if path == ["lib"] || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    Some(path)
}
