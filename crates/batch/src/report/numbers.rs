//! Numbers as people read them. Every one carries its plain digits for programs, in a `data` element.

use std::time::Duration;

use maud::{Markup, html};

/// Between groups of three digits, and between a number and its unit: narrow, and never broken.
const THIN: char = '\u{202f}';

/// From here on digits do not help: numbers are shown as a power of ten.
const TOO_LONG: u128 = 1_000_000_000_000_000;

/// Prefixes of thousands, for labels that must be short.
const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];

/// A count in full, as far as that is readable.
pub(super) fn count(number: impl Into<u128>) -> Markup {
    let number = number.into();
    html! {
        @if number < TOO_LONG {
            data value=(number) { (grouped(number)) }
        } @else {
            data value=(number) title=(grouped(number)) { (power(number)) }
        }
    }
}

/// A number's digits in groups of three.
pub(super) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

/// A number in at most three digits and a unit, for labels.
pub(super) fn short(number: u128) -> String {
    if number < 10_000 {
        return grouped(number);
    }
    if number >= TOO_LONG {
        return power(number);
    }
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{}{THIN}{}", three_digits(value), UNITS[unit])
}

fn power(number: u128) -> String {
    let number = format!("{:.2e}", number as f64);
    let (digits, exponent) = number.split_once('e').unwrap_or((&number, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let exponent = exponent.chars().map(superscript).collect::<String>();
    if digits == "1" {
        return format!("10{exponent}");
    }
    format!("{digits}{THIN}×{THIN}10{exponent}")
}

fn superscript(digit: char) -> char {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let value = digit.to_digit(10).map_or(0, |value| value as usize);
    digits[value]
}

/// How large a part is, in percent.
pub(super) fn share(part: u128, whole: u128) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        0.0 => format!("0{THIN}%"),
        _ if percent < 0.1 => format!("<{THIN}0.1{THIN}%"),
        _ if part == whole => format!("100{THIN}%"),
        _ if percent < 99.95 => format!("{percent:.1}{THIN}%"),
        _ => format!(">{THIN}99.9{THIN}%"),
    }
}

/// A factor, such as `×12.5`.
pub(super) fn factor(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() < 1000.0 {
        return format!("×{}", three_digits(value));
    }
    // Saturates, which is still a large factor.
    format!("×{}", short(value.round() as u128))
}

/// A time, in the unit that suits its length.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if time < Duration::from_millis(1) {
        return format!("{}{THIN}µs", three_digits(seconds * 1e6));
    }
    if time < Duration::from_secs(1) {
        return format!("{}{THIN}ms", three_digits(seconds * 1e3));
    }
    if time < Duration::from_secs(120) {
        return format!("{}{THIN}s", three_digits(seconds));
    }
    let minutes = time.as_secs() / 60;
    if minutes < 120 {
        return format!("{minutes}{THIN}min {}{THIN}s", time.as_secs() % 60);
    }
    let hours = minutes / 60;
    if hours < 48 {
        return format!("{hours}{THIN}h {}{THIN}min", minutes % 60);
    }
    let days = u128::from(hours / 24);
    format!("{}{THIN}d {}{THIN}h", short(days), hours % 24)
}

fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With plain spaces, which are easier to read.
    fn plain(text: &str) -> String {
        text.replace(THIN, " ")
    }

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1 000"),
            (1_234_567, "1 234 567"),
        ] {
            assert_eq!(plain(&grouped(number)), text);
        }
    }

    #[test]
    fn short_numbers_keep_three_digits() {
        for (number, text) in [
            (9_999, "9 999"),
            (10_000, "10 k"),
            (999_499, "999 k"),
            (999_999, "1 M"),
            (123_456_789, "123 M"),
            (1_000_000_000_000_000, "10¹⁵"),
            (u64::MAX.into(), "1.84 × 10¹⁹"),
        ] {
            assert_eq!(plain(&short(number)), text);
        }
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_all() {
        for (part, whole, text) in [
            (0, 9, "0 %"),
            (1, 100_000, "< 0.1 %"),
            (1, 3, "33.3 %"),
            (99_999, 100_000, "> 99.9 %"),
            (9, 9, "100 %"),
            (1, 0, "–"),
        ] {
            assert_eq!(plain(&share(part, whole)), text);
        }
    }

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        for (seconds, text) in [
            (0.000_012_34, "12.3 µs"),
            (0.25, "250 ms"),
            (2.251, "2.25 s"),
            (119.0, "119 s"),
            (150.0, "2 min 30 s"),
            (7_260.0, "2 h 1 min"),
            (176_400.0, "2 d 1 h"),
        ] {
            assert_eq!(plain(&time(Duration::from_secs_f64(seconds))), text);
        }
    }
}
