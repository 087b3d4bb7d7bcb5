//! What the characters of common scripts do to the words around them.
//!
//! UAX #29 has more classes, and rules for them that look further: for marks and format characters, Hebrew letters,
//! regional indicators and emoji. Characters of these are [`Rare`](Class::Rare) here, and so are all of other scripts.
//! The library cuts the words around them.

use std::sync::LazyLock;

/// What a character does to the words around it, by UAX #29 (Unicode 17.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Not known here.
    Rare,
    /// White space: ends words, and is none.
    Blank,
    /// Ends words, and is none.
    Break,
    /// A quotation mark. It ends words too, but Hebrew letters on both sides would hold it (WB7b, WB7c).
    Quote,
    /// A word of its own, as Han and Hiragana are.
    Alone,
    /// A letter without another lower case.
    Letter,
    /// A letter that has another lower case.
    Upper,
    /// A digit.
    Digit,
    /// `Katakana`, which holds together but does not join letters or digits.
    Katakana,
    /// `ExtendNumLet`, such as an underscore: it joins letters, digits, Katakana and its own kind.
    Joiner,
    /// Joins two letters.
    BetweenLetters,
    /// Joins two digits.
    BetweenDigits,
    /// Joins two letters, or two digits.
    Between,
}

impl Class {
    /// Whether words have such characters, at their ends too.
    #[inline]
    pub(super) fn is_of_words(self) -> bool {
        let has_case = matches!(self, Self::Letter | Self::Upper);
        has_case || matches!(self, Self::Digit | Self::Katakana | Self::Joiner)
    }

    /// The class of the lower case.
    #[inline]
    pub(super) fn lower(self) -> Self {
        if self == Self::Upper {
            Self::Letter
        } else {
            self
        }
    }

    /// Whether one such character holds two letters together.
    #[inline]
    pub(super) fn joins_letters(self) -> bool {
        matches!(self, Self::BetweenLetters | Self::Between)
    }

    /// Whether one such character holds two digits together.
    #[inline]
    pub(super) fn joins_digits(self) -> bool {
        matches!(self, Self::BetweenDigits | Self::Between)
    }
}

/// Characters of the Basic Multilingual Plane.
const CHARACTERS: usize = 1 << 16;

/// Letters, some of which have another lower case.
const CASED: [[u16; 2]; 36] = [
    [0x41, 0x5a],
    [0x61, 0x7a],
    [0xaa, 0xaa],
    [0xb5, 0xb5],
    [0xba, 0xba],
    [0xc0, 0xd6],
    [0xd8, 0xf6],
    [0xf8, 0x2c1],
    [0x2c6, 0x2d1],
    [0x2e0, 0x2e4],
    [0x370, 0x374],
    [0x376, 0x377],
    [0x37a, 0x37d],
    [0x37f, 0x37f],
    [0x386, 0x386],
    [0x388, 0x38a],
    [0x38c, 0x38c],
    [0x38e, 0x3a1],
    [0x3a3, 0x3f5],
    [0x3f7, 0x481],
    [0x48a, 0x52f],
    [0x531, 0x556],
    [0x560, 0x588],
    [0x10d0, 0x10fa],
    [0x10fc, 0x10ff],
    [0x1e00, 0x1f15],
    [0x1f18, 0x1f1d],
    [0x1f20, 0x1f45],
    [0x1f48, 0x1f4d],
    [0x1f50, 0x1f57],
    [0x1f5f, 0x1f7d],
    [0x1f80, 0x1fb4],
    [0x1fb6, 0x1fbc],
    [0x1ff6, 0x1ffc],
    [0xff21, 0xff3a],
    [0xff41, 0xff5a],
];

