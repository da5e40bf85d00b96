//! ROM files to cartridges: iNES and NES 2.0 bytes in, an immutable `Cartridge` out that all lanes share.
//!
//! What a board does at run time is in `boards`; the state of its registers belongs to the engines.

pub mod boards;
mod header;
mod states;

use sha1::{Digest, Sha1};
use thiserror::Error;

use super::nes::codec::hex;
pub use boards::Board;
pub use header::Mirroring;
use header::{HEADER_BYTES, TRAINER_BYTES};
pub use states::StateError;

/// The largest ROM that is read; the largest licensed cartridge has 1 MiB.
const MOST_ROM_BYTES: usize = 64 << 20;
/// The largest file that is read for one: both ROMs at their largest, and what tools append.
pub const MOST_FILE_BYTES: u64 = 2 * MOST_ROM_BYTES as u64 + (1 << 20);
/// PRG windows are 16 KiB; a smaller ROM repeats within one.
const PRG_UNIT: usize = 0x4000;
/// The smallest bank that a board switches.
const PRG_BANK: usize = 0x2000;
const CHR_UNIT: usize = 0x2000;

/// Why bytes are not a cartridge that can be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CartError {
    #[error(
        "not a NES ROM: expected it to start with NES\\x1A, found {found:02X?}; use an iNES or NES 2.0 file (.nes)"
    )]
    NotARom { found: Vec<u8> },
    #[error("not a NES ROM but {what}")]
    OtherFile { what: &'static str },
    #[error(
        "expected a 16-byte header that starts with NES\\x1A, found none ({bytes} bytes, as a bare ROM dump has); \
         add an iNES header to the file"
    )]
    Headerless { bytes: usize },
    #[error("the ROM is cut short: its header asks for {expected} bytes, the file has {found}; copy the file again")]
    Truncated { expected: usize, found: usize },
    #[error("the header says that there is no PRG-ROM, expected at least one unit of 16 KiB; the file is damaged")]
    NoPrg,
    #[error("the header asks for a ROM of more than {MOST_ROM_BYTES} bytes; the file is damaged")]
    TooLarge,
    #[error("mapper {number} ({name}) is not supported; supported: {supported}", supported = supported_boards())]
    UnsupportedBoard { number: u16, name: &'static str },
    #[error("the ROM is made for {found}, expected an NTSC NES; use the NTSC release")]
    OtherConsole { found: &'static str },
}

fn supported_boards() -> String {
    let rows = boards::BOARDS.iter().filter(|row| row.board.is_some());
    rows.map(|row| format!("{} ({})", row.mapper, row.name)).collect::<Vec<_>>().join(", ")
}

/// A cartridge as it lies in the shop: nothing in it changes while it is played.
#[derive(Clone, Debug)]
pub struct Cartridge {
    mapper: u16,
    submapper: u8,
    board: Board,
    mirroring: Mirroring,
    prg: Vec<[u8; PRG_BANK]>,
    chr: Vec<u8>,
    chr_ram_bytes: usize,
    work_ram_bytes: usize,
    trainer: Option<Vec<u8>>,
    digest: [u8; 20],
}

impl Cartridge {
    /// Reads an iNES or NES 2.0 file. Bytes after the ROM (titles that some tools append) are ignored.
    ///
    /// # Errors
    /// When the bytes are no such file, are cut short, or need a board or console that is not supported.
    pub fn parse(bytes: &[u8]) -> Result<Self, CartError> {
        let header = header::parse(bytes)?;
        if header.prg_bytes == 0 {
            return Err(CartError::NoPrg);
        }
        if header.prg_bytes > MOST_ROM_BYTES || header.chr_bytes > MOST_ROM_BYTES {
            return Err(CartError::TooLarge);
        }
        let row = boards::row(header.mapper);
        let Some((row, board)) = row.and_then(|row| Some((row, row.board?))) else {
            let name = row.map_or("no name known", |row| row.name);
            return Err(CartError::UnsupportedBoard { number: header.mapper, name });
        };
        let trainer_bytes = if header.trainer { TRAINER_BYTES } else { 0 };
        let expected = HEADER_BYTES + trainer_bytes + header.prg_bytes + header.chr_bytes;
        if bytes.len() < expected {
            return Err(CartError::Truncated { expected, found: bytes.len() });
        }
        let (trainer, rest) = bytes[HEADER_BYTES..].split_at(trainer_bytes);
        let (prg, rest) = rest.split_at(header.prg_bytes);
        Ok(Self {
            mapper: row.mapper,
            submapper: header.submapper,
            board,
            mirroring: header.mirroring,
            prg: banks(&whole_units(prg, PRG_UNIT)),
            chr: whole_units(&rest[..header.chr_bytes], CHR_UNIT),
            // A board without banks reaches no more, whatever the header claims.
            chr_ram_bytes: header.chr_ram_bytes.min(CHR_UNIT),
            work_ram_bytes: header.work_ram_bytes.unwrap_or(0x2000).min(0x2000),
            trainer: header.trainer.then(|| trainer.to_vec()),
            digest: Sha1::digest(&bytes[HEADER_BYTES..]).into(),
        })
    }

    /// SHA-1 of everything after the header: the digest that Stable Retro's rom.sha and our states carry.
    pub fn payload_digest(&self) -> &[u8; 20] {
        &self.digest
    }

    /// The same as 40 lowercase hexadecimal digits.
    pub fn payload_sha1(&self) -> String {
        hex(&self.digest)
    }

    pub fn mapper(&self) -> u16 {
        self.mapper
    }

    pub fn submapper(&self) -> u8 {
        self.submapper
    }

    pub fn board(&self) -> Board {
        self.board
    }

    pub fn mirroring(&self) -> Mirroring {
        self.mirroring
    }

    /// PRG-ROM, a whole number of 16 KiB units.
    pub fn prg(&self) -> &[u8] {
        self.prg.as_flattened()
    }

    /// PRG-ROM by banks of 8 KiB.
    #[inline]
    pub fn prg_banks(&self) -> &[[u8; PRG_BANK]] {
        &self.prg
    }

    /// CHR-ROM, a whole number of 8 KiB units; empty where the board has CHR-RAM.
    pub fn chr(&self) -> &[u8] {
        &self.chr
    }

    /// Whether pattern tables are RAM.
    pub fn has_chr_ram(&self) -> bool {
        self.chr.is_empty()
    }

    /// Bytes of CHR-RAM, 0 with CHR-ROM.
    pub fn chr_ram_bytes(&self) -> usize {
        self.chr_ram_bytes
    }

    /// Whether there is RAM at $6000-$7FFF.
    pub fn has_work_ram(&self) -> bool {
        self.work_ram_bytes > 0
    }

    /// 512 bytes that are put at $7000 at power-on.
    pub fn trainer(&self) -> Option<&[u8]> {
        self.trainer.as_deref()
    }

    /// Bytes of name table memory: 2,048, or 4,096 with four screens.
    pub fn vram_bytes(&self) -> usize {
        if self.mirroring == Mirroring::FourScreen { 4096 } else { 2048 }
    }
}

/// A ROM repeated up to a whole number of units, as its undecoded address lines make it appear.
fn whole_units(rom: &[u8], unit: usize) -> Vec<u8> {
    let size = rom.len().next_multiple_of(unit);
    rom.iter().copied().cycle().take(size).collect()
}

fn banks(rom: &[u8]) -> Vec<[u8; PRG_BANK]> {
    rom.chunks_exact(PRG_BANK).map(|bank| std::array::from_fn(|at| bank[at])).collect()
}

#[cfg(test)]
mod tests;
