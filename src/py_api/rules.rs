//! `rollcart.GameRules`: what a game's files say about memory, without a console.
//!
//! For tests, tools and anyone who has RAM images; the semantics are `emulator::game`'s.

use std::collections::BTreeMap;

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::errors;
use crate::emulator::game::{Episode, Game, GameError, Memory, PLAYERS, ScriptError, Signals, Source};

const RAM_BYTES: usize = 2048;

type Crop = (usize, usize, usize, usize);

/// Reads a game's files; what is wrong with them is a ConfigError.
pub(super) fn compile(
    data: &str,
    scenario: &str,
    scripts: Vec<(String, String)>,
    signals: Option<&str>,
    work_ram: usize,
) -> PyResult<Game> {
    let bad = |error: GameError| errors::config(error.to_string());
    let scripts: Vec<_> = scripts.into_iter().map(|(name, text)| Source { name, text }).collect();
    let mut game = Game::compile(data, scenario, &scripts, work_ram).map_err(bad)?;
    if let Some(text) = signals {
        game.signals = Signals::compile(text, work_ram).map_err(bad)?;
    }
    Ok(game)
}

#[allow(clippy::needless_pass_by_value, reason = "the form that map_err wants")]
fn script(error: ScriptError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A game's data.json and scenario.json, compiled.
///
/// data, scenario: the texts of the files. work_ram: bytes of RAM on the cartridge at $6000 (0 or 8192). scripts: names
/// and texts of the scenario's Lua scripts. signals: the text of signals.json. Raises ConfigError if a file is not what it should be.
#[pyclass(module = "rollcart")]
pub(crate) struct GameRules {
    game: Game,
    work_ram: usize,
    episode: Option<Episode>,
}

#[allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
#[pymethods]
impl GameRules {
    #[new]
    #[pyo3(signature = (data, scenario, work_ram = 0, scripts = Vec::new(), signals = None))]
    fn new(
        data: &str,
        scenario: &str,
        work_ram: usize,
        scripts: Vec<(String, String)>,
        signals: Option<&str>,
    ) -> PyResult<Self> {
        Ok(Self { game: compile(data, scenario, scripts, signals, work_ram)?, work_ram, episode: None })
    }

    #[allow(clippy::unused_self, reason = "Python calls it on one")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("GameRules cannot be pickled or copied: make them with the same texts"))
    }

    /// The variables' names, in the order of values(); those that scripts add follow in begin() and frame().
    #[getter]
    fn names(&self) -> Vec<String> {
        self.game.names().map(String::from).collect()
    }

    /// What the files say that does not mean what it seems to.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.game.warnings.clone()
    }

    /// What each player sees of Stable Retro's picture: (x, y, width, height), 0 reaching to the edge; or None.
    #[getter]
    fn crops(&self) -> Vec<Option<Crop>> {
        self.game.scenario.crops.iter().map(|crop| crop.map(|[x, y, w, h]| (x, y, w, h))).collect()
    }

    /// The groups of button combinations that the scenario allows, None for the console's.
    #[getter]
    fn actions(&self) -> Option<Vec<Vec<Vec<String>>>> {
        self.game.scenario.actions.clone()
    }

    /// The variables' values in a RAM image: uint8[2048], followed by work RAM if there is any.
    fn values(&self, ram: PyReadonlyArray1<'_, u8>) -> PyResult<Vec<i64>> {
        let mut values = vec![0; self.game.variables.len()];
        self.game.variables.read_all(self.memory(&ram)?, &mut values);
        Ok(values)
    }

    /// The signals in a RAM image, by name.
    fn signals(&self, ram: PyReadonlyArray1<'_, u8>) -> PyResult<BTreeMap<String, i64>> {
        let signals = &self.game.signals;
        Ok(signals.names().map(String::from).zip(signals.read(self.memory(&ram)?)).collect())
    }

    /// Reward (of the first player) and end of a frame: values after the frame before it, and after it. For games without
    /// scripts, which see more than two rows of values; these need begin() and frame().
    fn judge(&self, before: Vec<i64>, now: Vec<i64>) -> PyResult<(f32, bool)> {
        if self.game.program.is_some() {
            return Err(PyValueError::new_err("judge: this scenario has scripts; call begin(ram), then frame(ram)"));
        }
        let expected = self.game.variables.len();
        if before.len() != expected || now.len() != expected {
            let found = format!("{} and {}", before.len(), now.len());
            return Err(PyValueError::new_err(format!("values: expected {expected} of each, found {found}")));
        }
        let verdict = self.game.scenario.judge(&before, &now);
        Ok((verdict.rewards[0], verdict.done))
    }

    /// Begins an episode with the RAM image after a reset's frame; gives the values, in the order of names.
    fn begin(&mut self, ram: PyReadonlyArray1<'_, u8>) -> PyResult<Vec<i64>> {
        let mut episode = Episode::new(&self.game);
        episode.begin(&self.game, self.memory(&ram)?).map_err(script)?;
        let values = episode.values().to_vec();
        self.episode = Some(episode);
        Ok(values)
    }

    /// Goes on with the RAM image after the next frame: both players' rewards, whether the episode ended, the values.
    fn frame(&mut self, ram: PyReadonlyArray1<'_, u8>) -> PyResult<([f32; PLAYERS], bool, Vec<i64>)> {
        let mut episode = self.episode.take().ok_or_else(|| PyRuntimeError::new_err("frame: call begin(ram) first"))?;
        let judged = self.memory(&ram).map(|memory| episode.frame(&self.game, memory));
        let values = episode.values().to_vec();
        self.episode = Some(episode);
        let verdict = judged?.map_err(script)?;
        Ok((verdict.rewards, verdict.done, values))
    }

    /// What scripts wrote after the last frame, which the next image would have: (address, byte) each.
    #[getter]
    fn written(&self) -> Vec<(u16, u8)> {
        self.episode.as_ref().map_or_else(Vec::new, |episode| episode.written().to_vec())
    }
}

impl GameRules {
    fn memory<'a>(&self, ram: &'a PyReadonlyArray1<'_, u8>) -> PyResult<Memory<'a>> {
        let expected = RAM_BYTES + self.work_ram;
        if ram.len() != expected {
            return Err(PyValueError::new_err(format!("ram: expected {expected} bytes, found {}", ram.len())));
        }
        let (ram, work_ram) = ram.as_slice()?.split_at(RAM_BYTES);
        Ok(Memory { ram, work_ram })
    }
}
