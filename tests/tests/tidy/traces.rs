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

#[test]
fn the_functions_that_a_request_passes_exist() -> Result<()> {
    let page = repository::read(PAGE)?;
    let steps: Vec<_> = page.lines().filter_map(step).collect();
    assert_eq!(steps.len(), 20, "ten steps of a FindAll, ten of an Insert");
    let mut problems = Vec::new();
    for (function, file) in steps {
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
