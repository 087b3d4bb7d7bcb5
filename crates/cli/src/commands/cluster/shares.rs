//! What a plan gives each node, as a table.

use serde_json::json;
use simshard_admin::{Outlook, balance_text};

use super::say_warning;
use crate::args::JsonArgs;
use crate::say::{self, note};

/// Prints how many shards and documents each node holds, before and after, and how much it copies. It says how even that is.
pub(super) fn print(outlook: &Outlook, output: JsonArgs) -> anyhow::Result<()> {
    let mut text =
        "node\tshards before\tshards after\tdocuments before\tdocuments after\tto copy\tbytes to copy"
            .to_owned();
    for share in &outlook.shares {
        let (node, copied) = (&share.node, share.to_copy().len());
        let (many_old, many_new) = (share.documents_before, share.documents_after);
        let bytes = share.bytes_to_copy;
        if output.json {
            say::print_json(&json!({
                "node": node.to_string(),
                "before": share.before.to_string(),
                "after": share.after.to_string(),
                "documents_before": many_old,
                "documents_after": many_new,
                "to_copy": copied,
                "documents_to_copy": share.documents_to_copy,
                "bytes_to_copy": bytes,
            }))?;
        } else {
            let (old, new) = (share.before.len(), share.after.len());
            text.push_str(&format!(
                "\n{node}\t{old}\t{new}\t{many_old}\t{many_new}\t{copied}\t{bytes}"
            ));
        }
    }
    if !output.json {
        say::print(&text)?;
    }
    if let Some(balance) = outlook.balance {
        note(balance_text(balance));
    }
    let unmet = outlook.unmet.iter();
    unmet.for_each(|unmet| say_warning(unmet));
    Ok(())
}
