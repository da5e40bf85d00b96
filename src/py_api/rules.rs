//! `rollcart.GameRules`: what a game's files say about memory, without a console.
//!
//! For tests, tools and anyone who has RAM images; the semantics are `emulator::game`'s.

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::errors;
use crate::emulator::game::{Game, Memory};

const RAM_BYTES: usize = 2048;

/// A game's data.json and scenario.json, compiled.
///
/// data, scenario: the texts of the files. work_ram: bytes of RAM on the cartridge at $6000 (0 or 8192). Raises
/// ConfigError if a file is not what it should be.
#[pyclass(frozen, module = "rollcart")]
pub(crate) struct GameRules {
    game: Game,
    work_ram: usize,
}

#[allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
#[pymethods]
impl GameRules {
    #[new]
    #[pyo3(signature = (data, scenario, work_ram = 0))]
    fn new(data: &str, scenario: &str, work_ram: usize) -> PyResult<Self> {
        let game = Game::compile(data, scenario, work_ram).map_err(|error| errors::config(error.to_string()))?;
        Ok(Self { game, work_ram })
    }

    /// The variables' names, in the order of values().
    #[getter]
    fn names(&self) -> Vec<String> {
        self.game.variables.names().map(String::from).collect()
    }

    /// What the files say that does not mean what it seems to.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.game.warnings.clone()
    }

    /// The variables' values in a RAM image: uint8[2048], followed by work RAM if there is any.
    fn values(&self, ram: PyReadonlyArray1<'_, u8>) -> PyResult<Vec<i64>> {
        let expected = RAM_BYTES + self.work_ram;
        if ram.len() != expected {
            return Err(PyValueError::new_err(format!("ram: expected {expected} bytes, found {}", ram.len())));
        }
        let (ram, work_ram) = ram.as_slice()?.split_at(RAM_BYTES);
        let mut values = vec![0; self.game.variables.len()];
        self.game.variables.read_all(Memory { ram, work_ram }, &mut values);
        Ok(values)
    }

    /// Reward and end of a frame: values after the frame before it, and after it.
    fn judge(&self, before: Vec<i64>, now: Vec<i64>) -> PyResult<(f32, bool)> {
        let expected = self.game.variables.len();
        if before.len() != expected || now.len() != expected {
            let found = format!("{} and {}", before.len(), now.len());
            return Err(PyValueError::new_err(format!("values: expected {expected} of each, found {found}")));
        }
        let verdict = self.game.scenario.judge(&before, &now);
        Ok((verdict.reward, verdict.done))
    }
}
