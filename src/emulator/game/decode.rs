//! One value in memory: the types of Stable Retro's `data.json`.
//!
//! A type is `endian format width`, for example `|u1`, `<i2`, `>n6`, `><u4`:
//!
//! ```text
//! endian  <  little      >  big       |  =  little (one byte, or this host's order)
//!         <> pairs little, bytes in them big       >< and >=  pairs big, bytes in them little       <=  little
//! format  u unsigned   i sign-extended   d packed decimal, two digits a byte   n one decimal digit a byte
//! width   1..8 bytes
//! ```
//!
//! Letters that nobody defined mean little and unsigned, as stable-retro reads them. Where a value lies is left to
//! `variables`.

/// How to read one value: which byte is the most significant, and what a byte stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueType {
    format: Format,
    width: u8,
    /// Offsets from the value's address, most significant byte first.
    order: [u8; 8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Unsigned,
    Signed,
    PackedDecimal,
    Digit,
}

const FORMATS: [(u8, Format); 4] =
    [(b'u', Format::Unsigned), (b'i', Format::Signed), (b'd', Format::PackedDecimal), (b'n', Format::Digit)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endian {
    Little,
    Big,
    LittlePairs,
    BigPairs,
}

const ENDIANS: [(&str, Endian); 8] = [
    ("<", Endian::Little),
    (">", Endian::Big),
    ("|", Endian::Little),
    ("=", Endian::Little),
    ("<=", Endian::Little),
    ("<>", Endian::LittlePairs),
    ("><", Endian::BigPairs),
    (">=", Endian::BigPairs),
];

impl ValueType {
    /// `None` for a type that stable-retro skips silently: shorter than three characters, or a width outside 1..8.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let [head @ .., format, width] = bytes else { return None };
        if head.is_empty() || !(b'1'..=b'8').contains(width) {
            return None;
        }
        let width = width - b'0';
        let endian = ENDIANS.iter().find(|(name, _)| name.as_bytes() == head).map_or(Endian::Little, |row| row.1);
        let format = FORMATS.iter().find(|(letter, _)| letter == format).map_or(Format::Unsigned, |row| row.1);
        Some(Self { format, width, order: order(endian, width) })
    }

    /// Bytes that the value occupies, 1 to 8.
    #[must_use]
    pub fn width(self) -> usize {
        usize::from(self.width)
    }

    /// The value of the first `width()` bytes of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than that; `variables` leaves such values out.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> i64 {
        let ordered = self.order[..self.width()].iter().map(|&i| bytes[usize::from(i)]);
        match self.format {
            Format::Unsigned => binary(ordered),
            Format::Signed => {
                let unused = 64 - 8 * u32::from(self.width);
                (binary(ordered) << unused) >> unused
            }
            // A nibble above 9 counts modulo 10.
            Format::PackedDecimal => {
                ordered.fold(0, |value, b| value * 100 + i64::from((b >> 4) % 10 * 10 + (b & 15) % 10))
            }
            Format::Digit => ordered.fold(0, |value, b| value * 10 + i64::from((b & 15) % 10)),
        }
    }

    /// Writes a value into the first `width()` bytes of `bytes`, as stable-retro does: what does not fit is cut off, and
    /// a negative number written in decimal has the digits of its 64 bits read as an unsigned one.
    ///
    /// # Panics
    /// If `bytes` is shorter than that.
    pub fn encode(self, value: i64, bytes: &mut [u8]) {
        let value = value as u64;
        for (rank, &at) in self.order[..self.width()].iter().rev().enumerate() {
            let rank = rank as u32;
            bytes[usize::from(at)] = match self.format {
                Format::Unsigned | Format::Signed => (value >> (8 * rank)) as u8,
                Format::PackedDecimal => {
                    let pair = value / 100u64.pow(rank);
                    (pair % 10 + pair / 10 % 10 * 16) as u8
                }
                Format::Digit => (value / 10u64.pow(rank) % 10) as u8,
            };
        }
    }
}

fn binary(most_significant_first: impl Iterator<Item = u8>) -> i64 {
    most_significant_first.fold(0u64, |value, byte| value << 8 | u64::from(byte)) as i64
}

