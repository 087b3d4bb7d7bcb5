//! `simshard man-pages`: a page of the manual for each command.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command, ValueHint};

use crate::say::note;

/// Arguments of `man-pages`.
#[derive(Args, Debug)]
#[command(after_help = "\
The pages have what --help says. `man` finds those of a folder that MANPATH or
/etc/manpath.config names, in its subfolder man1.

Examples:
  simshard man-pages ~/.local/share/man/man1 && man simshard-backup-create
  simshard man-pages /usr/share/man/man1")]
pub struct ManPagesArgs {
    /// Where they go; made if it is not there
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// Writes the pages of a command and of all below it.
pub(crate) fn run(args: &ManPagesArgs, mut command: Command) -> anyhow::Result<()> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    command.build();
    let mut count = 0;
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        let below = command.get_subcommands();
        left.extend(below.filter(|below| below.get_name() != "help").cloned());
        // Those below are called by all their words, as `git` calls its own.
        let name = command.get_bin_name().unwrap_or_default().replace(' ', "-");
        let page = folder.join(format!("{name}.1"));
        let manual = clap_mangen::Man::new(command).title(name.to_uppercase());
        let mut text = Vec::new();
        manual.render(&mut text)?;
        fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
        count += 1;
    }
    note(format!("wrote {count} pages to {}", folder.display()));
    Ok(())
}
