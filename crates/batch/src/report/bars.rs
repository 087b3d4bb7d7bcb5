//! A bar chart that is a table: each row has its label, its bar, its number and one more column.
//!
//! So the numbers are never apart from their picture, and a narrow screen shortens the bars, not the
//! type. Bars and grid are SVG in percent of their cell.

use maud::{Markup, html};

use super::numbers::{count, short};
use super::scale::Scale;

/// A bar chart.
pub(super) struct Bars<'a> {
    /// What the table shows.
    pub(super) caption: &'a str,
    /// The heads of the columns: label, number, and the one more.
    pub(super) heads: [&'a str; 3],
    /// How long the bars are.
    pub(super) scale: Scale,
    /// The rows, from top to bottom.
    pub(super) rows: Vec<Row>,
}

/// A bar.
pub(super) struct Row {
    /// What it stands for.
    pub(super) label: Markup,
    /// How many there are.
    pub(super) number: u128,
    /// The one more column, which says more about the row.
    pub(super) aside: Markup,
}

impl Bars<'_> {
    /// The chart as a table.
    pub(super) fn table(&self) -> Markup {
        let [label, number, aside] = self.heads;
        let scale = self.scale.name();
        html! {
            table.bars data-scale=(scale) {
                caption { (self.caption) " " span.scale { "(" (scale) " scale)" } }
                thead {
                    tr {
                        th scope="col" { (label) }
                        th.axis scope="col" { span.unseen { "Bar" } (self.axis()) }
                        th.number scope="col" { (number) }
                        th.number.aside scope="col" { (aside) }
                    }
                }
                tbody { @for row in &self.rows { (self.row(row)) } }
            }
        }
    }

    fn row(&self, row: &Row) -> Markup {
        let width = self.scale.percent(row.number);
        html! {
            tr {
                th scope="row" { (row.label) }
                td.bar {
                    svg aria-hidden="true" focusable="false" {
                        @for tick in self.scale.ticks() {
                            @let x = format!("{:.3}%", self.scale.percent(tick));
                            line.grid x1=(x) x2=(x) y1="0" y2="100%" {}
                        }
                        rect x="0" y="25%" height="50%" width=(format!("{width:.3}%")) {}
                    }
                }
                td.number { (count(row.number)) }
                td.number.aside { (row.aside) }
            }
        }
    }

    fn axis(&self) -> Markup {
        let ticks = self.scale.ticks();
        let last = ticks.last().copied();
        html! {
            svg aria-hidden="true" focusable="false" {
                @for tick in ticks {
                    @let percent = self.scale.percent(tick);
                    @let anchor = anchor(percent, Some(tick) == last);
                    text x=(format!("{percent:.3}%")) y="100%" dy="-0.6em" text-anchor=(anchor) data-value=(tick) {
                        (short(tick))
                    }
                }
            }
        }
    }
}

/// Labels at the ends of an axis stay within it.
fn anchor(percent: f64, last: bool) -> &'static str {
    if last {
        "end"
    } else if percent < 8.0 {
        "start"
    } else {
        "middle"
    }
}
