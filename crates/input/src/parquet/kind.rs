//! The types of columns that are read, and what their values are.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::data_type::{ByteArray, Int96};
use parquet::errors::ParquetError as LibraryError;
use parquet::schema::types::ColumnDescriptor;

use crate::cell::Cell;
use crate::table::ValueKind;

/// Tenths of microseconds.
const TICKS_OF_A_MICROSECOND: i64 = 10;
const TICKS_OF_A_MILLISECOND: i64 = 10_000;
const TICKS_OF_A_DAY: i64 = 24 * 60 * 60 * 10_000_000;
const NANOSECONDS_OF_A_TICK: i64 = 100;

/// The Julian day on which 1970 begins: INT96 counts in such days.
const JULIAN_DAY_OF_1970: i64 = 2_440_588;

/// The most digits of a decimal, and the bytes that hold them.
const DECIMAL_DIGITS: i32 = 38;
const DECIMAL_BYTES: usize = 16;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Strings,
    Integers { signed: bool },
    Floats,
    Decimals { scale: i32 },
    Times(Unit),
    Nulls,
}

/// What integers count that are times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Days,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    /// Nanoseconds of a day that is named beside them.
    Int96,
}

impl Kind {
    /// The type of a column's values, if it is supported.
    pub(super) fn of(descriptor: &ColumnDescriptor) -> Option<Self> {
        match descriptor.physical_type() {
            Type::BYTE_ARRAY if is_string(descriptor) => Some(Self::Strings),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => decimals(descriptor),
            Type::INT32 | Type::INT64 => of_integers(descriptor),
            Type::INT96 => Some(Self::Times(Unit::Int96)),
            Type::FLOAT | Type::DOUBLE => Some(Self::Floats),
            Type::BOOLEAN => None,
        }
    }

    /// What that is to the parts of a document.
    pub(super) const fn value_kind(self) -> ValueKind {
        match self {
            Self::Strings => ValueKind::Strings,
            Self::Integers { .. } => ValueKind::Integers,
            Self::Floats | Self::Decimals { .. } => ValueKind::Numbers,
            Self::Times(_) => ValueKind::Times,
            Self::Nulls => ValueKind::Nulls,
        }
    }

    pub(super) fn of_int32<B>(self, value: i32) -> Cell<B> {
        if self == (Self::Integers { signed: false }) {
            return Cell::Unsigned(value.cast_unsigned().into());
        }
        self.of_int64(value.into())
    }

    pub(super) fn of_int64<B>(self, value: i64) -> Cell<B> {
        match self {
            Self::Integers { signed: false } => Cell::Unsigned(value.cast_unsigned()),
            Self::Decimals { scale } => Cell::Number(decimal(value.into(), scale)),
            Self::Times(unit) => Cell::Time(unit.ticks(value)),
            Self::Integers { signed: true } | Self::Strings | Self::Floats | Self::Nulls => {
                Cell::Signed(value)
            }
        }
    }

    pub(super) fn of_bytes(self, bytes: ByteArray) -> Result<Cell<ByteArray>, LibraryError> {
        let Self::Decimals { scale } = self else {
            return Ok(Cell::Bytes(bytes));
        };
        let digits = big_endian(bytes.data());
        let digits = digits.ok_or_else(|| {
            LibraryError::General("a decimal has more digits than its type".to_owned())
        })?;
        Ok(Cell::Number(decimal(digits, scale)))
    }
}

impl Unit {
    /// Tenths of microseconds of as many units. Those of nanoseconds are cut off, as digits after the seventh are.
    const fn ticks(self, count: i64) -> i64 {
        match self {
            Self::Days => count.saturating_mul(TICKS_OF_A_DAY),
            Self::Milliseconds => count.saturating_mul(TICKS_OF_A_MILLISECOND),
            Self::Microseconds => count.saturating_mul(TICKS_OF_A_MICROSECOND),
            Self::Nanoseconds | Self::Int96 => count.div_euclid(NANOSECONDS_OF_A_TICK),
        }
    }
}

