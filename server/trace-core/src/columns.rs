//! Tables as columns of plain little-endian numbers, with Arrow's validity bitmaps.

/// A number that a column holds.
pub trait Plain: Copy + Default {
    const DTYPE: &'static str;
    fn put(self, into: &mut Vec<u8>);
}

macro_rules! plain {
    ($($kind:ty => $dtype:literal),*) => {
        $(impl Plain for $kind {
            const DTYPE: &'static str = $dtype;

            #[inline(always)]
            fn put(self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

plain!(u8 => "u1", u16 => "<u2", u32 => "<u4", u64 => "<u8", i64 => "<i8", f64 => "<f8");

impl Plain for bool {
    const DTYPE: &'static str = "u1";

    fn put(self, into: &mut Vec<u8>) {
        into.push(u8::from(self));
    }
}

impl Plain for [u8; 16] {
    const DTYPE: &'static str = "V16";

    fn put(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self);
    }
}

#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub dtype: &'static str,
    pub data: Vec<u8>,
    pub validity: Option<Vec<u8>>,
}

/// Columns of equal length.
#[derive(Debug, Default)]
pub struct Table {
    pub rows: usize,
    pub columns: Vec<Column>,
}

impl Table {
    pub fn of(rows: usize) -> Self {
        Table { rows, columns: Vec::new() }
    }

    /// Every row has a value.
    pub fn add<T: Plain>(&mut self, name: &'static str, values: impl Iterator<Item = T>) {
        let mut data = Vec::with_capacity(self.rows * std::mem::size_of::<T>());
        values.for_each(|value| value.put(&mut data));
        self.columns.push(Column { name, dtype: T::DTYPE, data, validity: None });
    }

    /// Some rows may have none.
    pub fn add_some<T: Plain>(&mut self, name: &'static str, values: impl Iterator<Item = Option<T>>) {
        let mut data = Vec::with_capacity(self.rows * std::mem::size_of::<T>());
        let mut validity = vec![0_u8; self.rows.div_ceil(8)];
        let mut all = true;
        for (row, value) in values.enumerate() {
            match value {
                Some(_) => validity[row / 8] |= 1 << (row % 8),
                None => all = false,
            }
            value.unwrap_or_default().put(&mut data);
        }
        let validity = (!all).then_some(validity);
        self.columns.push(Column { name, dtype: T::DTYPE, data, validity });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_none_is_zero_under_an_unset_bit() {
        let mut table = Table::of(3);
        table.add_some("a", [Some(7_u16), None, Some(9)].into_iter());
        table.add("b", [true, false, true].into_iter());
        assert_eq!(table.columns[0].data, [7, 0, 0, 0, 9, 0]);
        assert_eq!(table.columns[0].validity, Some(vec![0b101]));
        assert_eq!(table.columns[1].validity, None);
        assert_eq!(table.columns[1].data, [1, 0, 1]);
    }
}
