//! What differs between two texts, word by word.

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Words of a text that are compared.
const COMPARED_WORDS: usize = 2000;

/// Words that are shown before and after a difference.
const WORDS_AROUND: usize = 8;

/// Words of one difference that are shown.
const SHOWN_WORDS: usize = 40;

/// Bytes of a side that are shown, about.
const SHOWN_BYTES: usize = 1600;

/// Words of more bytes than `LONG_WORD_BYTES` are compared in parts, since some scripts have no spaces. Each character that is not
/// of ASCII is a part; ASCII is cut into parts of `WORD_PART_BYTES` bytes.
const LONG_WORD_BYTES: usize = 32;
const WORD_PART_BYTES: usize = 12;

/// A piece of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Words that the other side has too.
    Same(String),
    /// Words that it has not.
    Other(String),
    /// Words that are not shown.
    Hidden(usize),
}

/// Two texts beside one another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) sides: [Vec<Piece>; 2],
    /// Whether there are no other words, as far as they were compared.
    pub(super) are_same: bool,
    /// Whether all words of both were compared.
    pub(super) is_all: bool,
}

/// Compares the words of two texts.
pub(super) fn sides(texts: [&str; 2]) -> Sides {
    let [(a, a_is_all), (b, b_is_all)] = texts.map(words);
    let changes = capture_diff_slices(Algorithm::Myers, &a, &b);
    let words = [a, b];
    let mut sides = [Side::default(), Side::default()];
    let last = changes.len().saturating_sub(1);
    for (place, change) in changes.iter().enumerate() {
        let ranges = [change.old_range(), change.new_range()];
        for ((side, words), range) in sides.iter_mut().zip(&words).zip(ranges) {
            let words = &words[range];
            if change.tag() == DiffTag::Equal {
                side.same(words, place == 0, place == last);
            } else {
                side.other(words);
            }
        }
    }
    let are_same = changes.iter().all(|change| change.tag() == DiffTag::Equal);
    Sides {
        sides: sides.map(|side| side.pieces),
        are_same,
        is_all: a_is_all && b_is_all,
    }
}

/// A word, or a part of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Word<'a> {
    text: &'a str,
    /// Whether it continues the one before it.
    continues: bool,
}

/// The first words of a text, and whether these are all.
fn words(text: &str) -> (Vec<Word<'_>>, bool) {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let is_long = word.len() > LONG_WORD_BYTES;
        let (mut rest, mut continues) = (word, false);
        while !rest.is_empty() {
            if words.len() == COMPARED_WORDS {
                return (words, false);
            }
            let end = if is_long {
                part_bytes(rest)
            } else {
                rest.len()
            };
            let (text, after) = rest.split_at(end);
            words.push(Word { text, continues });
            (rest, continues) = (after, true);
        }
    }
    (words, true)
}

/// The bytes of the first part of a long word: a part begins in the same place whatever is before it, but for ASCII.
fn part_bytes(word: &str) -> usize {
    let ascii = word
        .bytes()
        .take(WORD_PART_BYTES)
        .take_while(u8::is_ascii)
        .count();
    match ascii {
        0 => word.chars().next().map_or(0, char::len_utf8),
        some => some,
    }
}

#[derive(Default)]
struct Side {
    pieces: Vec<Piece>,
    shown: usize,
}

