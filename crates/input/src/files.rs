//! The `files` format: folders walked in a fixed order, one document a file.
//!
//! Ignore files have no say: what is a duplicate does not depend on what is under version control.
//! Hidden files and symbolic links are passed over, except where the caller names them.
//!
//! Files of many documents are known by their names, before anything is read, and by their first bytes, once they are.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, Walk, WalkBuilder};

use crate::byte_order_mark::without_byte_order_mark;
use crate::decompress::{Decompressed, ReadError};
use crate::document::{Content, Document, MAX_RECORD_BYTES};
use crate::error::InputError;
use crate::format::Format;
use crate::html::{self, Decoded, Doubt, Extraction, Html};
use crate::ids::Ids;
use crate::looks::Looks;
use crate::next_item::NextItem;
use crate::passed::Passed;
use crate::paths::is_stdin;
use crate::refusal::{Refusal, other_file};
use crate::skipped::Skipped;
use crate::suggested;
use crate::utf16::is_utf16;

/// Bytes of a file over the limit that are looked at.
const LARGE_LOOKED_AT: u64 = 64 << 10;

/// Reads the documents below some paths, one by one.
pub(crate) struct FileDocuments {
    walk: Walk,
    roots: Vec<PathBuf>,
    /// How HTML pages become text.
    html: Html,
    ids: Ids,
    found_any: bool,
    skipped: Skipped,
    others: OtherFiles,
    /// The document of the page that was counted last.
    next: Option<NextItem>,
}

/// What is done with files that are of another format, such as those of many documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherFiles {
    /// Each is a document.
    Read,
    /// They are an error. Those that are no texts are left out instead, unless they are named as pages.
    Refused,
    /// They are left out, and counted.
    LeftOut,
}

/// Refuses paths that do not exist: a misspelt path is no unreadable file to be skipped.
pub(crate) fn check_roots(roots: &[PathBuf]) -> Result<(), InputError> {
    if roots.is_empty() {
        return Err(InputError::FilesFromStdin);
    }
    for root in roots {
        if is_stdin(root) {
            return Err(InputError::FilesFromStdin);
        }
        fs::metadata(root).map_err(InputError::unreadable(root.display()))?;
    }
    Ok(())
}

/// Counts the files below `roots` by their metadata, without those that are sure to be skipped.
pub(crate) fn count(roots: &[PathBuf]) -> u64 {
    let mut documents = 0;
    for entry in walk(roots).flatten() {
        if !is_candidate(&entry) {
            continue;
        }
        // The link itself where a root is one: follow it, as reading will.
        let bytes = fs::metadata(entry.path()).map_or(0, |metadata| metadata.len());
        if bytes <= MAX_RECORD_BYTES as u64 {
            documents += 1;
        }
    }
    documents
}

/// The paths of the files below `roots`, whether they will turn out to be documents or not, in the
/// order in which they are read. Or an error, of a folder that cannot be read.
pub(crate) fn candidates(roots: &[PathBuf]) -> impl Iterator<Item = io::Result<PathBuf>> {
    walk(roots).filter_map(|entry| match entry {
        Ok(entry) => is_candidate(&entry).then(|| Ok(entry.into_path())),
        Err(error) => Some(Err(io::Error::other(error))),
    })
}

/// The first file below `roots` whose path is as asked for, and how many steps it is below its root.
pub(crate) fn first(roots: &[PathBuf], is: impl Fn(&Path) -> bool) -> Option<(PathBuf, usize)> {
    let mut files = walk(roots).flatten().filter(is_candidate);
    let file = files.find(|entry| is(entry.path()))?;
    let depth = file.depth();
    Some((file.into_path(), depth))
}

/// Refuses folders without a file to read.
pub(crate) fn check_any(roots: &[PathBuf]) -> Result<(), InputError> {
    first(roots, |_| true)
        .map(drop)
        .ok_or_else(|| no_files(roots))
}

