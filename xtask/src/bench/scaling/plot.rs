//! The plot of cost against size, as SVG. It brings its own white ground, so that it can be read on any page.

use anyhow::Context;
use plotters::prelude::*;

use super::Curve;

/// Width and height.
const SIZE: (u32, u32) = (960, 620);

/// A colour for each curve: tellable for people who see few colours.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(60, 60, 60),
];

/// Room for the marks beside the first and the last size, as a factor.
const MARGIN: f64 = 1.3;

/// Pixels of a text, and of the line beside a name.
const TEXT: i32 = 17;
const SAMPLE: i32 = 24;

/// The picture of some curves, both axes logarithmic.
pub(crate) fn svg(curves: &[Curve]) -> anyhow::Result<String> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let sizes = ends(points().map(|point| point.n));
    let costs = ends(points().map(|point| point.nanoseconds));
    let ((least, most), (low, high)) = sizes.zip(costs).context("there is nothing to draw")?;
    let sizes = least / MARGIN..most * MARGIN;
    // Whole decades, so that there are labels above and below all curves.
    let costs = 10_f64.powf(low.log10().floor())..10_f64.powf(high.log10().ceil());
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .margin(16)
            .x_label_area_size(56)
            .y_label_area_size(76)
            .build_cartesian_2d(sizes.log_scale(), costs.log_scale())?;
        chart
            .configure_mesh()
            .label_style(("sans-serif", TEXT))
            .x_desc("n: fingerprints or documents stored")
            .y_desc("nanoseconds each")
            .x_label_formatter(&|n| short(*n))
            .y_label_formatter(&|nanoseconds| format!("{nanoseconds:.0}"))
            .draw()?;
        for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
            let places = curve
                .points
                .iter()
                .map(|point| (point.n, point.nanoseconds));
            let style = ShapeStyle {
                color: colour.to_rgba(),
                filled: true,
                stroke_width: 2,
            };
            let line = LineSeries::new(places, style).point_size(4);
            chart.draw_series(line)?.label(curve.name).legend(|(x, y)| {
                PathElement::new([(x, y), (x + SAMPLE, y)], colour.stroke_width(3))
            });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font(("sans-serif", TEXT))
            .legend_area_size(SAMPLE + 8)
            .background_style(WHITE)
            .border_style(RGBColor(160, 160, 160))
            .draw()?;
        root.present()?;
    }
    Ok(text)
}

/// The least and the most of some values.
fn ends(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let least = values.clone().reduce(f64::min)?;
    Some((least, values.reduce(f64::max)?))
}

/// A size as people say it.
pub(super) fn short(n: f64) -> String {
    match n {
        1e6.. => format!("{:.0}M", n / 1e6),
        1e3.. => format!("{:.0}k", n / 1e3),
        _ => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Point;
    use super::*;

    #[test]
    fn a_picture_names_its_curves_and_sizes() {
        let points = [(1e4, 50.0), (1e8, 700.0)];
        let points = points.map(|(n, nanoseconds)| Point { n, nanoseconds });
        let curve = Curve {
            name: "a query",
            points: points.to_vec(),
        };
        let picture = svg(&[curve]).unwrap();
        for text in ["a query", "10k", "100M", "nanoseconds each"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        assert!(svg(&[]).is_err());
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([1e4, 1e6, 5e7, 9.0].map(short), ["10k", "1M", "50M", "9"]);
    }
}
