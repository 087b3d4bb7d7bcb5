//! The files of the demo: which ones, and their fingerprints.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use simshard_input::{Content, Document, Input, InputOptions, Needs, Skipped};
use simshard_simhash::{Fingerprint, TextRecipe};

use crate::progress;
use crate::sources::files_or_sources;

/// Text fingerprinted together, on all cores.
const BATCH_BYTES: usize = 8 << 20;

/// The files that were read, each a document whose id is its path.
pub(super) struct Files {
    roots: Vec<PathBuf>,
    pub(super) paths: Vec<String>,
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) bytes: u64,
    pub(super) skipped: Skipped,
}

impl Files {
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Adds files, given by path and text.
    fn add(&mut self, batch: Vec<(String, String)>, recipe: TextRecipe) {
        let made: Vec<Option<Fingerprint>> = batch
            .par_iter()
            .map(|(_, text)| recipe.fingerprint(text))
            .collect();
        for ((path, _), fingerprint) in batch.into_iter().zip(made) {
            match fingerprint {
                Some(fingerprint) => {
                    self.paths.push(path);
                    self.fingerprints.push(fingerprint);
                }
                None => self.skipped.unhashable_texts += 1,
            }
        }
    }

    /// The files and folders that were walked, for people.
    pub(super) fn roots_text(&self) -> String {
        let roots: Vec<String> = self
            .roots
            .iter()
            .map(|root| root.display().to_string())
            .collect();
        roots.join(", ")
    }

    /// A file's path, without the folder that was walked.
    pub(super) fn short_path(&self, file: usize) -> &str {
        let path = &self.paths[file];
        let below = |root: &PathBuf| Path::new(path).strip_prefix(root).ok();
        let short = self.roots.iter().find_map(below).and_then(Path::to_str);
        short.filter(|short| !short.is_empty()).unwrap_or(path)
    }
}

/// Reads and fingerprints the first `max_mib` MiB of text below `paths`.
pub(super) fn read(paths: &[PathBuf], max_mib: u32, recipe: TextRecipe) -> anyhow::Result<Files> {
    let roots = files_or_sources(paths);
    let mut files = Files {
        roots: roots.clone(),
        paths: Vec::new(),
        fingerprints: Vec::new(),
        bytes: 0,
        skipped: Skipped::default(),
    };
    let most = u64::from(max_mib) << 20;
    let bar = progress::bar("reading files", None);
    let mut documents = Input::open(&InputOptions::walking(roots), Needs::CLIENT)?.documents();
    let mut seen = HashSet::new();
    let mut batch = Vec::new();
    let mut batch_bytes = 0;
    for document in documents.by_ref() {
        let Document {
            id,
            content: Content::Text(text),
        } = document?
        else {
            continue;
        };
        if !seen.insert(id.clone()) {
            // Paths may overlap, as in `demo . docs`.
            continue;
        }
        if files.bytes + text.len() as u64 > most {
            break;
        }
        files.bytes += text.len() as u64;
        batch_bytes += text.len();
        batch.push((id, text));
        if batch_bytes >= BATCH_BYTES {
            bar.inc(batch.len() as u64);
            files.add(std::mem::take(&mut batch), recipe);
            batch_bytes = 0;
        }
    }
    files.add(batch, recipe);
    bar.finish_and_clear();
    files.skipped += &documents.skipped();
    Ok(files)
}
