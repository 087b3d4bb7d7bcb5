//! What differs between two texts, word by word.

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Words of a text that are compared.
const COMPARED: usize = 2000;

/// Words that are shown before and after a difference.
const AROUND: usize = 8;

/// Words of one difference that are shown.
const DIFFERENT: usize = 40;

/// Bytes of a side that are shown, about.
const SHOWN: usize = 1600;

/// Longer words are compared in parts of this many bytes, about: some scripts have no spaces.
const LONG: usize = 32;
const PART: usize = 12;

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
}

/// Compares the words of two texts.
pub(super) fn sides(texts: [&str; 2]) -> Sides {
    let words = texts.map(words);
    let [a, b] = &words;
    let changes = capture_diff_slices(Algorithm::Myers, a, b);
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
    }
}

/// A word, or a part of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Word<'a> {
    text: &'a str,
    /// Whether it continues the one before it.
    continues: bool,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for mut text in text.split_whitespace() {
        let mut continues = false;
        while text.len() > LONG {
            let (part, rest) = text.split_at(text.ceil_char_boundary(PART));
            words.push(Word {
                text: part,
                continues,
            });
            (text, continues) = (rest, true);
        }
        words.push(Word { text, continues });
        if words.len() >= COMPARED {
            break;
        }
    }
    words
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
            DIFFERENT
        } else {
            AROUND
        };
        let after = if is_last { 0 } else { AROUND };
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
        let (shown, hidden) = words.split_at(words.len().min(DIFFERENT));
        self.show(shown, Piece::Other);
        self.hide(hidden.len());
    }

    fn show(&mut self, words: &[Word<'_>], piece: fn(String) -> Piece) {
        let mut text = String::new();
        let mut shown = 0;
        for word in words {
            if self.shown + text.len() >= SHOWN {
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
        let beginning = vec!["word"; DIFFERENT].join(" ");
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
            assert!(shown.sum::<usize>() <= SHOWN + LONG);
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
            matches!(a.last(), Some(Piece::Other(other)) if other.len() <= LONG),
            "{a:?}"
        );
        let long = sides([&"x".repeat(100_000), "y"]);
        assert!(!long.are_same);
    }
}