fn order(endian: Endian, width: u8) -> [u8; 8] {
    // Pairs need an even width; stable-retro gives no other width a meaning.
    let endian = if width % 2 == 0 || endian == Endian::Big { endian } else { Endian::Little };
    std::array::from_fn(|rank| {
        let rank = u8::try_from(rank).expect("eight offsets");
        if rank >= width {
            return 0;
        }
        match endian {
            Endian::Little => width - 1 - rank,
            Endian::Big => rank,
            Endian::LittlePairs => width - 2 - (rank & !1) + (rank & 1),
            Endian::BigPairs => rank ^ 1,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::ValueType;

    /// Stable Retro's types: type, bytes in memory, value.
    const TABLE: [(&str, &[u8], i64); 21] = [
        ("=n2", &[0x02, 0x01], 12),
        (">n3", &[0x04, 0x00, 0x00], 400),
        ("<d2", &[0x34, 0x12], 1234),
        (">d2", &[0x12, 0x34], 1234),
        ("><u4", &[2, 1, 4, 3], 0x0102_0304),
        (">=u4", &[2, 1, 4, 3], 0x0102_0304),
        ("<>u4", &[3, 4, 1, 2], 0x0102_0304),
        ("<=u4", &[4, 3, 2, 1], 0x0102_0304),
        ("<u3", &[3, 2, 1], 0x01_0203),
        (">u3", &[1, 2, 3], 0x01_0203),
        ("|i1", &[0xFF], -1),
        ("|u1", &[0xFF], 255),
        ("|d1", &[0xAB], 1),
        ("|n1", &[0xAB], 1),
        ("<i2", &[0xFE, 0xFF], -2),
        ("<u8", &[1, 0, 0, 0, 0, 0, 0, 0], 1),
        (">i8", &[0xFF; 8], -1),
        (">n6", &[0, 0, 1, 2, 3, 0xF4], 1234),
        ("<n8", &[8, 7, 6, 5, 4, 3, 2, 1], 12_345_678),
        ("?u2", &[0x34, 0x12], 0x1234),
        ("<x2", &[0x34, 0x12], 0x1234),
    ];

    #[test]
    fn every_type_of_the_format_decodes_as_stable_retro_does() {
        for (text, bytes, value) in TABLE {
            assert_eq!(ValueType::parse(text).expect(text).decode(bytes), value, "{text} {bytes:02x?}");
        }
    }

    /// What stable-retro 1.0.1 writes: type, value, bytes.
    const WRITTEN: [(&str, i64, &[u8]); 14] = [
        (">n3", 1234, &[2, 3, 4]),
        ("<n3", 300, &[0, 0, 3]),
        (">n3", -5, &[6, 1, 1]),
        (">d2", 99_999, &[0x99, 0x99]),
        ("<d2", 1234, &[0x34, 0x12]),
        ("<d2", -5, &[0x11, 0x16]),
        ("|n1", 1234, &[4]),
        ("|d1", 300, &[0]),
        ("<i2", -5, &[0xFB, 0xFF]),
        ("<i2", 99_999, &[0x9F, 0x86]),
        ("><u4", 1234, &[0, 0, 0xD2, 0x04]),
        ("<>u4", 99_999, &[0x86, 0x9F, 0x00, 0x01]),
        ("<u3", -5, &[0xFB, 0xFF, 0xFF]),
        (">n8", 12_345_678, &[1, 2, 3, 4, 5, 6, 7, 8]),
    ];

    #[test]
    fn every_type_is_written_as_stable_retro_does() {
        for (text, value, bytes) in WRITTEN {
            let mut found = vec![0; bytes.len()];
            ValueType::parse(text).expect(text).encode(value, &mut found);
            assert_eq!(found, bytes, "{text} {value}");
        }
    }

    #[test]
    fn types_that_stable_retro_skips_are_none() {
        for text in ["", "u1", "|u0", "|u9", "<u", "|ux"] {
            assert_eq!(ValueType::parse(text), None, "{text:?}");
        }
    }
}