/// The other characters that are known here, by class.
const OTHERS: &[(Class, &[[u16; 2]])] = &[
    (
        Class::Blank,
        &[
            [0x09, 0x0d],
            [0x20, 0x20],
            [0x85, 0x85],
            [0xa0, 0xa0],
            [0x2000, 0x200a],
            [0x2028, 0x2029],
            [0x205f, 0x205f],
            [0x3000, 0x3000],
        ],
    ),
    (
        Class::Break,
        &[
            [0x00, 0x08],
            [0x0e, 0x1f],
            [0x21, 0x21],
            [0x23, 0x26],
            [0x28, 0x2b],
            [0x2d, 0x2d],
            [0x2f, 0x2f],
            [0x3c, 0x40],
            [0x5b, 0x5e],
            [0x60, 0x60],
            [0x7b, 0x84],
            [0x86, 0x9f],
            [0xa1, 0xa8],
            [0xab, 0xac],
            [0xaf, 0xb1],
            [0xb4, 0xb4],
            [0xb6, 0xb6],
            [0xbb, 0xbb],
            [0xbf, 0xbf],
            [0xd7, 0xd7],
            [0xf7, 0xf7],
            [0x384, 0x385],
            [0x61b, 0x61b],
            [0x61d, 0x61f],
            [0x66a, 0x66a],
            [0x6d4, 0x6d4],
            [0x2010, 0x2017],
            [0x201a, 0x2023],
            [0x2025, 0x2026],
            [0x2030, 0x203b],
            [0x203d, 0x203e],
            [0x2041, 0x2043],
            [0x2045, 0x2048],
            [0x20a0, 0x20c1],
            [0x2116, 0x2118],
            [0x2190, 0x2193],
            [0x3001, 0x3004],
            [0x3008, 0x3020],
            [0x30fb, 0x30fb],
            [0xff01, 0xff06],
            [0xff08, 0xff0b],
            [0xff0d, 0xff0d],
            [0xff0f, 0xff0f],
            [0xff1c, 0xff20],
            [0xff3b, 0xff3e],
            [0xff40, 0xff40],
            [0xff5b, 0xff65],
        ],
    ),
    (Class::Quote, &[[0x22, 0x22]]),
    (
        Class::Alone,
        &[
            [0xb2, 0xb3],
            [0xb9, 0xb9],
            [0xbc, 0xbe],
            [0x3006, 0x3007],
            [0x3021, 0x3029],
            [0x3041, 0x3096],
            [0x309d, 0x309f],
            [0x3400, 0x4dbf],
            [0x4e00, 0x9fff],
            [0xf900, 0xfa6d],
        ],
    ),
    // Letters that have no case.
    (
        Class::Letter,
        &[
            [0x620, 0x64a],
            [0x66e, 0x66f],
            [0x671, 0x6d3],
            [0x3005, 0x3005],
            [0xac00, 0xd7a3],
        ],
    ),
    (
        Class::Digit,
        &[
            [0x30, 0x39],
            [0x660, 0x669],
            [0x6f0, 0x6f9],
            [0xff10, 0xff19],
        ],
    ),
    (
        Class::Katakana,
        &[
            [0x3031, 0x3035],
            [0x30a1, 0x30fa],
            [0x30fc, 0x30ff],
            [0xff66, 0xff9d],
        ],
    ),
    (
        Class::Joiner,
        &[[0x5f, 0x5f], [0x203f, 0x2040], [0xff3f, 0xff3f]],
    ),
    (
        Class::BetweenLetters,
        &[
            [0x3a, 0x3a],
            [0xb7, 0xb7],
            [0x387, 0x387],
            [0x2027, 0x2027],
            [0xff1a, 0xff1a],
        ],
    ),
    (
        Class::BetweenDigits,
        &[
            [0x2c, 0x2c],
            [0x3b, 0x3b],
            [0x37e, 0x37e],
            [0x589, 0x589],
            [0x60c, 0x60d],
            [0x66c, 0x66c],
            [0x2044, 0x2044],
            [0xff0c, 0xff0c],
            [0xff1b, 0xff1b],
        ],
    ),
    (
        Class::Between,
        &[
            [0x27, 0x27],
            [0x2e, 0x2e],
            [0x2018, 0x2019],
            [0x2024, 0x2024],
            [0xff07, 0xff07],
            [0xff0e, 0xff0e],
        ],
    ),
];

/// The class of each character.
pub(super) struct Classes(Box<[Class]>);

impl Classes {
    /// The one table of this process, which takes some microseconds to fill.
    pub(super) fn get() -> &'static Self {
        static ALL: LazyLock<Classes> = LazyLock::new(Classes::new);
        &ALL
    }

    fn new() -> Self {
        let mut all = vec![Class::Rare; CHARACTERS];
        for &(class, ranges) in OTHERS {
            for [first, last] in ranges.iter().map(|range| range.map(usize::from)) {
                all[first..=last].fill(class);
            }
        }
        for [first, last] in CASED {
            for (place, letter) in (first..=last).filter_map(|at| Some((at, of(at)?))) {
                all[usize::from(place)] = by_case(letter);
            }
        }
        Self(all.into_boxed_slice())
    }

    /// The class of a character.
    #[inline]
    pub(super) fn of(&self, character: char) -> Class {
        let class = self.0.get(character as usize);
        class.copied().unwrap_or(Class::Rare)
    }
}

fn of(place: u16) -> Option<char> {
    char::from_u32(u32::from(place))
}

/// The class of a letter, which its lower case decides.
fn by_case(letter: char) -> Class {
    if letter.to_lowercase().eq([letter]) {
        Class::Letter
    } else {
        Class::Upper
    }
}
