//! A bit for each line: whether there is a document, then whether it is left out.

use crate::chunk::Chunk;

/// By source, a bit for each line.
pub struct LineMarks {
    pub(super) sources: Vec<Marks>,
}

#[derive(Default)]
pub(super) struct Marks {
    /// At first whether there is a document, then whether the line is left out.
    bits: Vec<u64>,
    /// Bad lines that are skipped, in their order.
    pub(super) bad: Vec<u64>,
    /// The first and the last line of documents that take several.
    pub(super) long: Vec<(u64, u64)>,
    pub(super) lines: u64,
}

impl LineMarks {
    /// Marks what is left out: the documents of which this is true by their number, and bad lines.
    pub fn leave_out(&mut self, is_dropped: impl Fn(usize) -> bool) {
        let mut document = 0;
        for marks in &mut self.sources {
            for word in &mut marks.bits {
                let mut documents = *word;
                while documents != 0 {
                    let bit = documents & documents.wrapping_neg();
                    documents ^= bit;
                    if !is_dropped(document) {
                        *word ^= bit;
                    }
                    document += 1;
                }
            }
            for line in std::mem::take(&mut marks.bad) {
                marks.set(line);
            }
            for (first, last) in std::mem::take(&mut marks.long) {
                if marks.is_set(first) {
                    (first..=last).for_each(|line| marks.set(line));
                }
            }
        }
    }
}

impl Marks {
    pub(super) fn add(&mut self, documents: &[u64], bad: Vec<u64>, last_line: u64) {
        self.grow(last_line);
        for &line in documents {
            self.set(line);
        }
        self.bad.extend(bad);
    }

    /// Makes room for the bits of lines up to this one.
    pub(super) fn grow(&mut self, last_line: u64) {
        self.lines = self.lines.max(last_line);
        self.bits.resize(self.lines.div_ceil(64) as usize, 0);
    }

    /// Sets the bit of a line, by its number from 1.
    pub(super) fn set(&mut self, line: u64) {
        let at = line - 1;
        self.bits[(at / 64) as usize] |= 1 << (at % 64);
    }

    fn is_set(&self, line: u64) -> bool {
        let at = line - 1;
        let word = self.bits.get((at / 64) as usize);
        word.is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// The bytes of a chunk's lines but those that are left out.
    pub(super) fn kept(&self, chunk: &Chunk) -> Vec<u8> {
        let bytes = chunk.bytes();
        let mut kept = Vec::with_capacity(bytes.len());
        let (mut start, mut line) = (0, chunk.first_line);
        // What is kept since the last line that was left out is copied at once.
        let mut from = 0;
        while start < bytes.len() {
            let end = memchr::memchr(b'\n', &bytes[start..]);
            let end = end.map_or(bytes.len(), |end| start + end + 1);
            if self.is_set(line) {
                kept.extend_from_slice(&bytes[from..start]);
                from = end;
            }
            (start, line) = (end, line + 1);
        }
        kept.extend_from_slice(&bytes[from..]);
        kept
    }
}