fn no_files(roots: &[PathBuf]) -> InputError {
    InputError::NoFiles {
        folders: named(roots),
        passed: Passed::over(roots, drop),
    }
}

impl FileDocuments {
    pub(crate) fn new(roots: &[PathBuf], html: Html, ids: Ids, others: OtherFiles) -> Self {
        Self {
            walk: walk(roots),
            roots: roots.to_vec(),
            html,
            ids,
            found_any: false,
            skipped: Skipped::default(),
            others,
            next: None,
        }
    }

    /// The next document, or what is skipped before it.
    fn next_file(&mut self) -> Option<NextItem> {
        if let Some(document) = self.next.take() {
            return Some(document);
        }
        loop {
            let entry = match self.walk.next()? {
                Ok(entry) => entry,
                Err(error) => {
                    tracing::warn!(%error, "skipped: cannot be read");
                    return Some(NextItem::Skipped(Skipped {
                        unreadable_files: 1,
                        ..Skipped::default()
                    }));
                }
            };
            if is_candidate(&entry) {
                let path = entry.path();
                let leaves_out = self.others == OtherFiles::LeftOut;
                if let Some(format) = suggested::of_many(path).filter(|_| leaves_out) {
                    tracing::warn!(?path, "skipped: looks like {format}");
                    return Some(NextItem::Skipped(other_file(&format.to_string())));
                }
                let checks = self.others != OtherFiles::Read;
                return Some(match read(path, self.ids, self.html, checks) {
                    Ok((document, extraction, doubt)) => {
                        self.found(NextItem::Document(document, extraction), doubt)
                    }
                    Err(Refusal::OtherContent(looks)) if self.refuses(looks, &entry) => {
                        NextItem::Failed(refused(&entry, looks))
                    }
                    Err(refusal) => NextItem::Skipped(refusal.record(&entry)),
                });
            }
        }
    }

    /// A document, or the count of a page whose characters are in doubt, which comes before it.
    fn found(&mut self, document: NextItem, doubt: Option<Doubt>) -> NextItem {
        let Some(doubt) = doubt else {
            return document;
        };
        self.next = Some(document);
        NextItem::Skipped(Skipped {
            doubtful_pages: doubt.into(),
            ..Skipped::default()
        })
    }

    /// Whether a file that looks like this is an error.
    fn refuses(&self, looks: Looks, entry: &DirEntry) -> bool {
        let is_named_page = entry.depth() == 0 && suggested::is_page(entry.path());
        self.others == OtherFiles::Refused && (is_named_page || looks.is_text())
    }

    /// The error at the end, if there was no file, or all were skipped. Returned once.
    fn at_end(&mut self) -> Option<NextItem> {
        if std::mem::replace(&mut self.found_any, true) {
            return None;
        }
        let skipped = std::mem::take(&mut self.skipped);
        Some(NextItem::Failed(if skipped.is_empty() {
            no_files(&self.roots)
        } else {
            InputError::NoDocuments(skipped)
        }))
    }
}

impl Iterator for FileDocuments {
    type Item = NextItem;

    fn next(&mut self) -> Option<NextItem> {
        let found = self.next_file();
        match &found {
            Some(NextItem::Document(..)) => self.found_any = true,
            Some(NextItem::Skipped(skipped)) => self.skipped += skipped,
            Some(NextItem::Failed(_)) => {}
            None => return self.at_end(),
        }
        found
    }
}

/// The error of a file that looks like something else.
fn refused(entry: &DirEntry, looks: Looks) -> InputError {
    match entry.depth() {
        0 => InputError::OtherContent {
            file: entry.path().display().to_string(),
            looks,
            taken_for: Format::Files,
        },
        _ => InputError::OtherContentInFolder {
            path: entry.path().to_owned(),
            looks,
        },
    }
}

/// Folders as a message names them.
fn named(folders: &[PathBuf]) -> String {
    match folders {
        [folder] => folder.display().to_string(),
        several => format!("the {} folders", several.len()),
    }
}

fn walk(roots: &[PathBuf]) -> Walk {
    walker(roots).build()
}

