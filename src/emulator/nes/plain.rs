//! Plain data: values that can be written as bytes, read back, and compared field by field.
//!
//! `plain_data!` declares a struct once and derives the three from the declaration, so a field cannot be
//! saved but not compared. Little-endian, no padding, no type tags: the codec's version names the layout.

use thiserror::Error;

/// Why bytes could not be read back as plain data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlainError {
    #[error("the data ends at byte {at}, {missing} more expected: the state was cut short; save it again")]
    CutShort { at: usize, missing: usize },
    #[error("{what} is {found}, expected at most {most}: the state is damaged; save it again")]
    OutOfRange { what: &'static str, found: u64, most: u64 },
}

/// Reads plain data from a slice, front to back.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// `CutShort` when fewer are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], PlainError> {
        if count > self.left() {
            return Err(PlainError::CutShort { at: self.bytes.len(), missing: count - self.left() });
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }
}

/// A value made of plain data.
pub trait Plain: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// # Errors
    /// When the bytes end early or a value is out of its range.
    fn get(from: &mut Reader) -> Result<Self, PlainError>;

    fn put_all(values: &[Self], out: &mut Vec<u8>) {
        for value in values {
            value.put(out);
        }
    }

    /// # Errors
    /// As for `get`.
    fn get_all(from: &mut Reader, values: &mut [Self]) -> Result<(), PlainError> {
        values.iter_mut().try_for_each(|value| Self::get(from).map(|got| *value = got))
    }

    /// Where the two first differ, as `.field[$index]: ours != theirs`; `None` when they are equal.
    fn difference(&self, other: &Self) -> Option<String>;
}

macro_rules! plain_integers {
    ($($kind:ty),*) => {$(
        impl Plain for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn get(from: &mut Reader) -> Result<Self, PlainError> {
                let mut bytes = [0; size_of::<$kind>()];
                bytes.copy_from_slice(from.take(size_of::<$kind>())?);
                Ok(<$kind>::from_le_bytes(bytes))
            }

            fn difference(&self, other: &Self) -> Option<String> {
                (self != other).then(|| format!(": ${self:02X} != ${other:02X}"))
            }
        }
    )*};
}
plain_integers!(u16, u32, u64);

impl Plain for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn get(from: &mut Reader) -> Result<Self, PlainError> {
        Ok(from.take(1)?[0])
    }

    // Memories are most of a state: one copy instead of thousands of single bytes.
    fn put_all(values: &[Self], out: &mut Vec<u8>) {
        out.extend_from_slice(values);
    }

    fn get_all(from: &mut Reader, values: &mut [Self]) -> Result<(), PlainError> {
        values.copy_from_slice(from.take(values.len())?);
        Ok(())
    }

    fn difference(&self, other: &Self) -> Option<String> {
        (self != other).then(|| format!(": ${self:02X} != ${other:02X}"))
    }
}

impl Plain for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(from: &mut Reader) -> Result<Self, PlainError> {
        match from.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(PlainError::OutOfRange { what: "a flag", found: found.into(), most: 1 }),
        }
    }

    fn difference(&self, other: &Self) -> Option<String> {
        (self != other).then(|| format!(": {self} != {other}"))
    }
}

impl<T: Plain> Plain for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(from: &mut Reader) -> Result<Self, PlainError> {
        bool::get(from)?.then(|| T::get(from)).transpose()
    }

    fn difference(&self, other: &Self) -> Option<String> {
        match (self, other) {
            (Some(ours), Some(theirs)) => ours.difference(theirs),
            (None, None) => None,
            (Some(_), None) => Some(": present != absent".into()),
            (None, Some(_)) => Some(": absent != present".into()),
        }
    }
}

fn slice_difference<T: Plain>(ours: &[T], theirs: &[T]) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!(": length {} != {}", ours.len(), theirs.len()));
    }
    (ours.iter().zip(theirs).enumerate())
        .find_map(|(at, (our, their))| our.difference(their).map(|rest| format!("[${at:04X}]{rest}")))
}

