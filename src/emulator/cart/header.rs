//! The 16-byte header of iNES and NES 2.0 files (nesdev wiki, "INES" and "NES 2.0").
//!
//! ```text
//! 0-3  "NES" $1A
//! 4    PRG-ROM in 16 KiB      5    CHR-ROM in 8 KiB, 0 for 8 KiB of CHR-RAM
//! 6    MMMM FTBV  mapper 3-0, four screens, trainer, battery, vertical mirroring
//! 7    MMMM 22CC  mapper 7-4, 2 for NES 2.0, console type
//! 8    SSSS MMMM  NES 2.0: submapper, mapper 11-8
//! 9    CCCC PPPP  NES 2.0: upper bits of both sizes, $F for exponent and multiplier in byte 4 or 5
//! 10   BBBB RRRR  NES 2.0: work RAM, battery and plain, 64 << n bytes
//! 11   BBBB RRRR  NES 2.0: the same for CHR-RAM
//! 12   ---- --TT  NES 2.0: NTSC, PAL, both, Dendy
//! ```
//! Old tools wrote their name over bytes 7-15 ("DiskDude!"): then only byte 6 tells the mapper.

use super::CartError;

pub(super) const HEADER_BYTES: usize = 16;
pub(super) const TRAINER_BYTES: usize = 512;
const PRG_UNIT: usize = 16 * 1024;
const CHR_UNIT: usize = 8 * 1024;

/// How the two kilobytes of name tables answer to four addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mirroring {
    /// $2000 = $2400, $2800 = $2C00: scrolls vertically.
    Horizontal,
    /// $2000 = $2800, $2400 = $2C00: scrolls horizontally.
    Vertical,
    /// Four name tables, with two more kilobytes on the board.
    FourScreen,
}

/// A header's content in bytes and names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub mapper: u16,
    pub submapper: u8,
    pub mirroring: Mirroring,
    pub trainer: bool,
    pub prg_bytes: usize,
    pub chr_bytes: usize,
    /// What the header says of work RAM; only NES 2.0 knows.
    pub work_ram_bytes: Option<usize>,
    pub chr_ram_bytes: usize,
}

/// How files of other kinds start, and what to tell who brings one.
const OTHER_FILES: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "a zip archive; unpack it and use the .nes file inside"),
    (b"\x1F\x8B", "a gzip file; unpack it, or, if it is a saved state, load it as one"),
    (b"FDS\x1A", "a Famicom disk image, which is not supported"),
    (b"UNIF", "a UNIF file; convert it to NES 2.0"),
    (b"NESM\x1A", "an NSF music file, which is not supported"),
    (b"RCST", "a saved state; load it with the ROM that it belongs to"),
];

pub(super) fn parse(bytes: &[u8]) -> Result<Header, CartError> {
    if !bytes.starts_with(b"NES\x1A") {
        return Err(not_ines(bytes));
    }
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(CartError::Truncated { expected: HEADER_BYTES, found: bytes.len() });
    };
    let version_2 = header[7] & 0x0C == 0x08;
    let archaic = !version_2 && (header[7] & 0x0C != 0 || header[12..].iter().any(|&byte| byte != 0));

    let (high, extension) = match (version_2, archaic) {
        (true, _) => (header[7] & 0xF0, header[8]),
        (_, true) => (0, 0),
        _ => (header[7] & 0xF0, 0),
    };
    let console = if archaic { 0 } else { header[7] & 3 };
    let timing = if version_2 { header[12] & 3 } else { 0 };
    match (console, timing) {
        (1, _) => return Err(CartError::OtherConsole { found: "the Vs. System" }),
        (3, _) => return Err(CartError::OtherConsole { found: "an extended console type" }),
        (_, 1) => return Err(CartError::OtherConsole { found: "PAL consoles" }),
        (_, 3) => return Err(CartError::OtherConsole { found: "the Dendy" }),
        _ => {}
    }
    let size_high = if version_2 { header[9] } else { 0 };
    let ram = |nibbles: u8| ram_bytes(nibbles & 0x0F) + ram_bytes(nibbles >> 4);
    let chr_bytes = rom_bytes(header[5], size_high >> 4, CHR_UNIT);
    Ok(Header {
        mapper: u16::from(header[6] >> 4 | high) | u16::from(extension & 0x0F) << 8,
        submapper: extension >> 4,
        mirroring: match header[6] & 0x09 {
            0x00 => Mirroring::Horizontal,
            0x01 => Mirroring::Vertical,
            _ => Mirroring::FourScreen,
        },
        trainer: header[6] & 0x04 != 0,
        prg_bytes: rom_bytes(header[4], size_high & 0x0F, PRG_UNIT),
        chr_bytes,
        work_ram_bytes: version_2.then(|| ram(header[10])),
        chr_ram_bytes: match (chr_bytes, version_2) {
            (0, true) => ram(header[11]).max(CHR_UNIT),
            (0, false) => CHR_UNIT,
            _ => 0,
        },
    })
}

/// A ROM's size: units, or with a high nibble of $F, 2^exponent * (2 multiplier + 1) bytes.
fn rom_bytes(low: u8, high: u8, unit: usize) -> usize {
    if high == 0x0F {
        let odd = usize::from(low & 3) * 2 + 1;
        return odd.checked_shl(u32::from(low >> 2)).filter(|&size| size >= odd).unwrap_or(usize::MAX);
    }
    (usize::from(high) << 8 | usize::from(low)) * unit
}

fn ram_bytes(shift: u8) -> usize {
    if shift == 0 { 0 } else { 64 << shift }
}

fn not_ines(bytes: &[u8]) -> CartError {
    if let Some((_, what)) = OTHER_FILES.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return CartError::OtherFile { what };
    }
    if bytes.len() >= CHR_UNIT && bytes.len() % CHR_UNIT == 0 {
        return CartError::Headerless { bytes: bytes.len() };
    }
    CartError::NotARom { found: bytes[..bytes.len().min(4)].to_vec() }
}
