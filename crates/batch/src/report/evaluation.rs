//! The page of an evaluation: how well recipes find near-duplicates, as plots and tables.

mod plots;

use maud::{Markup, html};
use simshard_runtime::terminal::counted;

use super::content::Report;
use super::layout::{Head, bounded, html_page};
use super::numbers::{count, share};
use super::section::Section;
use super::sections::list::{more, reasons};
use super::sections::run;
use super::text::outside;
use crate::evaluate::{Evaluation, Example, Figures, Length, Row, Share, Suggestion};

/// Recipes that are shown.
const RECIPES: usize = 64;

/// Examples of a kind that are shown.
const EXAMPLES: usize = 5;

/// An evaluation as an HTML page, of at most 2 MB (H3).
#[must_use]
pub fn evaluation_page(
    found: &Evaluation,
    suggestion: Option<Suggestion>,
    inputs: &[String],
    settings: &[(String, String)],
) -> String {
    let run = Report {
        inputs: inputs.to_vec(),
        settings: settings.to_vec(),
        ..Report::default()
    };
    bounded(&run, |run| drawn(found, suggestion, run))
}

/// The page with as much of its lists as `run` says.
fn drawn(found: &Evaluation, suggestion: Option<Suggestion>, run: &Report) -> String {
    let head = Head {
        command: "evaluate",
        version: env!("CARGO_PKG_VERSION"),
        title: "Recipes compared",
        verdict: verdict(found, suggestion),
        tiles: tiles(found),
    };
    let shown = Shown {
        recipes: run.first(&found.recipes, RECIPES),
        all: found.recipes.len(),
    };
    let own = [
        curves(shown),
        maps(shown),
        tables(shown),
        examples(shown, run),
        degenerate(found, run),
    ];
    let of_run = [run::settings(run), run::inputs(run)];
    let sections: Vec<Section> = own
        .into_iter()
        .chain(of_run.into_iter().flatten())
        .collect();
    html_page(&head, &sections)
}

/// The recipes that are shown, and how many there are.
#[derive(Clone, Copy)]
struct Shown<'a> {
    recipes: &'a [Figures],
    all: usize,
}

impl Shown<'_> {
    /// How many recipes are not shown.
    fn more(self) -> Markup {
        more(self.all as u64, self.recipes.len())
    }
}

fn verdict(found: &Evaluation, suggestion: Option<Suggestion>) -> Markup {
    html! {
        @if !found.measures_precision() {
            p { "No compared pair is labelled 0, so precision is not measured." }
        }
        p.verdict {
            @match suggestion {
                None => "Nothing is suggested: no recipe and distance is known to meet what is wanted.",
                Some(one) => {
                    "Suggested: " (one.recipe) " at distance " (one.layout.distance()) " with "
                    (counted(one.layout.blocks(), "block")) ". That takes "
                    (counted(one.layout.table_count(), "table")) " and at most "
                    (one.bytes_a_document) " bytes a document. Among "
                    (count(one.documents.round() as u128)) " documents, about "
                    (count(one.chance_pairs.round() as u128)) " unlike pairs are that near by chance. "
                    "Precision " (value(one.quality.precision())) " and recall "
                    (value(one.quality.recall())) " were measured for it."
                }
            }
        }
        @if let Some(one) = suggestion { p { code { (one.command()) } } }
    }
}

fn tiles(found: &Evaluation) -> Markup {
    let degenerate: u64 = found.degenerate.iter().map(|one| one.texts).sum();
    html! {
        dl.tiles {
            div {
                dt { "Texts" }
                dd { (count(found.texts)) }
                @if let Some(all) = found.drawn_from { dd.note { "drawn from " (count(all)) } }
            }
            div { dt { "True pairs" } dd { (count(found.true_pairs)) } }
            div { dt { "Equal to another" } dd { (count(found.repeated)) } dd.note { "left out" } }
            (left_out("Without words", found.wordless))
            (left_out("Of too few words", found.skipped.short_texts))
            (left_out("Labels for texts without words", found.wordless_labels))
            (left_out("Labels for unknown texts", found.unknown_labels))
            div {
                dt { "Degenerate texts" }
                dd { (count(degenerate)) }
                dd.note { (share(degenerate.into(), found.texts.into())) }
            }
        }
    }
}

fn left_out(what: &str, number: u64) -> Markup {
    html! {
        @if number > 0 {
            div { dt { (what) } dd { (count(number)) } dd.note { "left out" } }
        }
    }
}

