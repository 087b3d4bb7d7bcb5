//! The words of ASCII text, found 64 bytes at a time by bit operations.
//!
//! # Cutting
//!
//! UAX #29 decides whether there is a word boundary between two characters by looking at both and a
//! few around them. It always sets one before and after a character of the class `Other`, a space
//! or a line end, except that
//!
//! - combining marks, format characters and joiners belong to what precedes them (WB4, WB3c), and
//! - spaces stay together (WB3d), as do the two characters of a line end (WB3).
//!
//! Nor does any rule reach across such a character. So a text can be cut *before* an ASCII character of these, unless
//! it is a space or line feed after white space. The two parts have the words of the whole: a mark that follows the
//! character stays with it, in the second part. ([`is_cut`], tested by `cut_texts_have_the_words_of_the_whole`.)
//!
//! The text is cut into pieces of ASCII alone, short enough for buffers on the stack, and what lies
//! between, which [`wide`](super::wide) and the library handle.
//!
//! # Words
//!
//! Within ASCII the rules come to this. Letters, digits and underscores hold together (WB5, WB8-10, WB13a, WB13b). One
//! `:`, `.` or `'` between two letters (WB6, WB7) joins them, and so does one `,`, `;`, `.` or `'` between two digits
//! (WB11, WB12). Words are the runs of such bytes, without those of underscores alone.

use xxhash_rust::xxh3::xxh3_64;

use crate::scan::Level;
use crate::scan::ascii::{self, BLOCK, Classes};

/// Most bytes of a piece.
const PIECE: usize = 16 * BLOCK;

/// Most words of a piece: each but the last needs a byte that ends it.
const WORDS: usize = PIECE / 2;

/// Where a word starts and where it ends, in bytes.
type Edges = [u16; 2];

/// The length of the piece of ASCII that begins a text, maybe 0.
pub(super) fn prefix(text: &str) -> usize {
    let window = &text.as_bytes()[..text.len().min(PIECE)];
    let ascii = ascii_length(window);
    if ascii == text.len() {
        return ascii;
    }
    (1..ascii).rev().find(|&at| is_cut(text, at)).unwrap_or(0)
}

/// How many bytes of ASCII there are before anything else.
pub(crate) fn ascii_length(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<16>();
    let whole = blocks.iter().take_while(|block| block.is_ascii()).count() * 16;
    let rest = bytes[whole..].iter().take_while(|byte| byte.is_ascii());
    whole + rest.count()
}

/// Whether the texts before and after a place have the words of the whole.
pub(super) fn is_cut(text: &str, at: usize) -> bool {
    let byte = text.as_bytes()[at];
    if !ENDS_WORDS[usize::from(byte)] {
        return false;
    }
    let is_white = byte == b' ' || byte == b'\n';
    !is_white || !text[..at].ends_with(char::is_whitespace)
}

/// The ASCII bytes that are in a word boundary class of their own kind: no letter, digit,
/// underscore or mark that may stand within a word. A quotation mark may, in Hebrew (WB7a-WB7c).
const ENDS_WORDS: [bool; 256] = {
    let mut ends = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        ends[byte as usize] = !matches!(
            byte,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9'
                | b'_' | b':' | b'.' | b'\'' | b',' | b';' | b'"'
        );
        byte += 1;
    }
    ends
};

/// Hashes the words of pieces of ASCII.
pub(super) struct AsciiWords {
    level: Level,
    /// The piece in lower case.
    lowered: [u8; PIECE],
    classes: [Classes; PIECE / BLOCK],
    /// Where words start and end in `lowered`, by turns; room for a block's worth of junk.
    edges: [u16; 2 * WORDS + BLOCK],
    hashes: [u64; WORDS],
}

impl AsciiWords {
    pub(super) const fn new(level: Level) -> Self {
        Self {
            level,
            lowered: [0; PIECE],
            classes: [Classes {
                letters: 0,
                digits: 0,
                underscores: 0,
                between_letters: 0,
                between_digits: 0,
            }; PIECE / BLOCK],
            edges: [0; 2 * WORDS + BLOCK],
            hashes: [0; WORDS],
        }
    }

    /// The hashes of a piece's words, in their order.
    ///
    /// # Panics
    /// If the piece is longer than [`PIECE`].
    pub(super) fn hashes(&mut self, piece: &str) -> &[u64] {
        let (lowered, classes) = (&mut self.lowered, &mut self.classes);
        ascii::classify(self.level, piece.as_bytes(), lowered, classes);
        let blocks = piece.len().div_ceil(BLOCK);
        let count = self.find_edges(blocks, piece.len());
        let (words, _) = self.edges[..count].as_chunks_mut::<2>();
        let words = without_underscores(words, &self.lowered);
        let hashes = &mut self.hashes[..words.len()];
        for (hash, word) in hashes.iter_mut().zip(words) {
            let [start, end] = word.map(usize::from);
            *hash = xxh3_64(&self.lowered[start..end]);
        }
        hashes
    }

    /// Lists where words start and end, and says how many places these are.
    fn find_edges(&mut self, blocks: usize, length: usize) -> usize {
        let mut count = 0;
        let mut before = Classes::default();
        let mut inside_before = 0;
        for at in 0..blocks {
            let now = self.classes[at];
            let after = if at + 1 < blocks {
                self.classes[at + 1]
            } else {
                Classes::default()
            };
            let inside = inside_words(before, now, after);
            let mut changes = inside ^ (inside << 1 | inside_before);
            inside_before = inside >> 63;
            before = now;
            // Four at a time, whether there are four or not, is faster than one by one.
            let base = (at * BLOCK) as u16;
            let mut room = &mut self.edges[count..];
            count += changes.count_ones() as usize;
            while changes != 0 {
                let Some((four, rest)) = room.split_first_chunk_mut::<4>() else {
                    break;
                };
                for edge in four {
                    *edge = base + changes.trailing_zeros() as u16;
                    changes &= changes.wrapping_sub(1);
                }
                room = rest;
            }
        }
        if inside_before == 1 {
            self.edges[count] = length as u16;
            count += 1;
        }
        count
    }
}

/// The bytes of a block that belong to words.
#[inline]
fn inside_words(before: Classes, now: Classes, after: Classes) -> u64 {
    let joined = |between: u64, [before, now, after]: [u64; 3]| {
        between & (now << 1 | before >> 63) & (now >> 1 | after << 63)
    };
    let letters = [before.letters, now.letters, after.letters];
    let digits = [before.digits, now.digits, after.digits];
    now.letters
        | now.digits
        | now.underscores
        | joined(now.between_letters, letters)
        | joined(now.between_digits, digits)
}

/// Takes out the words of nothing but underscores.
fn without_underscores<'a>(words: &'a mut [Edges], lowered: &[u8]) -> &'a [Edges] {
    let starts_low = |&[start, _]: &Edges| lowered[usize::from(start)] == b'_';
    let Some(first) = words.iter().position(starts_low) else {
        return words;
    };
    let mut kept = first;
    for at in first..words.len() {
        let [start, end] = words[at].map(usize::from);
        words[kept] = words[at];
        let is_word = lowered[start..end].iter().any(|&byte| byte != b'_');
        kept += usize::from(is_word);
    }
    &words[..kept]
}
