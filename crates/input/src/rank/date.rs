//! Dates with a time and an offset, as in RFC 3339. Without an offset, a time is that of UTC; a date alone is its first
//! moment.

/// Parts of a second that are told apart.
const TICKS: u64 = 10_000_000;

const TICKS_OF_A_DAY: u64 = 24 * 60 * 60 * TICKS;

/// Days from the year 0 to another.
const DAYS_TO_1970: u64 = 719_528;
const DAYS_TO_10000: u64 = 3_652_425;

/// The time of a date alone.
const MIDNIGHT: &[u8] = b"T00:00:00Z";

/// Minutes of the largest offset: what is earlier than its beginning is still no negative time.
const LARGEST_OFFSET: u64 = 23 * 60 + 59;

/// The time of a date, in tenths of microseconds since a day before the year 0. `None` if it is no date.
pub(super) fn ticks(date: &[u8]) -> Option<u64> {
    let mut rest = date;
    let year = number(&mut rest, 4)?;
    let month = after(&mut rest, b"-").and_then(|()| number(&mut rest, 2))?;
    let day = after(&mut rest, b"-").and_then(|()| number(&mut rest, 2))?;
    if rest.is_empty() {
        rest = MIDNIGHT;
    }
    after(&mut rest, b"Tt ")?;
    let hour = number(&mut rest, 2)?;
    let minute = after(&mut rest, b":").and_then(|()| number(&mut rest, 2))?;
    let second = after(&mut rest, b":").and_then(|()| number(&mut rest, 2))?;
    let fraction = fraction(&mut rest)?;
    let (is_east, offset) = offset(rest)?;
    let is_day = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    // A leap second is a 61st.
    if !is_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute + LARGEST_OFFSET;
    let minutes = if is_east {
        minutes - offset
    } else {
        minutes + offset
    };
    Some((minutes * 60 + second) * TICKS + fraction)
}

/// The same time, from tenths of microseconds since 1970 in UTC. `None` if no date of four digits a year has it.
pub(super) fn since_1970(ticks: i64) -> Option<u64> {
    let since_0 = i128::from(ticks) + i128::from(DAYS_TO_1970 * TICKS_OF_A_DAY);
    let since_0 = u64::try_from(since_0).ok()?;
    let has_date = since_0 < DAYS_TO_10000 * TICKS_OF_A_DAY;
    has_date.then_some(since_0 + LARGEST_OFFSET * 60 * TICKS)
}

/// Takes a number of exactly this many digits.
fn number(rest: &mut &[u8], digits: usize) -> Option<u64> {
    let (digits, after) = rest.split_at_checked(digits)?;
    *rest = after;
    digits.iter().try_fold(0, |number, digit| {
        let is_digit = digit.is_ascii_digit();
        is_digit.then(|| number * 10 + u64::from(digit - b'0'))
    })
}

/// Takes one of these characters.
fn after(rest: &mut &[u8], any: &[u8]) -> Option<()> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    any.contains(first).then_some(())
}

/// Takes the part of a second after its point, if there is one.
fn fraction(rest: &mut &[u8]) -> Option<u64> {
    let Some(digits) = rest.strip_prefix(b".") else {
        return Some(0);
    };
    let count = digits
        .iter()
        .take_while(|digit| digit.is_ascii_digit())
        .count();
    let (digits, after) = digits.split_at(count);
    *rest = after;
    let mut weight = TICKS;
    let mut fraction = 0;
    for digit in digits {
        weight /= 10;
        fraction += u64::from(digit - b'0') * weight;
    }
    (count > 0).then_some(fraction)
}

