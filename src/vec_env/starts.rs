//! Where episodes begin: power-on, or a saved state.
//!
//! Files are found by Python; this reads their bytes.

use crate::emulator::cart::Cartridge;
use crate::emulator::nes::ConsoleState;
use crate::emulator::nes::codec::{self, CodecError};

/// A named beginning.
#[derive(Debug, Clone)]
pub struct Start {
    pub name: String,
    /// `None`: the console is switched on.
    pub state: Option<ConsoleState>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("state {name:?}: {reason}")]
    Codec { name: String, reason: CodecError },
}

impl Start {
    /// Reads a state of `cart`: one of ours; `None` is power-on.
    ///
    /// # Errors
    /// When the bytes are no state of this cartridge.
    pub fn read(name: &str, bytes: Option<&[u8]>, cart: &Cartridge) -> Result<Self, StartError> {
        let state = bytes.map(|bytes| codec::decode(bytes, cart.payload_digest())).transpose();
        let state = state.map_err(|reason| StartError::Codec { name: name.into(), reason })?;
        Ok(Self { name: name.into(), state })
    }
}
