//! The Python module `rollcart._native`: the only room that names PyO3 or numpy.
//!
//! Everything that Python sees is in the list below; `python/rollcart/_native.pyi` describes it for type checkers and a
//! test compares the two. Errors are the classes of `python/rollcart/errors.py`.

mod batch;
mod console;
mod errors;
mod rules;

use pyo3::prelude::*;

/// The one list of exports.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<batch::KeptLane>()?;
    module.add_class::<console::Console>()?;
    module.add_class::<console::CpuRegisters>()?;
    module.add_class::<rules::GameRules>()?;
    Ok(())
}
