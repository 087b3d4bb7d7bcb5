//! How large the clusters are, and what is in the largest.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::list::{ENTRIES, SAMPLES, more};
use crate::report::bars::{Bar, Bars};
use crate::report::numbers::{count, grouped, short};
use crate::report::section::Section;
use crate::report::text::{common_folder, outside, outside_within};
use crate::report::{ClusterSample, Excerpt, Report};

/// Bytes of a text that a card shows.
const EXCERPT: usize = 240;

pub(super) fn sizes(report: &Report) -> Option<Section> {
    if !report.makes_clusters() {
        return None;
    }
    let bins = bins(&report.cluster_sizes);
    let body = if bins.is_empty() {
        html! { p.none { "No document has a near-duplicate, so there are no clusters." } }
    } else {
        let rows = bins.iter().map(|bin| Bar {
            label: html! { (bin.sizes()) },
            number: bin.clusters,
            aside: count(bin.documents),
        });
        let bars = Bars {
            caption: "Clusters by size, each row twice the size of the one above",
            heads: ["Size", "Clusters", "Documents"],
            rows: rows.collect(),
        };
        bars.table()
    };
    Some(Section {
        id: "sizes",
        title: "Cluster sizes",
        lead: html! {
            "Clusters of near-duplicates by the number of documents in them, those without any left "
            "out. Small clusters are usually copies or versions of one text; a few huge ones are usually "
            "templates or empty texts, so look at them below first."
        },
        body,
    })
}

/// Clusters of sizes above `2^power`, up to twice that.
struct Bin {
    power: u32,
    clusters: u128,
    documents: u128,
}

impl Bin {
    fn sizes(&self) -> String {
        let (from, to) = ((1_u128 << self.power) + 1, 1_u128 << (self.power + 1));
        if from == to {
            return grouped(to);
        }
        if to < 10_000 {
            return format!("{}–{}", grouped(from), grouped(to));
        }
        format!("to {}", short(to))
    }
}

/// All bins from the smallest to the largest size that there is, empty ones between them included.
fn bins(sizes: &BTreeMap<u64, u64>) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    for (&size, &clusters) in sizes.range(2..) {
        if clusters == 0 {
            continue;
        }
        let power = (size - 1).ilog2();
        let next = bins.last().map_or(power, |bin| bin.power + 1);
        bins.extend((next..=power).map(|power| Bin {
            power,
            clusters: 0,
            documents: 0,
        }));
        if let Some(bin) = bins.last_mut() {
            bin.clusters += u128::from(clusters);
            let documents = u128::from(size) * u128::from(clusters);
            bin.documents = bin.documents.saturating_add(documents);
        }
    }
    bins
}

pub(super) fn largest(report: &Report) -> Option<Section> {
    let clusters = &report.largest_clusters;
    if clusters.is_empty() {
        return None;
    }
    let shown = report.first(clusters, ENTRIES);
    Some(Section {
        id: "largest",
        title: "Largest clusters",
        lead: html! {
            "The largest clusters, named by their smallest member, with some members and their "
            "distance from the first in bits. Members hang together by chains of near-duplicates, so "
            "read distant ones before you drop a cluster as a whole."
        },
        body: html! {
            ol.cards { @for cluster in shown { (card(cluster, report)) } }
            (more(clusters.len() as u64, shown.len()))
        },
    })
}

fn card(cluster: &ClusterSample, report: &Report) -> Markup {
    let members = report.first(&cluster.members, SAMPLES);
    let folder = common_folder(members.iter().map(|member| member.id.as_str()));
    let texts = members.iter().filter_map(|member| member.text.as_ref());
    html! {
        li {
            h3 { (cluster.id.0) }
            p.size { (count(cluster.size)) " documents" }
            @for text in texts { p.excerpt { (beginning(text)) } }
            @if !folder.is_empty() { p.folder { "in " (outside(folder)) } }
            @if !members.is_empty() {
                table.members {
                    caption.unseen { "Some members of the cluster" }
                    thead.unseen {
                        tr { th scope="col" { "Distance" } th scope="col" { "Document" } }
                    }
                    tbody {
                        @for member in members {
                            tr {
                                td.number { (member.distance) }
                                td { (outside_within(folder, &member.id)) }
                            }
                        }
                    }
                }
                (more(cluster.size, members.len()))
            }
        }
    }
}

/// The first words of a text, as many as fit a few lines.
fn beginning(text: &Excerpt) -> Markup {
    let mut words = String::new();
    for word in text.text.split_whitespace().take(EXCERPT) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() > EXCERPT {
            break;
        }
    }
    let cut = words.floor_char_boundary(EXCERPT);
    let is_cut = cut < words.len() || text.text.split_whitespace().nth(EXCERPT).is_some();
    words.truncate(cut);
    html! { (outside(&words)) @if is_cut { span.more { " …" } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(sizes: &[(u64, u64)]) -> Vec<(String, u128, u128)> {
        let sizes = sizes.iter().copied().collect();
        let bins = bins(&sizes);
        let cells = bins
            .iter()
            .map(|bin| (bin.sizes(), bin.clusters, bin.documents));
        cells.collect()
    }

    #[test]
    fn sizes_are_counted_in_bins_that_double() {
        let rows = labels(&[(1, 9), (2, 3), (3, 1), (4, 1), (5, 1), (17, 2)]);
        let row = |label: &str, clusters, documents| (label.to_owned(), clusters, documents);
        assert_eq!(
            rows,
            [
                row("2", 3, 6),
                row("3–4", 2, 7),
                row("5–8", 1, 5),
                row("9–16", 0, 0),
                row("17–32", 2, 34),
            ]
        );
    }

    #[test]
    fn the_largest_sizes_and_counts_have_a_bin() {
        let rows = labels(&[(u64::MAX, u64::MAX)]);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].1, u128::from(u64::MAX));
        assert_eq!(labels(&[(1_000_000_000, 1)]).len(), 1);
    }
}
