//! Tables of a flatbuffer, read in place. Every offset is checked.
//!
//! A table begins with the distance back to its list of slots. Each slot says how far after the table's beginning a
//! field is, or 0 where it has its default.

/// A flatbuffer that leads out of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A table.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// The table that a flatbuffer holds.
    pub(super) fn root(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let at = u32::from_le_bytes(array(bytes, 0)?) as usize;
        Ok(Self { bytes, at })
    }

    /// Where a field is, by its number; `None` where it has its default.
    fn place(&self, field: usize) -> Result<Option<usize>, Malformed> {
        let back = i32::from_le_bytes(array(self.bytes, self.at)?);
        let slots = i64::try_from(self.at).map_err(|_| Malformed)? - i64::from(back);
        let slots = usize::try_from(slots).map_err(|_| Malformed)?;
        let slots_end = usize::from(u16::from_le_bytes(array(self.bytes, slots)?));
        let slot = 4 + 2 * field;
        if slot + 2 > slots_end {
            return Ok(None);
        }
        let distance = u16::from_le_bytes(array(self.bytes, slots.saturating_add(slot))?);
        Ok((distance != 0).then(|| self.at.saturating_add(distance.into())))
    }

    fn scalar<const N: usize>(&self, field: usize) -> Result<[u8; N], Malformed> {
        match self.place(field)? {
            Some(place) => array(self.bytes, place),
            None => Ok([0; N]),
        }
    }

    pub(super) fn u8(&self, field: usize) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.scalar(field)?))
    }

    pub(super) fn bool(&self, field: usize) -> Result<bool, Malformed> {
        Ok(self.u8(field)? != 0)
    }

    pub(super) fn i16(&self, field: usize) -> Result<i16, Malformed> {
        Ok(i16::from_le_bytes(self.scalar(field)?))
    }

    pub(super) fn i32(&self, field: usize) -> Result<i32, Malformed> {
        Ok(i32::from_le_bytes(self.scalar(field)?))
    }

    pub(super) fn i64(&self, field: usize) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.scalar(field)?))
    }

    /// Where a field leads that is a table, a string or a vector.
    fn target(&self, field: usize) -> Result<Option<usize>, Malformed> {
        self.place(field)?
            .map(|place| follow(self.bytes, place))
            .transpose()
    }

    pub(super) fn table(&self, field: usize) -> Result<Option<Self>, Malformed> {
        let bytes = self.bytes;
        Ok(self.target(field)?.map(|at| Self { bytes, at }))
    }

    pub(super) fn string(&self, field: usize) -> Result<&'a str, Malformed> {
        let Some(at) = self.target(field)? else {
            return Ok("");
        };
        std::str::from_utf8(elements(self.bytes, at, 1)?).map_err(|_| Malformed)
    }

    /// The bytes of a vector of structs of this size.
    pub(super) fn structs(&self, field: usize, size: usize) -> Result<&'a [u8], Malformed> {
        match self.target(field)? {
            Some(at) => elements(self.bytes, at, size),
            None => Ok(&[]),
        }
    }

    /// The tables of a vector. Several vectors may hold the same ones.
    pub(super) fn tables(
        &self,
        field: usize,
    ) -> Result<impl Iterator<Item = Result<Self, Malformed>>, Malformed> {
        let bytes = self.bytes;
        let (at, count) = match self.target(field)? {
            Some(at) => (at, elements(bytes, at, 4)?.len() / 4),
            None => (0, 0),
        };
        Ok((0..count).map(move |place| {
            let at = follow(bytes, at + 4 + 4 * place)?;
            Ok(Self { bytes, at })
        }))
    }

    /// The length of the flatbuffer that it is in.
    pub(super) fn whole_bytes(&self) -> usize {
        self.bytes.len()
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Malformed> {
    let rest = bytes.get(at..).ok_or(Malformed)?;
    rest.first_chunk().copied().ok_or(Malformed)
}

fn follow(bytes: &[u8], place: usize) -> Result<usize, Malformed> {
    let distance = u32::from_le_bytes(array(bytes, place)?);
    Ok(place.saturating_add(distance as usize))
}

/// The bytes of a vector at a place.
fn elements(bytes: &[u8], at: usize, size: usize) -> Result<&[u8], Malformed> {
    let count = u32::from_le_bytes(array(bytes, at)?) as usize;
    let start = at + 4;
    let end = count
        .checked_mul(size)
        .and_then(|length| start.checked_add(length));
    bytes.get(start..end.ok_or(Malformed)?).ok_or(Malformed)
}