fn curves(shown: Shown<'_>) -> Section {
    Section {
        id: "curves",
        title: "Recall and precision",
        lead: html! {
            "Recall and precision up to each distance, with intervals of 95 %. Choose a distance where "
            "recall is high enough, before precision falls."
        },
        body: plots_of(shown, plots::curves),
    }
}

fn maps(shown: Shown<'_>) -> Section {
    Section {
        id: "similarity",
        title: "Distance and similarity",
        lead: html! {
            "Pairs by the distance of their fingerprints and the similarity of their texts, from 0.5 up. "
            "The closer they lie to a line from the lower right upwards, the more a distance says."
        },
        body: plots_of(shown, plots::map),
    }
}

fn plots_of(shown: Shown<'_>, plot: fn(&Figures) -> Markup) -> Markup {
    html! {
        div.plots {
            @for figures in shown.recipes {
                figure { figcaption { (figures.recipe) } (plot(figures)) }
            }
        }
        (shown.more())
    }
}

fn tables(shown: Shown<'_>) -> Section {
    Section {
        id: "figures",
        title: "Figures",
        lead: html! {
            "What each recipe finds up to each distance. Unlike pairs have less than half of their runs in "
            "common. Recall by length goes by the words of the shorter text."
        },
        body: html! {
            @for figures in shown.recipes { div.wide { (table(figures)) } }
            (shown.more())
        },
    }
}

fn table(figures: &Figures) -> Markup {
    let heads = [
        "Distance",
        "Found",
        "Precision",
        "Recall",
        "F1",
        "Unlike",
        "Degenerate",
    ];
    html! {
        table.plain {
            caption { (figures.recipe) }
            thead {
                tr {
                    @for head in heads { th.number scope="col" { (head) } }
                    @for length in Length::ALL { th.number scope="col" { "Recall, " (length.name()) " words" } }
                }
            }
            tbody { @for row in &figures.rows { (table_row(row)) } }
        }
    }
}

fn table_row(row: &Row) -> Markup {
    html! {
        tr {
            th.number scope="row" { (row.distance) }
            td.number { (count(row.all.found)) }
            @for share in [row.all.precision(), row.all.recall(), row.all.f1()] {
                td.number { (value(share)) }
            }
            td.number { (share(row.unlike.into(), row.all.found.into())) }
            td.number { (share(row.degenerate.into(), row.all.found.into())) }
            @for quality in row.by_length { td.number { (value(quality.recall())) } }
        }
    }
}

fn value(share: Option<Share>) -> Markup {
    html! {
        @match share {
            None => "–",
            Some(share) => data value=(share.value) title=(format!("{:.3} to {:.3}", share.low, share.high)) {
                (format!("{:.3}", share.value))
            }
        }
    }
}

fn examples(shown: Shown<'_>, run: &Report) -> Section {
    Section {
        id: "examples",
        title: "Examples",
        lead: html! {
            "The nearest pairs that are unlike, and the farthest true ones. Read some of both: they show what "
            "a recipe is blind to."
        },
        body: html! {
            ul.cards {
                @for figures in shown.recipes {
                    (card(figures, "unlike, but near", run.first(&figures.junk, EXAMPLES)))
                    (card(figures, "true, but far", run.first(&figures.missed, EXAMPLES)))
                }
            }
            (shown.more())
        },
    }
}

fn card(figures: &Figures, what: &str, examples: &[Example]) -> Markup {
    html! {
        @if !examples.is_empty() {
            li {
                h3 { (figures.recipe) ": " (what) }
                ul.samples {
                    @for example in examples {
                        li {
                            @match example.distance {
                                Some(distance) => { "distance " (distance) },
                                None => "no fingerprint",
                            }
                            ", similarity " (format!("{:.2}", example.similarity)) ": "
                            (outside(&example.ids[0])) " " (outside(&example.ids[1]))
                        }
                    }
                }
            }
        }
    }
}

