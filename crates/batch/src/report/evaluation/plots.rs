//! The plots of a recipe, as SVG.

use maud::{Markup, html};

use crate::evaluate::{Figures, Quality, Share};

/// The size of a plot, and the room for its axes.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 34.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 10.0;

/// A place between the axes: both parts from 0 to 1.
fn place(x: f64, y: f64) -> (f64, f64) {
    let across = LEFT + x * (WIDTH - LEFT - RIGHT);
    (across, HEIGHT - BOTTOM - y * (HEIGHT - BOTTOM - TOP))
}

fn points(places: impl Iterator<Item = (f64, f64)>) -> String {
    let points = places
        .map(|(x, y)| place(x, y))
        .map(|(x, y)| format!("{x:.1},{y:.1}"));
    points.collect::<Vec<_>>().join(" ")
}

/// Recall and precision against the distance.
pub(super) fn curves(figures: &Figures) -> Markup {
    let label = format!("Recall and precision of {} by distance", figures.recipe);
    let at = |index: usize| index as f64 / (figures.rows.len() - 1).max(1) as f64;
    let curve = |of: fn(Quality) -> Option<Share>| -> Vec<(f64, Share)> {
        let rows = figures.rows.iter().enumerate();
        rows.filter_map(|(index, row)| Some((at(index), of(row.all)?)))
            .collect()
    };
    html! {
        svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            @for step in 0..=5_u8 {
                @let y = f64::from(step) / 5.0;
                @let (_, down) = place(0.0, y);
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(down) y2=(down) {}
                text x=(LEFT - 6.0) y=(down + 4.0) text-anchor="end" { (format!("{y:.1}")) }
            }
            @for (index, row) in figures.rows.iter().enumerate() {
                (below(at(index), &row.distance.to_string()))
            }
            @let (recall, precision) = (curve(Quality::recall), curve(Quality::precision));
            (line("recall", &recall, recall.last(), "end"))
            (line("precision", &precision, precision.first(), "start"))
        }
    }
}

/// A line within its interval, and its name at one of its ends.
fn line(name: &str, curve: &[(f64, Share)], end: Option<&(f64, Share)>, anchor: &str) -> Markup {
    let low = curve.iter().map(|(x, share)| (*x, share.low));
    let high = curve.iter().rev().map(|(x, share)| (*x, share.high));
    let middle = curve.iter().map(|(x, share)| (*x, share.value));
    html! {
        @if let Some((x, share)) = end {
            polygon.(name) points=(points(low.chain(high))) {}
            polyline.(name) points=(points(middle)) {}
            @let (across, down) = place(*x, share.value);
            text x=(across) y=((down - 5.0).max(TOP)) text-anchor=(anchor) { (name) }
        }
    }
}

/// How many pairs there are of each distance and similarity.
pub(super) fn map(figures: &Figures) -> Markup {
    let label = format!("Pairs of {} by distance and similarity", figures.recipe);
    let most = figures
        .alike
        .iter()
        .flatten()
        .copied()
        .max()
        .unwrap_or(0)
        .max(1);
    let columns = figures.alike.first().map_or(1, |row| row.len()) as f64;
    let rows = figures.alike.len() as f64;
    html! {
        svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            @for (distance, pairs) in figures.alike.iter().enumerate() {
                @let (_, down) = place(0.0, (distance as f64 + 0.5) / rows);
                text x=(LEFT - 6.0) y=(down + 4.0) text-anchor="end" { (distance) }
                @for (step, &pairs) in pairs.iter().enumerate() {
                    @if pairs > 0 {
                        @let (x, y) = place(step as f64 / columns, (distance as f64 + 1.0) / rows);
                        @let (right, bottom) = place((step as f64 + 1.0) / columns, distance as f64 / rows);
                        @let dark = (pairs as f64 / most as f64).sqrt();
                        rect.cell x=(format!("{x:.1}")) y=(format!("{y:.1}"))
                            width=(format!("{:.1}", right - x)) height=(format!("{:.1}", bottom - y))
                            fill-opacity=(format!("{:.3}", 0.05 + 0.95 * dark)) {
                            title { (pairs) " pairs" }
                        }
                    }
                }
            }
            @for step in (0..=10_u8).step_by(2) {
                (below((f64::from(step) + 0.5) / columns, &format!("{:.1}", 0.5 + 0.05 * f64::from(step))))
            }
        }
    }
}

/// A label below the lower axis.
fn below(x: f64, label: &str) -> Markup {
    let (across, _) = place(x, 0.0);
    html! { text x=(format!("{across:.1}")) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { (label) } }
}
