//! The result of an evaluation, as text for people.

use std::fmt::Write;

use simshard_batch::evaluate::{Evaluation, Example, Figures, Length, Share, Suggestion};
use simshard_runtime::terminal::{counted, escaped};

/// Everything that was found, a table a recipe.
pub(super) fn of(found: &Evaluation, suggestion: Option<Suggestion>) -> String {
    let mut text = summary(found);
    for figures in &found.recipes {
        text += &table(figures);
    }
    if let Some(suggestion) = suggestion {
        text += &suggested(&suggestion);
    }
    text
}

/// How many texts and true pairs there are, and what was left out.
pub(super) fn counts(found: &Evaluation) -> String {
    let mut text = format!("{} texts", found.texts);
    if let Some(all) = found.drawn_from {
        text += &format!(" drawn from {all}");
    }
    text += &format!(", {} true pairs", found.true_pairs);
    let unknown = match found.skipped.short_texts {
        0 => "labelled for texts that are not there",
        _ => "labelled for texts that are not there or have too few words",
    };
    for (count, what) in [
        (found.repeated, "equal to another word for word"),
        (found.wordless, "without words"),
        (found.skipped.short_texts, "of too few words"),
        (found.wordless_labels, "labelled for texts without words"),
        (found.unknown_labels, unknown),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    for one in &found.degenerate {
        if one.texts > 0 {
            text += &format!(", {} degenerate: {}", one.texts, one.reason.name());
        }
    }
    text
}

fn summary(found: &Evaluation) -> String {
    let mut text = counts(found);
    text.push('\n');
    for one in &found.degenerate {
        for id in &one.examples {
            let reason = one.reason.name();
            // Writing to a string does not fail.
            let _ = writeln!(text, "degenerate, {reason}: {}", escaped(id));
        }
    }
    text
}

/// The figures of a recipe.
fn table(figures: &Figures) -> String {
    let mut text = format!("\n{}\n", figures.recipe);
    let lengths = Length::ALL
        .map(|length| format!("{:>15}", length.name()))
        .concat();
    let heads = ["precision", "recall", "F1"]
        .map(|head| format!("{head:>18}"))
        .concat();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "distance {heads}  unlike  degenerate  recall by words:{lengths}"
    );
    for row in &figures.rows {
        let shares = [row.all.precision(), row.all.recall(), row.all.f1()]
            .map(share)
            .concat();
        let [unlike, degenerate] = [row.unlike_share(), row.degenerate_share()].map(percent);
        let lengths = row
            .by_length
            .map(|one| format!("{:>15}", value(one.recall())))
            .concat();
        let _ = writeln!(
            text,
            "{:>8} {shares} {unlike:>7} {degenerate:>11}                  {lengths}",
            row.distance
        );
    }
    for (what, examples) in [
        ("unlike, but near", &figures.junk),
        ("true, but far", &figures.missed),
    ] {
        for example in examples {
            let _ = writeln!(text, "{what}: {}", pair(example));
        }
    }
    text
}

fn pair(example: &Example) -> String {
    let ids = example.ids.each_ref().map(|id| escaped(id));
    let distance = example
        .distance
        .map_or("no fingerprint".to_owned(), |bits| {
            format!("distance {bits}")
        });
    format!(
        "{distance}, similarity {:.2}: {} {}",
        example.similarity, ids[0], ids[1]
    )
}

fn value(share: Option<Share>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.3}", share.value))
}

fn share(share: Option<Share>) -> String {
    let text = share.map_or("-".to_owned(), |share| {
        format!("{:.3} {:.2}-{:.2}", share.value, share.low, share.high)
    });
    format!("{text:>18}")
}

fn percent(share: Option<Share>) -> String {
    share.map_or("-".to_owned(), |share| {
        format!("{:.1} %", share.value * 100.0)
    })
}

fn suggested(suggestion: &Suggestion) -> String {
    let layout = suggestion.layout;
    format!(
        "\nsuggested: {}, distance {}, blocks {}: precision {}, recall {}\n{}, at most {} bytes a document, \
         {} pairs by chance among {:e} documents\n{}\n",
        suggestion.recipe,
        layout.distance(),
        layout.blocks(),
        value(suggestion.quality.precision()),
        value(suggestion.quality.recall()),
        counted(layout.table_count(), "table"),
        suggestion.bytes_a_document,
        rounded(suggestion.chance_pairs),
        suggestion.documents,
        suggestion.command(),
    )
}

/// Two digits, as a power of ten where that is long.
fn rounded(number: f64) -> String {
    match number {
        ..0.05 => "0.0".to_owned(),
        0.05..10.0 => format!("{number:.1}"),
        10.0..1e6 => format!("{number:.0}"),
        _ => format!("{number:.1e}"),
    }
}