pub(crate) fn walker(roots: &[PathBuf]) -> WalkBuilder {
    let mut roots = roots.iter();
    let first = roots.next().map_or(Path::new("."), PathBuf::as_path);
    let mut builder = WalkBuilder::new(first);
    for root in roots {
        builder.add(root);
    }
    builder
        .standard_filters(false)
        .hidden(true)
        .follow_links(false)
        .sort_by_file_name(|a, b| a.cmp(b));
    builder
}

/// Whether an entry is to be read. Below a root only regular files are, since opening a named pipe would wait for ever.
/// A root itself is, whatever it is, since the caller chose it.
pub(crate) fn is_candidate(entry: &DirEntry) -> bool {
    if entry.depth() == 0 {
        return !entry.path().is_dir();
    }
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// The document of a file. If it is a page of HTML, `html` says how it becomes text; last comes what is in doubt
/// of its characters. With `checks`, it must not look like many documents or another format, even where it is too large for a
/// document.
fn read(
    path: &Path,
    ids: Ids,
    html: Html,
    checks: bool,
) -> Result<(Document, Extraction, Option<Doubt>), Refusal> {
    let id = id(path, ids).map_err(Refusal::Unnameable)?;
    let file = File::open(path).map_err(Refusal::Unreadable)?;
    let metadata = file.metadata().map_err(Refusal::Unreadable)?;
    let is_too_large = metadata.len() > MAX_RECORD_BYTES as u64;
    if is_too_large && !checks {
        return Err(Refusal::TooLarge);
    }
    let mut content = Vec::new();
    // One byte more than allowed shows a file that has grown, or that had no length.
    let most = if is_too_large {
        LARGE_LOOKED_AT
    } else {
        MAX_RECORD_BYTES as u64 + 1
    };
    let reader = Decompressed::new(path, Box::new(file)).map_err(Refusal::Unreadable)?;
    reader
        .read_to_end(&mut content, most)
        .map_err(|error| match error {
            ReadError::Refused(error) => Refusal::Unreadable(error),
            ReadError::Damaged(compression, error) => Refusal::Damaged(compression, error),
        })?;
    let is_page = suggested::is_page(path);
    if checks && let Some(looks) = Looks::of_no_document(&content, is_page) {
        return Err(Refusal::OtherContent(looks));
    }
    if is_too_large || content.len() > MAX_RECORD_BYTES {
        return Err(Refusal::TooLarge);
    }
    if is_page && html::is_no_page(&content) {
        return Err(Refusal::Binary);
    }
    let (text, html, doubt) = if is_page || html::begins_a_page(&content) {
        let Decoded { markup, doubt } = html::decoded(&content, None);
        (markup, html, doubt)
    } else {
        (plain_text(content)?, Html::Raw, None)
    };
    let extraction = Extraction {
        is_xhtml: suggested::is_xhtml(path),
        ..html.into()
    };
    if text.len() > MAX_RECORD_BYTES {
        return Err(Refusal::TooLarge);
    }
    let content = Content::Text(text);
    Ok((Document { id, content }, extraction, doubt))
}

fn plain_text(content: Vec<u8>) -> Result<String, Refusal> {
    if is_utf16(&content) {
        return Err(Refusal::Utf16);
    }
    if memchr::memchr(0, &content).is_some() {
        return Err(Refusal::Binary);
    }
    let mut text = String::from_utf8(content).map_err(|_| Refusal::InvalidUtf8)?;
    let mark = text.len() - without_byte_order_mark(text.as_bytes()).len();
    text.drain(..mark);
    Ok(text)
}

/// The id of the file at `path`, or the reason why it can have none.
fn id(path: &Path, ids: Ids) -> Result<String, String> {
    let Some(id) = path.to_str() else {
        return Err("an id is UTF-8".to_owned());
    };
    match ids.check(id) {
        Ok(()) => Ok(id.to_owned()),
        Err(problem) => Err(problem.to_string()),
    }
}
