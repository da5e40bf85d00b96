//! From the emulator's errors to Python's: the same text, under the class that a caller would catch.

use pyo3::PyErr;

use crate::emulator::cart::{CartError, StateError};
use crate::emulator::engine::EngineError;

/// The classes of `python/rollcart/errors.py`, and Gymnasium's for a call out of turn.
pub(super) mod raised {
    use pyo3::import_exception;

    import_exception!(gymnasium.error, ResetNeeded);

    import_exception!(rollcart.errors, ConfigError);
    import_exception!(rollcart.errors, RomError);
    import_exception!(rollcart.errors, StateError);
    import_exception!(rollcart.errors, UnsupportedBoard);
}

pub(super) fn rom(error: &CartError) -> PyErr {
    match error {
        CartError::UnsupportedBoard { .. } => raised::UnsupportedBoard::new_err(error.to_string()),
        _ => raised::RomError::new_err(error.to_string()),
    }
}

pub(super) fn state(error: &StateError) -> PyErr {
    raised::StateError::new_err(error.to_string())
}

pub(super) fn engine(error: &EngineError) -> PyErr {
    match error {
        EngineError::BadState { .. } => raised::StateError::new_err(error.to_string()),
        EngineError::NotWritable { .. } | EngineError::NoSwitch { .. } => {
            raised::ConfigError::new_err(error.to_string())
        }
    }
}

/// A setting or an argument that is not one of those allowed.
pub(super) fn config(text: String) -> PyErr {
    raised::ConfigError::new_err(text)
}
