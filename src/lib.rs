//! Rollcart runs NES cartridges for reinforcement learning.

#[cfg(feature = "python")]
#[pyo3::pymodule]
fn _native(_m: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> { Ok(()) }