impl<T: Plain + Copy + Default, const N: usize> Plain for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        T::put_all(self, out);
    }

    fn get(from: &mut Reader) -> Result<Self, PlainError> {
        let mut values = [T::default(); N];
        T::get_all(from, &mut values)?;
        Ok(values)
    }

    fn difference(&self, other: &Self) -> Option<String> {
        slice_difference(self, other)
    }
}

/// The most bytes that one variable-length field of a state may have (work RAM and CHR-RAM of known boards fit).
const MOST_BYTES: u32 = 1 << 20;

impl Plain for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        u32::try_from(self.len()).expect("a memory of the console is far below 4 GiB").put(out);
        out.extend_from_slice(self);
    }

    fn get(from: &mut Reader) -> Result<Self, PlainError> {
        let length = u32::get(from)?;
        if length > MOST_BYTES {
            let (found, most) = (length.into(), MOST_BYTES.into());
            return Err(PlainError::OutOfRange { what: "a memory's length", found, most });
        }
        Ok(from.take(length as usize)?.to_vec())
    }

    fn difference(&self, other: &Self) -> Option<String> {
        slice_difference(self, other)
    }
}

/// Declares a struct of plain data, with `Plain` derived from its fields in order.
macro_rules! plain_data {
    ($($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $kind:ty,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $kind,)*
        }

        impl $crate::emulator::nes::plain::Plain for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $($crate::emulator::nes::plain::Plain::put(&self.$field, out);)*
            }

            fn get(
                from: &mut $crate::emulator::nes::plain::Reader,
            ) -> Result<Self, $crate::emulator::nes::plain::PlainError> {
                Ok(Self { $($field: $crate::emulator::nes::plain::Plain::get(from)?,)* })
            }

            fn difference(&self, other: &Self) -> Option<String> {
                $(
                    let found = $crate::emulator::nes::plain::Plain::difference(&self.$field, &other.$field);
                    if let Some(rest) = found {
                        return Some(format!(concat!(".", stringify!($field), "{}"), rest));
                    }
                )*
                None
            }
        }
    )*};
}
pub(crate) use plain_data;

#[cfg(test)]
mod tests {
    use super::{Plain, PlainError, Reader};

    // The macro declares for other rooms, hence `pub`.
    #[allow(unreachable_pub)]
    mod declared {
        plain_data! {
            #[derive(Copy, Default)]
            pub struct Inner {
                pub word: u16,
                pub flag: bool,
            }

            pub struct Outer {
                pub inner: [Inner; 2],
                pub bytes: Vec<u8>,
                pub page: Option<u8>,
            }
        }
    }
    use declared::{Inner, Outer};

    fn outer() -> Outer {
        let inner = [Inner { word: 0x1234, flag: true }, Inner::default()];
        Outer { inner, bytes: vec![7; 40], page: Some(2) }
    }

    #[test]
    fn what_was_put_is_got_back() {
        let mut bytes = Vec::new();
        outer().put(&mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(Outer::get(&mut reader), Ok(outer()));
        assert_eq!(reader.left(), 0);
    }

    #[test]
    fn a_difference_names_field_and_index() {
        let mut other = outer();
        assert_eq!(outer().difference(&other), None);
        other.page = None;
        assert_eq!(outer().difference(&other).unwrap(), ".page: present != absent");
        other.bytes[0x12] = 8;
        assert_eq!(outer().difference(&other).unwrap(), ".bytes[$0012]: $07 != $08");
        other.inner[1].word = 1;
        assert_eq!(outer().difference(&other).unwrap(), ".inner[$0001].word: $00 != $01");
    }

    #[test]
    fn every_cut_is_an_error_and_never_a_panic() {
        let mut bytes = Vec::new();
        outer().put(&mut bytes);
        for length in 0..bytes.len() {
            let read = Outer::get(&mut Reader::new(&bytes[..length]));
            assert!(matches!(read, Err(PlainError::CutShort { .. })), "cut at {length}: {read:?}");
        }
    }
}
