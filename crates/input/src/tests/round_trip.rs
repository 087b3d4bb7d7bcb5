//! What is written as TSV or JSON lines is read back as it was, for whatever can be written.
//!
//! Cases come from fixed seeds; a failure prints its seed.

use std::fmt::Write as _;

use super::*;

const CASES: u64 = 300;

/// Small and reproducible (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Awkward values as often as common ones.
    fn fingerprint(&mut self) -> u64 {
        match self.below(4) {
            0 => [0, 1, 1 << 53, (1 << 63) - 1, 1 << 63, u64::MAX][self.below(6) as usize],
            1 => self.next() >> self.below(64),
            _ => self.next(),
        }
    }

    /// Awkward characters as often as common ones.
    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(20) {
            let character = match self.below(4) {
                0 => char::from(self.below(128) as u8),
                1 => ['\t', '\n', '\r', '"', '\\', '\0', '\u{FEFF}', '\u{2028}']
                    [self.below(8) as usize],
                2 => char::from_u32(self.below(0x11_0000) as u32).unwrap_or('é'),
                _ => 'x',
            };
            text.push(character);
        }
        text
    }
}

#[test]
fn tsv_is_read_as_it_was_written() {
    for seed in 0..CASES {
        let mut random = Random(seed);
        let mut written = "id\thash\n".to_owned();
        let mut expected = Vec::new();
        for _ in 0..random.below(30) {
            // These end a column or a line or are in no text, so no id can hold them.
            let id = random.text().replace(['\t', '\n', '\0'], " ");
            let fingerprint = random.fingerprint();
            let line_break = ["\n", "\r\n"][random.below(2) as usize];
            write!(written, "{id}\t{fingerprint}{line_break}").unwrap();
            expected.push(print(&id, fingerprint));
        }
        assert_eq!(read(Format::Tsv, &written), expected, "seed {seed}");
    }
}

#[test]
fn json_texts_are_read_as_they_were_written() {
    for seed in 0..CASES {
        let mut random = Random(seed);
        let mut written = String::new();
        let mut expected = Vec::new();
        for _ in 0..random.below(30) {
            let (id, body, other) = (random.text(), random.text(), random.text());
            let line = serde_json::json!({ "id": id, "text": body, "zother": [other] });
            writeln!(written, "{line}").unwrap();
            expected.push(text(&id, &body));
        }
        assert_eq!(read(Format::Jsonl, &written), expected, "seed {seed}");
    }
}

#[test]
fn json_fingerprints_are_read_as_they_were_written() {
    let args = InputOptions {
        fingerprint_field: Some("hash".to_owned()),
        ..args(Format::Jsonl, &[])
    };
    for seed in 0..CASES {
        let mut random = Random(seed);
        let mut written = String::new();
        let mut expected = Vec::new();
        for _ in 0..random.below(30) {
            let (id, fingerprint) = (random.text(), random.fingerprint());
            let line = match random.below(2) {
                0 => serde_json::json!({ "id": id, "hash": fingerprint }),
                _ => serde_json::json!({ "id": id, "hash": fingerprint.to_string() }),
            };
            writeln!(written, "{line}").unwrap();
            expected.push(print(&id, fingerprint));
        }
        let input = open_bytes(&args, written.as_bytes()).unwrap();
        assert_eq!(all(input), expected, "seed {seed}");
    }
}