/// Whether local time is before that of Greenwich, and by how many minutes they differ.
fn offset(mut rest: &[u8]) -> Option<(bool, u64)> {
    if rest.is_empty() || rest == b"Z" || rest == b"z" {
        return Some((true, 0));
    }
    let is_east = rest.starts_with(b"+");
    after(&mut rest, b"+-")?;
    let hours = number(&mut rest, 2)?;
    let minutes = after(&mut rest, b":").and_then(|()| number(&mut rest, 2))?;
    let is_offset = rest.is_empty() && hours <= 23 && minutes <= 59;
    is_offset.then_some((is_east, hours * 60 + minutes))
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days before a date, since the year 0.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let leap_years = year.div_ceil(4) - year.div_ceil(100) + year.div_ceil(400);
    let months = (1..month).map(|month| days_of(year, month)).sum::<u64>();
    year * 365 + leap_years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_one_another_for_ten_thousand_years() {
        let mut expected = 0;
        for year in 0..10_000 {
            for month in 1..=12 {
                for day in 1..=days_of(year, month) {
                    assert_eq!(days(year, month, day), expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
        assert_eq!(expected, DAYS_TO_10000);
        assert_eq!(days(1970, 1, 1), DAYS_TO_1970);
        // The Gregorian calendar repeats after 400 years, of 146097 days.
        assert_eq!(expected, 25 * 146_097);
    }

    #[test]
    fn dates_ascend_whatever_their_offsets() {
        let ascend = [
            "0000-01-01T00:00:00+23:59",
            "0000-01-01T00:00:00Z",
            "1969-12-31T23:59:59.9999999Z",
            "1970-01-01T00:00:00Z",
            "2024-02-29T12:00:00+02:00",
            "2024-02-29T10:00:00.0000001Z",
            "2024-02-29 05:00:01-05:00",
            "2024-02-29t10:00:01.5z",
            "2016-12-31T23:59:60Z",
            "9999-12-31T23:59:59-23:59",
        ];
        let mut found: Vec<u64> = ascend
            .iter()
            .map(|date| ticks(date.as_bytes()).unwrap())
            .collect();
        // The leap second is of an earlier year than its place in the list.
        let leap = found.remove(8);
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        assert_eq!(leap, ticks(b"2017-01-01T00:00:00Z").unwrap());
    }

    #[test]
    fn a_date_alone_is_its_first_moment() {
        for date in ["0000-01-01", "2024-02-29", "9999-12-31"] {
            let midnight = ticks(format!("{date}T00:00:00Z").as_bytes());
            assert_eq!(ticks(date.as_bytes()), midnight, "{date}");
            assert!(midnight.is_some(), "{date}");
        }
    }

    #[test]
    fn anything_else_is_no_date() {
        for text in [
            "",
            "2024-02",
            "2023-02-29",
            "2024-02-29T",
            "2024-02-29Z",
            "2024-02-29T10:00",
            "2024-02-29T10:00:00 ",
            "2023-02-29T10:00:00Z",
            "2024-13-01T10:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T10:60:00Z",
            "2024-01-01T10:00:61Z",
            "2024-01-01T10:00:00.Z",
            "2024-01-01T10:00:00+24:00",
            "2024-01-01T10:00:00+0200",
            "2024-01-01T10:00:00Zx",
            "24-01-01T10:00:00Z",
            "1706781600",
            "٢٠٢٤-01-01T10:00:00Z",
        ] {
            assert_eq!(ticks(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn times_since_1970_are_those_of_their_dates() {
        const SECOND: i64 = TICKS as i64;
        const YEAR_0: i64 = -(DAYS_TO_1970 as i64) * 86_400;
        for (time, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.9999999Z"),
            (
                1_709_200_800 * SECOND + 1,
                "2024-02-29T12:00:00.0000001+02:00",
            ),
            (YEAR_0 * SECOND, "0000-01-01T00:00:00Z"),
            (253_402_300_800 * SECOND - 1, "9999-12-31T23:59:59.9999999Z"),
        ] {
            assert_eq!(since_1970(time), ticks(date.as_bytes()), "{date}");
            assert!(since_1970(time).is_some(), "{date}");
        }
        for time in [
            i64::MIN,
            YEAR_0 * SECOND - 1,
            253_402_300_800 * SECOND,
            i64::MAX,
        ] {
            assert_eq!(since_1970(time), None, "{time}");
        }
    }
}
