//! What a verb lists: once, or anew every few seconds.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Context;
use console::Term;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};

use super::TableArgs;
use super::access::ClusterAccess;
use crate::say;

/// A table for people, or an object a line for scripts.
pub(super) struct Listing {
    /// The names of the columns.
    head: &'static str,
    rows: Vec<String>,
    objects: Vec<Value>,
}

impl Listing {
    pub(super) const fn new(head: &'static str) -> Self {
        Self {
            head,
            rows: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// Adds a row, by its columns and as an object.
    pub(super) fn push(&mut self, columns: String, object: Value) {
        self.push_row(columns);
        self.push_object(object);
    }

    /// Adds a row of the table alone.
    pub(super) fn push_row(&mut self, columns: String) {
        self.rows.push(columns);
    }

    /// Adds an object alone.
    pub(super) fn push_object(&mut self, object: Value) {
        self.objects.push(object);
    }

    fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return self.objects.iter().try_for_each(say::print_json);
        }
        let mut text = self.head.to_owned();
        for row in &self.rows {
            text.push('\n');
            text.push_str(row);
        }
        say::print(text)
    }
}

/// Prints what `list` finds in the metadata. With `--watch` it does so again and again: then only the first look may fail.
pub(super) async fn show(
    args: &TableArgs,
    list: impl AsyncFn(&ClusterAccess) -> anyhow::Result<Listing>,
) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let json = args.output.json;
    let Some(seconds) = args.watch else {
        return list(&access).await?.print(json);
    };
    let mut ticks = interval(Duration::from_secs(seconds));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_looked = false;
    loop {
        ticks.tick().await;
        let listing = list(&access).await;
        if !has_looked && listing.is_err() {
            return listing.map(drop);
        }
        has_looked = true;
        clear(seconds)?;
        match listing {
            Ok(listing) => listing.print(json)?,
            Err(error) => say::warn(format!("cannot look now, and tries again: {error:#}")),
        }
    }
}

/// Makes a terminal empty, and says on it how to go on. Elsewhere, one table follows the other.
fn clear(seconds: u64) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() {
        let cleared = Term::stdout().clear_screen();
        cleared.context("cannot write <stdout>")?;
        say::note(format!("every {seconds} s, until Ctrl-C"));
    }
    Ok(())
}
