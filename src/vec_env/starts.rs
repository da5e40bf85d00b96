//! Where episodes begin: power-on, or a saved state.
//!
//! Files are found by Python, bytes are read by `cart`; whether a console can go on from them is tried by `batch`.

use crate::emulator::cart::{Cartridge, StateError};
use crate::emulator::engine::EngineError;
use crate::emulator::nes::ConsoleState;
use std::sync::Arc;

/// A named beginning.
#[derive(Debug, Clone)]
pub struct Start {
    pub name: Arc<str>,
    /// `None`: the console is switched on.
    pub state: Option<ConsoleState>,
}

/// Why a beginning cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("state {name:?}: {reason}")]
    Unreadable { name: String, reason: StateError },
    #[error("state {name:?}: {reason}")]
    Refused { name: String, reason: EngineError },
}

impl Start {
    /// Reads a state of `cart`; `None` is power-on.
    ///
    /// # Errors
    /// When the bytes are no state of this cartridge.
    pub fn read(name: &str, bytes: Option<&[u8]>, cart: &Cartridge) -> Result<Self, StartError> {
        let state = bytes.map(|bytes| cart.read_state(bytes)).transpose();
        let state = state.map_err(|reason| StartError::Unreadable { name: name.into(), reason })?;
        Ok(Self { name: name.into(), state })
    }
}
