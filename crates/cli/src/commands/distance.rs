//! `simshard distance`: in how many bits two fingerprints differ.

use std::io::Write;

use clap::Args;
use simshard_simhash::Fingerprint;

/// Arguments of `distance`.
#[derive(Args, Clone, Copy, Debug)]
#[command(allow_negative_numbers = true)]
pub struct DistanceArgs {
    /// A fingerprint, decimal
    pub a: Fingerprint,
    /// Another fingerprint
    pub b: Fingerprint,
}

/// Prints the distance.
pub fn run(args: DistanceArgs) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{}", args.a.distance(args.b))?;
    Ok(())
}
