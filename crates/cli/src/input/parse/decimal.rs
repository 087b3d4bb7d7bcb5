//! Decimal numbers, eight digits at a step.

use simshard_simhash::Fingerprint;

use crate::input::LineProblem;
use crate::input::error::{excerpt, not_utf8};

/// The most digits that can never be too large.
const SAFE_DIGITS: usize = 19;

/// The value of decimal digits and nothing else, as `str::parse` reads them; `None` for all that
/// is no unsigned 64-bit decimal, a sign included.
#[must_use]
#[inline]
pub fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.len() > SAFE_DIGITS {
        return long(digits);
    }
    if digits.is_empty() {
        return None;
    }
    short(digits)
}

/// At most 19 digits: below 10^19, and so below 2^64.
#[inline]
fn short(digits: &[u8]) -> Option<u64> {
    let mut value = 0;
    let mut rest = digits;
    while let Some((eight, after)) = rest.split_first_chunk() {
        value = value * 100_000_000 + eight_digits(u64::from_le_bytes(*eight))?;
        rest = after;
    }
    for &digit in rest {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

fn long(digits: &[u8]) -> Option<u64> {
    let (rest, last) = digits.split_at(digits.len() - 1);
    // Zeros may lead, as many as there are.
    let surplus = rest.len() - SAFE_DIGITS;
    if rest[..surplus].iter().any(|&digit| digit != b'0') {
        return None;
    }
    let tens = short(&rest[surplus..])?;
    tens.checked_mul(10)?.checked_add(short(last)?)
}

/// The value of eight ASCII digits, the first in the lowest byte. Pairs of neighbours are added up
/// in all lanes at once: digits to numbers below 100, those to below 10,000, those to one.
#[inline]
fn eight_digits(ascii: u64) -> Option<u64> {
    let (zeros, high) = (0x3030_3030_3030_3030, 0xF0F0_F0F0_F0F0_F0F0);
    // A digit is 0x30 to 0x39: its high half is 3, also with 6 more.
    let above_nine = ascii.wrapping_add(0x0606_0606_0606_0606);
    if (ascii & high) != zeros || (above_nine & high) != zeros {
        return None;
    }
    let digits = ascii - zeros;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF)
}

/// The fingerprint that these bytes write, or what is wrong with them.
#[inline]
pub(super) fn fingerprint(written: &[u8]) -> Result<Fingerprint, LineProblem> {
    match parse_decimal(written) {
        Some(value) => Ok(Fingerprint(value)),
        None => Err(no_fingerprint(written)),
    }
}

#[cold]
fn no_fingerprint(written: &[u8]) -> LineProblem {
    let text = match std::str::from_utf8(written) {
        Ok(text) => text,
        Err(error) => return not_utf8(written, &error),
    };
    let error = match text.parse::<Fingerprint>() {
        Err(error) => error,
        // Not reached: both read the same numbers, which a property test holds them to.
        Ok(_) => simshard_simhash::ParseFingerprintError::NotDecimal,
    };
    let value = excerpt(text);
    LineProblem::NotFingerprint { value, error }
}
