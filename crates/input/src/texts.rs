//! The texts of an input, worked on by all cores: for what looks at texts, not at fingerprints.

use crate::document::{RecordContent, RecordId};
use crate::error::InputError;
use crate::input::Input;
use crate::skipped::Skipped;

/// Does `work` with each text on all cores, and hands the results to `take` in the order of the
/// input until it says `false`. Documents without a text are passed over, and texts
/// with too few words are left out. Says what was left out.
///
/// # Errors
/// What cannot be read, after the texts before it were taken, and those of `take`.
pub fn for_each_text<T: Send, E: From<InputError>>(
    input: Input,
    work: impl Fn(&RecordId<'_>, &str) -> T + Sync,
    mut take: impl FnMut(T) -> Result<bool, E>,
) -> Result<Skipped, E> {
    let min_words = input.min_words();
    let mut skipped = input.left_out().clone();
    input.for_each_batch(
        |batch| {
            let mut done = Vec::new();
            let mut short_texts = 0;
            let mut outcome = batch.parse(|record| {
                if record.content.is_shorter(min_words) {
                    short_texts += 1;
                    return;
                }
                if let RecordContent::Text(text) = &record.content {
                    done.push(work(&record.id, text));
                }
            });
            outcome.skipped.short_texts += short_texts;
            (done, outcome)
        },
        |parts| -> Result<bool, E> {
            for part in parts {
                let (done, outcome) = part?;
                skipped += &outcome.skipped;
                for one in done {
                    if !take(one)? {
                        return Ok(false);
                    }
                }
                if let Some(error) = outcome.error {
                    return Err(error.into());
                }
            }
            Ok(true)
        },
    )?;
    Ok(skipped)
}
