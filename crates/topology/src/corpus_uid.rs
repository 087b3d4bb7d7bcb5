//! The identity of a corpus, and its text.
//!
//! The text is that of a UUID: 32 hex digits in groups of 8, 4, 4, 4 and 12, as in
//! `67e55044-10b1-426f-9247-bb680e5fe0c8`. Files and messages hold it, so it may not change.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The length of the text, in bytes.
const TEXT_LEN: usize = 36;

/// The identity of one creation of a corpus. A corpus that is deleted and created again under the
/// same name has another one, so nothing meant for the old corpus can reach the new one.
///
/// Its 16 bytes are random, so it can be drawn anywhere and serve as a prefix of keys. Identities
/// sort by their bytes, and so do their texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorpusUid(pub [u8; 16]);

impl fmt::Display for CorpusUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).fmt(f)
    }
}

impl fmt::Debug for CorpusUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CorpusUid({self})")
    }
}

/// A text that is not the uid of a corpus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no corpus uid, give it as a UUID such as 67e55044-10b1-426f-9247-bb680e5fe0c8")]
pub struct ParseCorpusUidError(String);

/// Reads the form that `Display` writes; letters may be upper case.
impl FromStr for CorpusUid {
    type Err = ParseCorpusUidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uuid = Uuid::try_parse(text).ok();
        // A UUID has other forms, none of which is as long.
        let uuid = uuid.filter(|_| text.len() == TEXT_LEN);
        uuid.map(|uuid| Self(uuid.into_bytes()))
            .ok_or_else(|| ParseCorpusUidError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    const UID: CorpusUid = CorpusUid([
        0x67, 0xe5, 0x50, 0x44, 0x10, 0xb1, 0x42, 0x6f, 0x92, 0x47, 0xbb, 0x68, 0x0e, 0x5f, 0xe0,
        0xc8,
    ]);

    #[test]
    fn a_uid_is_shown_and_read_as_a_uuid() {
        assert_eq!(UID.to_string(), TEXT);
        assert_eq!(TEXT.parse(), Ok(UID));
        assert_eq!(TEXT.to_uppercase().parse(), Ok(UID));
        assert_eq!(format!("{UID:?}"), format!("CorpusUid({TEXT})"));
    }

    #[test]
    fn a_text_that_is_no_uid_is_refused_and_shown() {
        assert_eq!(
            "n1".parse::<CorpusUid>().unwrap_err().to_string(),
            "\"n1\" is no corpus uid, give it as a UUID such as \
             67e55044-10b1-426f-9247-bb680e5fe0c8"
        );
        let without_hyphens = TEXT.replace('-', "");
        let misplaced = TEXT.replace("4-1", "-41");
        let refused = [
            "",
            &TEXT[1..],
            &TEXT[..35],
            &format!("{TEXT}0"),
            &format!("{TEXT}-"),
            &format!(" {TEXT}"),
            &format!("{{{TEXT}}}"),
            &TEXT.replace("67", "+7"),
            &TEXT.replace("67", "g7"),
            &TEXT.replace("67", "é"),
            &without_hyphens,
            &misplaced,
        ];
        for text in refused {
            assert!(text.parse::<CorpusUid>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn uids_survive_text_and_sort_as_it_does(a: [u8; 16], b: [u8; 16]) {
            let (a, b) = (CorpusUid(a), CorpusUid(b));
            prop_assert_eq!(a.to_string().parse(), Ok(a));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }
    }
}