/// The time of nanoseconds of a day, and the number of the day after them.
pub(super) fn of_int96<B>(time: &Int96) -> Cell<B> {
    let [low, high, day] = [0, 1, 2].map(|at| time.data().get(at).copied().unwrap_or_default());
    let nanoseconds = u64::from(high) << 32 | u64::from(low);
    let day = i64::from(day.cast_signed()) - JULIAN_DAY_OF_1970;
    let ticks = Unit::Int96.ticks(nanoseconds.cast_signed());
    Cell::Time(Unit::Days.ticks(day).saturating_add(ticks))
}

/// The double next to a decimal.
fn decimal(digits: i128, scale: i32) -> f64 {
    let written = format!("{digits}e{}", -i64::from(scale));
    written.parse().unwrap_or(f64::NAN)
}

/// A number in two's complement, the highest byte first; `None` if it is too large.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let sign = if is_negative { 0xFF } else { 0 };
    let (signs, bytes) = bytes.split_at(bytes.len().saturating_sub(DECIMAL_BYTES));
    let mut whole = [sign; DECIMAL_BYTES];
    whole[DECIMAL_BYTES - bytes.len()..].copy_from_slice(bytes);
    let number = i128::from_be_bytes(whole);
    let is_whole = signs.iter().all(|byte| *byte == sign) && (number < 0) == is_negative;
    is_whole.then_some(number)
}

fn is_string(descriptor: &ColumnDescriptor) -> bool {
    if let Some(logical) = descriptor.logical_type_ref() {
        return matches!(
            logical,
            LogicalType::String | LogicalType::Enum | LogicalType::Json
        );
    }
    matches!(
        descriptor.converted_type(),
        ConvertedType::NONE | ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON
    )
}

/// What integers stand for; `None` for a time of day, among others.
fn of_integers(descriptor: &ColumnDescriptor) -> Option<Kind> {
    match descriptor.logical_type_ref() {
        Some(logical) => of_logical(logical),
        None => of_converted(descriptor.converted_type()),
    }
    .or_else(|| decimals(descriptor))
}

fn of_logical(logical: &LogicalType) -> Option<Kind> {
    if let LogicalType::Integer(integer) = logical {
        let signed = integer.is_signed;
        return Some(Kind::Integers { signed });
    }
    if let LogicalType::Timestamp(timestamp) = logical {
        return Some(Kind::Times(match timestamp.unit {
            TimeUnit::MILLIS => Unit::Milliseconds,
            TimeUnit::MICROS => Unit::Microseconds,
            TimeUnit::NANOS => Unit::Nanoseconds,
        }));
    }
    if matches!(logical, LogicalType::Date) {
        return Some(Kind::Times(Unit::Days));
    }
    matches!(logical, LogicalType::Unknown).then_some(Kind::Nulls)
}

/// What integers stand for by the older marks.
fn of_converted(converted: ConvertedType) -> Option<Kind> {
    use ConvertedType as Converted;
    match converted {
        Converted::UINT_8 | Converted::UINT_16 | Converted::UINT_32 | Converted::UINT_64 => {
            Some(Kind::Integers { signed: false })
        }
        Converted::NONE
        | Converted::INT_8
        | Converted::INT_16
        | Converted::INT_32
        | Converted::INT_64 => Some(Kind::Integers { signed: true }),
        Converted::DATE => Some(Kind::Times(Unit::Days)),
        Converted::TIMESTAMP_MILLIS => Some(Kind::Times(Unit::Milliseconds)),
        Converted::TIMESTAMP_MICROS => Some(Kind::Times(Unit::Microseconds)),
        Converted::DECIMAL
        | Converted::TIME_MILLIS
        | Converted::TIME_MICROS
        | Converted::UTF8
        | Converted::ENUM
        | Converted::JSON
        | Converted::BSON
        | Converted::INTERVAL
        | Converted::LIST
        | Converted::MAP
        | Converted::MAP_KEY_VALUE => None,
    }
}

/// Decimals, if the column is marked as such, and they have not too many digits.
fn decimals(descriptor: &ColumnDescriptor) -> Option<Kind> {
    let (digits, scale) = match descriptor.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => (decimal.precision, decimal.scale),
        None if descriptor.converted_type() == ConvertedType::DECIMAL => {
            (descriptor.type_precision(), descriptor.type_scale())
        }
        Some(_) | None => return None,
    };
    (digits <= DECIMAL_DIGITS).then_some(Kind::Decimals { scale })
}
