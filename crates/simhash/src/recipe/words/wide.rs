//! The words of text in common scripts, found character by character with a table.
//!
//! # Cutting
//!
//! A text can be cut before every character that ends words (WB999), as before the ASCII characters that
//! [`ascii`](super::ascii) lists. No rule joins such a character to the one before it, or reaches across it. The table
//! has many more of them, and Han and Hiragana too.
//!
//! # Words
//!
//! A piece has no mark or format character, no Hebrew letter and no regional indicator. Nor does it follow a joiner.
//! So the rules come to this: letters, digits and underscores hold together (WB5, WB8-10, WB13a, WB13b), and so do
//! Katakana and underscores (WB13, WB13a, WB13b). One character between two letters (WB6, WB7) or between two digits
//! (WB11, WB12) joins them, if it is of the right class. ([`Class`] has all.)

use xxhash_rust::xxh3::xxh3_64;

use super::classes::{Class, Classes};
use super::hash_word;

/// Most bytes of a piece.
const PIECE: usize = 1024;

/// A piece ends where this much ASCII follows, as vectors go through it faster.
const ASCII_AHEAD: usize = 24;

/// Hashes the words of pieces in common scripts.
pub(super) struct WideWords {
    classes: &'static Classes,
    hashes: Vec<u64>,
    /// A word in lower case.
    lowered: String,
}

impl WideWords {
    pub(super) fn new() -> Self {
        Self {
            classes: Classes::get(),
            hashes: Vec::with_capacity(PIECE),
            lowered: String::new(),
        }
    }

    /// The length of the piece that begins a text, maybe 0, and the hashes of its words in their order.
    pub(super) fn hashes(&mut self, text: &str) -> (usize, &[u64]) {
        let window = &text[..text.floor_char_boundary(PIECE)];
        self.hashes.clear();
        let (length, count) = self.find(window, window.len() == text.len());
        (length, &self.hashes[..count])
    }

    /// Hashes words until the piece must end. Returns its length, and how many words it has.
    fn find(&mut self, window: &str, is_end: bool) -> (usize, usize) {
        let mut word = Word::NONE;
        let mut cut = (0, 0);
        let mut is_blank_before = true;
        for (at, character) in window.char_indices() {
            let class = self.classes.of(character);
            // The two commonest classes are asked for first: these branches are predicted, and a jump by class is not.
            if class == Class::Letter {
                self.add(window, &mut word, at, class);
            } else if class == Class::Alone {
                self.close(window, &mut word, at);
                cut = (at, self.hashes.len());
                let end = at + character.len_utf8();
                self.hashes.push(xxh3_64(&window.as_bytes()[at..end]));
            } else if class == Class::Rare {
                return cut;
            } else if class.is_of_words() {
                self.add(window, &mut word, at, class.lower());
                word.has_upper |= class == Class::Upper;
            } else if word.may_go_on(class) {
                word.between = Some(at);
            } else {
                self.close(window, &mut word, at);
                if is_cut(class, is_blank_before) {
                    cut = (at, self.hashes.len());
                    if at > 0 && is_ascii_ahead(&window[at..]) {
                        return cut;
                    }
                }
            }
            is_blank_before = class == Class::Blank;
        }
        if !is_end {
            return cut;
        }
        self.close(window, &mut word, window.len());
        (window.len(), self.hashes.len())
    }

    /// Adds a character to the word before it, or begins another.
    #[inline]
    fn add(&mut self, window: &str, word: &mut Word, at: usize, class: Class) {
        if !word.holds(class) {
            self.close(window, word, at);
            word.start = at;
        }
        word.last = class;
        word.is_word |= class != Class::Joiner;
        word.between = None;
    }

    /// Hashes a word that ends before the character at this place.
    #[inline]
    fn close(&mut self, window: &str, word: &mut Word, at: usize) {
        let ended = std::mem::replace(word, Word::NONE);
        if !ended.is_word {
            return;
        }
        let text = &window[ended.start..ended.between.unwrap_or(at)];
        self.hashes.push(if ended.has_upper {
            hash_word(text, &mut self.lowered)
        } else {
            xxh3_64(text.as_bytes())
        });
    }
}

/// A word whose end is not found yet.
#[derive(Clone, Copy)]
struct Word {
    start: usize,
    /// The class of its last character; a break where there is no word.
    last: Class,
    /// Whether it has more than joiners.
    is_word: bool,
    /// Whether a letter of it has another lower case.
    has_upper: bool,
    /// The place behind it of a character that joins it to the next one, if that has the class of its last one.
    between: Option<usize>,
}

impl Word {
    const NONE: Self = Self {
        start: 0,
        last: Class::Break,
        is_word: false,
        has_upper: false,
        between: None,
    };

    /// Whether it goes on with a character of this class.
    #[inline]
    fn holds(&self, next: Class) -> bool {
        if self.between.is_some() {
            return self.last == next;
        }
        let joins_letters = matches!(self.last, Class::Letter | Class::Digit | Class::Joiner);
        let joins_katakana = matches!(self.last, Class::Katakana | Class::Joiner);
        if next == Class::Joiner {
            joins_letters || joins_katakana
        } else if next == Class::Katakana {
            joins_katakana
        } else {
            joins_letters
        }
    }

    /// Whether it goes on behind a character of this class, if one like its last follows.
    fn may_go_on(&self, between: Class) -> bool {
        let joins_letters = self.last == Class::Letter && between.joins_letters();
        let joins_digits = self.last == Class::Digit && between.joins_digits();
        self.between.is_none() && (joins_letters || joins_digits)
    }
}

/// The length of what must be left to the library where no piece begins: until one may begin.
pub(super) fn gap(text: &str) -> usize {
    let classes = Classes::get();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let is_rare = |&(_, next): &(usize, char)| classes.of(next) == Class::Rare;
        let is_blank_before = || text[..at].ends_with(char::is_whitespace);
        let class = classes.of(character);
        let may_cut = at > 0 && !matches!(class, Class::Letter | Class::Rare);
        if may_cut && is_cut(class, is_blank_before()) && !characters.peek().is_some_and(is_rare) {
            return at;
        }
    }
    text.len()
}

fn is_ascii_ahead(text: &str) -> bool {
    let ahead = text.as_bytes().get(..ASCII_AHEAD);
    ahead.is_some_and(<[u8]>::is_ascii)
}

/// Whether the texts before and after a place have the words of the whole. `class` is that of the character there, and
/// white space may be before it.
pub(super) fn is_cut(class: Class, is_blank_before: bool) -> bool {
    matches!(class, Class::Break | Class::Alone) || class == Class::Blank && !is_blank_before
}
