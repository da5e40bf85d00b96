//! Which saved states fit a cartridge: ours, which carry the ROM's digest, and FCEUmm's, which carry only their board's
//! chunks.

use thiserror::Error;

use super::Cartridge;
use crate::emulator::nes::codec::{self, CodecError};
use crate::emulator::nes::fceumm::{self, FceummError, Layout};
use crate::emulator::nes::state::ConsoleState;

/// Why bytes are not a state that this cartridge can go on from.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    #[error(
        "expected a state of Rollcart (RCST) or a gzip'd FCEUmm state, found {found:02X?} ({bytes} bytes); \
         use what save() gave or a .state file of Stable Retro"
    )]
    Unknown { found: Vec<u8>, bytes: usize },
    #[error(transparent)]
    Ours(#[from] CodecError),
    #[error(transparent)]
    Fceumm(#[from] FceummError),
}

impl Cartridge {
    /// Reads a state of either kind. Whether its values are ones that a console can have is the engine's to check.
    ///
    /// # Errors
    /// When the bytes are no state, a damaged one, or one of another ROM or board.
    pub fn read_state(&self, bytes: &[u8]) -> Result<ConsoleState, StateError> {
        if codec::is_ours(bytes) {
            return Ok(codec::decode(bytes, self.payload_digest())?);
        }
        match fceumm::read(bytes, &self.fceumm_layout()) {
            Err(FceummError::NotGzip { found }) => Err(StateError::Unknown { found, bytes: bytes.len() }),
            read => Ok(read?),
        }
    }

    fn fceumm_layout(&self) -> Layout<'_> {
        Layout {
            board: super::boards::row(self.mapper()).map_or("unknown", |row| row.name),
            registers: &[],
            work_ram: if self.has_work_ram() { 0x2000 } else { 0 },
            chr_ram: self.chr_ram_bytes(),
            vram: self.vram_bytes(),
        }
    }
}
