//! Made-up texts in a script: words as long as those of its languages, in sentences.

use simshard_simhash::synthetic;

/// A script that texts are made up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Ascii,
    Cyrillic,
    Chinese,
}

/// Words of a text.
const WORDS: usize = 500;

/// Words of a sentence.
const SENTENCE: usize = 12;

/// Words between two commas.
const CLAUSE: usize = 5;

/// Ideographs that texts are made of, about as many as a newspaper uses.
const IDEOGRAPHS: u32 = 3000;

impl Script {
    /// Texts with this many characters or a few more.
    pub(super) fn texts(self, characters: usize, seed: u64) -> Vec<String> {
        let mut numbers = numbers(seed);
        let mut texts = Vec::new();
        let mut made = 0;
        while made < characters {
            let text = self.text(&mut numbers);
            made += text.chars().count();
            texts.push(text);
        }
        texts
    }

    fn text(self, numbers: &mut impl FnMut() -> u32) -> String {
        let mut text = String::new();
        for place in 0..WORDS {
            let word = self.word(numbers);
            if place % SENTENCE == 0 {
                text.extend(word.chars().flat_map(char::to_uppercase).take(1));
                text.extend(word.chars().skip(1));
            } else {
                text.push_str(&word);
            }
            text.push_str(self.behind(place));
        }
        text
    }

    /// Letters are not alike frequent, and short words are the more frequent ones.
    fn word(self, numbers: &mut impl FnMut() -> u32) -> String {
        let (first, letters, most) = match self {
            Self::Ascii => (u32::from('a'), 26, 9),
            Self::Cyrillic => (u32::from('а'), 32, 11),
            Self::Chinese => (u32::from('一'), IDEOGRAPHS, 3),
        };
        let length = 1 + (numbers() % most).min(numbers() % most + 2);
        let letter = |_| {
            let letter = (numbers() % letters).min(numbers() % letters);
            char::from_u32(first + letter).unwrap_or('?')
        };
        (0..length).map(letter).collect()
    }

    /// What follows the word at a place.
    const fn behind(self, place: usize) -> &'static str {
        let ends = place % SENTENCE == SENTENCE - 1;
        let pauses = place % CLAUSE == CLAUSE - 1;
        match (self, ends, pauses) {
            (Self::Chinese, true, _) => "。",
            (Self::Chinese, false, true) => "，",
            (Self::Chinese, false, false) => "",
            (_, true, _) => ". ",
            (_, false, true) => ", ",
            (_, false, false) => " ",
        }
    }
}

/// Numbers from a seed.
fn numbers(seed: u64) -> impl FnMut() -> u32 {
    let mut all = Vec::new();
    let mut round = seed;
    move || {
        if all.is_empty() {
            all = synthetic::Data::Random.fingerprints(1 << 16, round);
            round = round.wrapping_add(1);
        }
        all.pop().map_or(0, |number| (number.0 >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_of_their_script_and_the_same_for_a_seed() {
        for (script, is_letter) in [
            (
                Script::Ascii,
                (|c| c.is_ascii_alphabetic()) as fn(char) -> bool,
            ),
            (Script::Cyrillic, |c| ('А'..='я').contains(&c)),
            (Script::Chinese, |c| ('一'..='鿿').contains(&c)),
        ] {
            let texts = script.texts(10_000, 3);
            assert_eq!(texts, script.texts(10_000, 3));
            let all: Vec<char> = texts.iter().flat_map(|text| text.chars()).collect();
            let letters = all
                .iter()
                .filter(|&&character| is_letter(character))
                .count();
            assert!(
                all.len() >= 10_000 && letters * 10 > all.len() * 7,
                "{script:?}"
            );
            let marks = all.iter().filter(|&&character| !is_letter(character));
            assert!(
                marks.into_iter().all(|mark| " .,。，".contains(*mark)),
                "{script:?}"
            );
        }
    }
}