fn degenerate(found: &Evaluation, run: &Report) -> Section {
    let counts = found.degenerate.iter();
    let counts = counts.map(|one| (one.reason.name(), one.texts));
    Section {
        id: "degenerate-texts",
        title: "Degenerate texts",
        lead: html! {
            "Texts that say too little for a fingerprint: they match each other whatever they are about. Leave "
            "them out if there are many. " code { "--min-words" } " leaves out short ones."
        },
        body: html! {
            (reasons("Degenerate texts by reason", "Texts", counts))
            ul.cards {
                @for one in &found.degenerate {
                    @if !one.examples.is_empty() {
                        li {
                            h3 { (one.reason.name()) }
                            ul.samples {
                                @for id in run.first(&one.examples, EXAMPLES) { li { (outside(id)) } }
                            }
                        }
                    }
                }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use simshard_input::Skipped;
    use simshard_simhash::{Degenerate, TextRecipe, Window};

    use super::*;
    use crate::evaluate::{DegenerateExamples, Quality};

    /// An evaluation in which everything was found, with this id and input.
    fn page(text: &str) -> String {
        page_of(text, &[TextRecipe::default()], 1)
    }

    /// The same by these recipes, with this many examples of each kind.
    fn page_of(text: &str, recipes: &[TextRecipe], examples: usize) -> String {
        let quality = Quality {
            found: 200,
            found_true: 150,
            true_pairs: 150,
            only_true: false,
        };
        let row = |distance| Row {
            distance,
            all: quality,
            by_length: [quality; 4],
            unlike: 10,
            degenerate: 0,
        };
        let example = Example {
            ids: [text.to_owned(), text.to_owned()],
            distance: Some(3),
            similarity: 0.25,
        };
        let figures = |&recipe| Figures {
            recipe,
            rows: (0..=10).map(row).collect(),
            alike: vec![[3; 11]; 11],
            junk: vec![example.clone(); examples],
            missed: vec![example.clone(); examples],
        };
        let found = Evaluation {
            texts: 100,
            repeated: 1,
            wordless: 2,
            drawn_from: Some(1000),
            wordless_labels: 4,
            unknown_labels: 0,
            skipped: Skipped {
                short_texts: 17,
                ..Skipped::default()
            },
            degenerate: vec![DegenerateExamples {
                reason: Degenerate::Few,
                texts: 7,
                examples: vec![text.to_owned(); examples],
            }],
            true_pairs: 150,
            recipes: recipes.iter().map(figures).collect(),
        };
        let suggestion = Suggestion::of(&found, None, 1e8);
        evaluation_page(
            &found,
            suggestion,
            &vec![text.to_owned(); 60 * examples],
            &[(text.to_owned(), text.to_owned())],
        )
    }

    #[test]
    fn the_page_shows_figures_plots_and_examples() {
        let page = page("some/id");
        for part in [
            "0.750",
            "<polyline",
            "<rect",
            "drawn from",
            "--recipe words-v3 --distance 0",
            " --documents 1e8</code>",
            "some/id",
            "<dt>Without words</dt><dd><data value=\"2\">2</data>",
            "<dt>Labels for texts without words</dt><dd><data value=\"4\">4</data>",
            "<dt>Of too few words</dt><dd><data value=\"17\">17</data>",
            "<p class=\"verdict\">Suggested: words-v3 at distance 0 with ",
            "<h3>few distinct runs</h3><ul class=\"samples\"><li>",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("NaN"));
        let verdict = page.split("<p class=\"verdict\">").nth(1).unwrap();
        let verdict = verdict.split("</p>").next().unwrap();
        for figure in [
            "Among <data value=\"100000000\">100\u{202f}000\u{202f}000</data> documents, about \
             <data value=\"0\">0</data> unlike pairs are that near by chance.",
            "Precision <data value=\"0.75\" title=\"0.686 to 0.805\">0.750</data>",
            "recall <data value=\"1\" title=\"0.975 to 1.000\">1.000</data>",
        ] {
            assert!(verdict.contains(figure), "{verdict}");
        }
    }

    /// H1
    #[test]
    fn text_from_outside_adds_no_element() {
        let count = |page: &str| page.matches('<').count();
        let hostile = page("<script>alert(1)</script><b a='\"'>");
        assert_eq!(count(&hostile), count(&page("plain")));
    }

    /// H3
    #[test]
    fn the_page_stays_small_whatever_the_recipes_and_ids_are() {
        let windows = (1..=255).filter_map(Window::new);
        let many: Vec<_> = windows
            .flat_map(|window| [TextRecipe::WordsV2(window), TextRecipe::MozShingle(window)])
            .collect();
        for id in ["x", "\u{10ffff}", "<&"] {
            let id = id.repeat(100_000);
            for recipes in [&many[..1], &many[..6], &many] {
                let page = page_of(&id, recipes, 5);
                assert!(page.len() <= 2_000_000, "{} bytes", page.len());
                assert!(page.contains("more characters"));
                let plots = page.matches("<svg class=\"plot\"").count();
                assert!(plots >= 2 * recipes.len().min(6), "{plots} plots");
            }
        }
        assert!(page_of("some/id", &many, 5).contains("and 446 more"));
        assert!(page_of("some/id", &many[..6], 5).matches("some/id").count() > 120);
    }
}