impl Side {
    /// Takes words that both sides have: those near differences, and the first ones.
    fn same(&mut self, words: &[Word<'_>], is_first: bool, is_last: bool) {
        let before = if is_first && is_last {
            SHOWN_WORDS
        } else {
            WORDS_AROUND
        };
        let after = if is_last { 0 } else { WORDS_AROUND };
        if words.len() <= before + after {
            return self.show(words, Piece::Same);
        }
        let end = words.len() - after;
        self.show(&words[..before], Piece::Same);
        self.hide(end - before);
        self.show(&words[end..], Piece::Same);
    }

    /// Takes words that only this side has.
    fn other(&mut self, words: &[Word<'_>]) {
        let (shown, hidden) = words.split_at(words.len().min(SHOWN_WORDS));
        self.show(shown, Piece::Other);
        self.hide(hidden.len());
    }

    fn show(&mut self, words: &[Word<'_>], piece: fn(String) -> Piece) {
        let mut text = String::new();
        let mut shown = 0;
        for word in words {
            if self.shown + text.len() >= SHOWN_BYTES {
                break;
            }
            if !text.is_empty() && !word.continues {
                text.push(' ');
            }
            text.push_str(word.text);
            shown += 1;
        }
        if shown > 0 {
            self.shown += text.len();
            self.pieces.push(piece(text));
        }
        self.hide(words.len() - shown);
    }

    fn hide(&mut self, words: usize) {
        match self.pieces.last_mut() {
            _ if words == 0 => {}
            Some(Piece::Hidden(before)) => *before += words,
            Some(Piece::Same(_) | Piece::Other(_)) | None => self.pieces.push(Piece::Hidden(words)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(words: &str) -> Piece {
        Piece::Same(words.to_owned())
    }

    fn other(words: &str) -> Piece {
        Piece::Other(words.to_owned())
    }

    #[test]
    fn words_that_one_side_lacks_are_told_apart() {
        let found = sides(["the quick  brown fox", "the slow brown\nfox jumps"]);
        assert!(!found.are_same);
        let [a, b] = found.sides;
        assert_eq!(a, [same("the"), other("quick"), same("brown fox")]);
        let expected = [
            same("the"),
            other("slow"),
            same("brown fox"),
            other("jumps"),
        ];
        assert_eq!(b, expected);
    }

    #[test]
    fn equal_texts_show_their_beginning() {
        let text = "word ".repeat(100);
        let found = sides([&text, &text]);
        assert!(found.are_same);
        let beginning = vec!["word"; SHOWN_WORDS].join(" ");
        for side in found.sides {
            assert_eq!(side, [same(&beginning), Piece::Hidden(60)]);
        }
        assert!(sides(["", " \n"]).are_same);
    }

    #[test]
    fn words_far_from_differences_are_hidden() {
        let common: Vec<String> = (0..100).map(|word| format!("w{word}")).collect();
        let common = common.join(" ");
        let [a, _] = sides([
            &format!("{common} x {common}"),
            &format!("{common} y {common}"),
        ])
        .sides;
        let hidden = |piece: &Piece| matches!(piece, Piece::Hidden(84 | 92));
        assert_eq!(a.iter().filter(|piece| hidden(piece)).count(), 2, "{a:?}");
        assert!(a.contains(&other("x")));
    }

    #[test]
    fn a_side_stays_short_whatever_differs() {
        let words = |start: usize| {
            let words: Vec<String> = (0..9000).map(|word| format!("w{}", word * start)).collect();
            words.join(" ")
        };
        let found = sides([&words(1), &words(3)]);
        for side in found.sides {
            let shown = side.iter().map(|piece| match piece {
                Piece::Same(words) | Piece::Other(words) => words.len(),
                Piece::Hidden(_) => 0,
            });
            assert!(shown.sum::<usize>() <= SHOWN_BYTES + LONG_WORD_BYTES);
        }
    }

    #[test]
    fn texts_without_spaces_are_compared_in_parts() {
        let text = "近似重复".repeat(40);
        let [a, _] = sides([&format!("{text}甲"), &format!("{text}乙")]).sides;
        assert!(
            matches!(&a[0], Piece::Same(same) if text.starts_with(same.as_str())),
            "{a:?}"
        );
        assert!(
            matches!(a.last(), Some(Piece::Other(other)) if other.len() <= LONG_WORD_BYTES),
            "{a:?}"
        );
        let long = sides([&"x".repeat(100_000), "y"]);
        assert!(!long.are_same);
    }

    #[test]
    fn a_character_that_is_inserted_shifts_no_other_one() {
        for text in ["近似重复的文件", "เอกสารที่ซ้ำกัน"] {
            let distinct: String = (0..9)
                .map(|part| format!("{text}{}", char::from_u32(0x5000 + part).unwrap()))
                .collect();
            let at = distinct.char_indices().nth(5).unwrap().0;
            let longer = format!("{}甲{}", &distinct[..at], &distinct[at..]);
            let [a, b] = sides([&distinct, &longer]).sides;
            let others = |side: &[Piece]| -> Vec<Piece> {
                let is_other = |piece: &&Piece| matches!(piece, Piece::Other(_));
                side.iter().filter(is_other).cloned().collect()
            };
            assert_eq!(others(&a), [], "{text}");
            assert_eq!(others(&b), [other("甲")], "{text}");
        }
    }

    #[test]
    fn no_more_words_are_compared_than_are_said() {
        let one = "x".repeat(WORD_PART_BYTES * COMPARED_WORDS);
        let many = "x ".repeat(COMPARED_WORDS);
        for (text, is_all) in [
            (one.clone(), true),
            (one + "x", false),
            (many.clone(), true),
            (many + "x", false),
            ("近".repeat(COMPARED_WORDS), true),
            ("近".repeat(50 * COMPARED_WORDS), false),
        ] {
            assert_eq!(words(&text).0.len(), COMPARED_WORDS);
            let found = sides([&text, &text]);
            assert_eq!((found.are_same, found.is_all), (true, is_all));
            assert_eq!(sides([&text, "x"]).is_all, is_all);
        }
    }
}
