//! The page on routing follows a request through the code: the functions that it names exist.

use anyhow::{Context, Result};

use crate::assert_none;
use crate::repository;
use crate::rust_source::code_only;

const PAGE: &str = "docs/design/routing.md";

/// The function and the file of a row such as "| 1 | `f` in `a/src/b.rs` | what it does |".
fn step(row: &str) -> Option<(&str, &str)> {
    let mut cells = row.strip_prefix("| ")?.split(" | ");
    cells.next()?.parse::<u32>().ok()?;
    let (function, file) = cells.next()?.split_once(" in ")?;
    Some((function.trim_matches('`'), file.trim_matches('`')))
}

/// The most steps of a trace: a reader keeps no more in mind.
const MOST_STEPS: usize = 10;

/// The steps of each section that follows a request, by its heading.
fn traces(page: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    let sections = page.split("\n## ").skip(1);
    let traces = sections.filter_map(|section| {
        let (heading, rows) = section.split_once('\n')?;
        let steps = rows.lines().filter_map(step).collect();
        heading
            .ends_with("step by step")
            .then_some((heading, steps))
    });
    traces.collect()
}

#[test]
fn the_functions_that_a_request_passes_exist() -> Result<()> {
    let page = repository::read(PAGE)?;
    let traces = traces(&page);
    assert_eq!(traces.len(), 2, "of a FindAll and of an Insert");
    let mut problems = Vec::new();
    for (heading, steps) in &traces {
        if steps.is_empty() || steps.len() > MOST_STEPS {
            let number = steps.len();
            problems.push(format!("{PAGE}: {heading} has {number} steps"));
        }
    }
    for (function, file) in traces.into_iter().flat_map(|(_, steps)| steps) {
        let text = repository::read(&format!("crates/{file}"))
            .with_context(|| format!("{PAGE} names {file}"))?;
        let code = code_only(&text);
        let has_function = [format!("fn {function}("), format!("fn {function}<")]
            .iter()
            .any(|start| code.contains(start));
        if !has_function {
            problems.push(format!("{PAGE}: {file} has no function {function}"));
        }
    }
    assert_none(&problems);
    Ok(())
}
