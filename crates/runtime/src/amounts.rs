//! Bytes and times as people read them.

/// Bytes in three digits or so.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$} {}", units[unit])
}

/// Seconds, or minutes if they are many.
#[must_use]
pub fn time(seconds: f64) -> String {
    match seconds {
        ..9.95 => format!("{seconds:.1} s"),
        9.95..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} minutes", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_two_digits_or_more_and_a_unit() {
        for (amount, shown) in [
            (0.0, "0.0 bytes"),
            (12.0, "12 bytes"),
            (9_400.0, "9.4 kB"),
            (999_600.0, "1.0 MB"),
            (83e9, "83 GB"),
            (12_345e12, "12345 TB"),
        ] {
            assert_eq!(bytes(amount), shown);
        }
        assert_eq!(time(1.89), "1.9 s");
        assert_eq!(time(61.0), "61 s");
        assert_eq!(time(600.0), "10 minutes");
    }
}
