//! A bar chart that is a table: each row has its label, its bar, its number and one more column.
//!
//! So the numbers are never apart from their picture, and a narrow screen shortens the bars, not the
//! type. Bars and grid are SVG in percent of their cell.

use maud::{Markup, html};

use super::numbers::{count, short};
use super::scale::Scale;

/// The labels of an axis: those at its ends stay within it.
const ANCHORS: [&str; 3] = ["start", "middle", "end"];

/// A bar chart.
pub(super) struct Bars<'a> {
    /// The caption of the table.
    pub(super) caption: &'a str,
    /// The heads of the columns: label, number, and the one more.
    pub(super) heads: [&'a str; 3],
    /// The rows, from top to bottom.
    pub(super) rows: Vec<Bar>,
}

/// A bar.
pub(super) struct Bar {
    /// Its label.
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
        let scale = Scale::fitting(self.rows.iter().map(|row| row.number));
        html! {
            table.bars {
                caption { (self.caption) }
                thead {
                    tr {
                        th scope="col" { (label) }
                        th.axis scope="col" { span.unseen { "Bar" } (axis(scale)) }
                        th.number scope="col" { (number) }
                        th.number.aside scope="col" { (aside) }
                    }
                }
                tbody { @for row in &self.rows { (row.table_row(scale)) } }
            }
        }
    }
}

impl Bar {
    fn table_row(&self, scale: Scale) -> Markup {
        let width = scale.percent(self.number);
        html! {
            tr {
                th scope="row" { (self.label) }
                td.bar {
                    svg aria-hidden="true" focusable="false" {
                        @for tick in scale.ticks() {
                            @let x = format!("{:.3}%", scale.percent(tick));
                            line.grid x1=(x) x2=(x) y1="0" y2="100%" {}
                        }
                        rect x="0" y="25%" height="50%" width=(format!("{width:.3}%")) {}
                    }
                }
                td.number { (count(self.number)) }
                td.number.aside { (self.aside) }
            }
        }
    }
}

fn axis(scale: Scale) -> Markup {
    html! {
        svg aria-hidden="true" focusable="false" {
            @for (tick, anchor) in scale.ticks().into_iter().zip(ANCHORS) {
                @let x = format!("{:.3}%", scale.percent(tick));
                text x=(x) y="100%" dy="-0.6em" text-anchor=(anchor) data-value=(tick) {
                    (short(tick))
                }
            }
        }
    }
}
