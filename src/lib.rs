//! Rollcart runs NES cartridges for reinforcement learning.
//!
//! `emulator` is the console.

pub mod emulator;

#[cfg(feature = "python")]
#[pyo3::pymodule]
fn _native(m: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
    pyo3::types::PyModuleMethods::add(m, "__version__", env!("CARGO_PKG_VERSION"))
}
