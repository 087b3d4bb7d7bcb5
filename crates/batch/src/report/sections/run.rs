//! How the run went: time, input that was left out, settings and inputs.

use std::time::Duration;

use maud::{Markup, html};

use super::list::{ENTRIES, more, reasons};
use crate::report::Report;
use crate::report::numbers::{share, time};
use crate::report::section::Section;
use crate::report::summary::total;
use crate::report::text::outside;

/// Colours that the style sheet has for phases; further phases start over.
const COLOURS: usize = 8;

pub(super) fn timings(report: &Report) -> Option<Section> {
    let total = total(report);
    if total.is_zero() {
        return None;
    }
    let phases = report.first(&report.timings, ENTRIES);
    Some(Section {
        id: "timings",
        title: "Time",
        lead: html! {
            "Where the time went. The widest part is the one worth a change: more threads, input "
            "that is cheaper to read, or another number of blocks."
        },
        body: html! {
            (stack(phases, total))
            table.plain {
                caption { "Time by phase" }
                thead {
                    tr {
                        th scope="col" { "Phase" }
                        th.number scope="col" { "Time" }
                        th.number scope="col" { "Share" }
                    }
                }
                tbody {
                    @for (index, (phase, took)) in phases.iter().enumerate() {
                        tr {
                            th scope="row" { (swatch(index)) (outside(phase)) }
                            td.number { (seconds(*took)) }
                            td.number { (share(took.as_nanos(), total.as_nanos())) }
                        }
                    }
                }
                tfoot {
                    tr { th scope="row" { "Total" } td.number { (seconds(total)) } td {} }
                }
            }
            (more(report.timings.len() as u64, phases.len()))
        },
    })
}

fn seconds(duration: Duration) -> Markup {
    html! { data value=(duration.as_secs_f64()) { (time(duration)) } }
}

/// All phases, one after the other, in one bar.
fn stack(phases: &[(String, Duration)], total: Duration) -> Markup {
    let percent = |time: Duration| time.as_secs_f64() / total.as_secs_f64() * 100.0;
    let starts = phases.iter().scan(Duration::ZERO, |end, (_, took)| {
        let start = *end;
        *end = start.saturating_add(*took);
        Some(start)
    });
    html! {
        svg.stack aria-hidden="true" focusable="false" {
            @for (index, ((_, took), start)) in phases.iter().zip(starts).enumerate() {
                @let x = format!("{:.3}%", percent(start));
                @let width = format!("{:.3}%", percent(*took));
                rect.{ "phase" (index % COLOURS) } x=(x) width=(width) height="100%" {}
            }
        }
    }
}

fn swatch(index: usize) -> Markup {
    html! {
        svg.swatch aria-hidden="true" focusable="false" {
            rect.{ "phase" (index % COLOURS) } width="100%" height="100%" {}
        }
    }
}

pub(super) fn skipped(report: &Report) -> Option<Section> {
    if report.skipped.is_empty() {
        return None;
    }
    let shown = report.first(&report.skipped, ENTRIES);
    let counts = shown
        .iter()
        .map(|(reason, number)| (reason.as_str(), *number));
    Some(Section {
        id: "skipped",
        title: "Skipped input",
        lead: html! {
            "What was left out, and why. If it is more than you expect, mend the input and run again: "
            "the result says nothing about it."
        },
        body: html! {
            (reasons("Skipped input by reason", "Skipped", counts))
            (more(report.skipped.len() as u64, shown.len()))
        },
    })
}

pub(in crate::report) fn settings(report: &Report) -> Option<Section> {
    if report.settings.is_empty() {
        return None;
    }
    let shown = report.first(&report.settings, ENTRIES);
    Some(Section {
        id: "settings",
        title: "Settings",
        lead: html! {
            "What the run was told, or chose itself. Keep it with the result: with the same settings "
            "and inputs, the result is the same."
        },
        body: html! {
            table.plain {
                caption { "Settings of the run" }
                thead { tr { th scope="col" { "Setting" } th scope="col" { "Value" } } }
                tbody {
                    @for (name, value) in shown {
                        tr { th scope="row" { (outside(name)) } td { (outside(value)) } }
                    }
                }
            }
            (more(report.settings.len() as u64, shown.len()))
        },
    })
}

pub(in crate::report) fn inputs(report: &Report) -> Option<Section> {
    if report.inputs.is_empty() {
        return None;
    }
    let shown = report.first(&report.inputs, ENTRIES);
    Some(Section {
        id: "inputs",
        title: "Inputs",
        lead: html! { "What was read, in this order. Check that nothing is missing or there twice." },
        body: html! {
            ol.inputs { @for input in shown { li { (outside(input)) } } }
            (more(report.inputs.len() as u64, shown.len()))
        },
    })
}
