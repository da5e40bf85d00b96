//! `rollcart._native.Batch`: the lanes of `rollcart.NesVectorEnv`, in arrays.
//!
//! Translates between numpy and `vec_env`. Options travel as JSON, so that their names, defaults and limits stand in
//! `vec_env::config` alone; observations are written into arrays that the caller made.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadwriteArrayDyn};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::{errors, rules};
use crate::emulator::cart::Cartridge;
use crate::emulator::nes::codec;
use crate::vec_env::{
    self, BatchError, Buffers, Config, Kept, MakeError, Outcome, Start, Tally, WINDOW_HEIGHT, WINDOW_WIDTH,
};

type Array1<'py, T> = Bound<'py, PyArray1<T>>;
type Array2<'py, T> = Bound<'py, PyArray2<T>>;
type Output<'py> = Option<PyReadwriteArrayDyn<'py, u8>>;
/// Reward, terminated, truncated, infos, whether endings() has something.
type Stepped<'py> = (Array1<'py, f64>, Array1<'py, bool>, Array1<'py, bool>, Bound<'py, PyDict>, bool);
/// Lane, image bytes, RAM bytes.
type Last<'py> = (usize, Array1<'py, u8>, Array1<'py, u8>);

/// A state, and the pads of every frame since.
type Logged<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, bool);

/// A lane as it was, inside this process; bytes() of it can leave the process.
#[pyclass(module = "rollcart", frozen)]
pub(crate) struct KeptLane(Kept);

#[pymethods]
impl KeptLane {
    /// Name of the state where later episodes begin.
    #[getter]
    fn start(&self) -> &str {
        self.0.start()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// It never changes, so it is its own copy.
    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    #[allow(clippy::unused_self, reason = "Python calls it on one")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a KeptLane stays in its process and cannot be pickled: pickle bytes(it)"))
    }
}

/// Many consoles with the same cartridge.
#[pyclass(module = "rollcart")]
pub(crate) struct Batch {
    batch: vec_env::Batch,
    cart: Arc<Cartridge>,
    /// Each info's key and the key of its mask, whole numbers first.
    keys: Vec<(Py<PyString>, Py<PyString>)>,
}

fn made(error: &MakeError) -> PyErr {
    match error {
        MakeError::Config(_) => errors::config(error.to_string()),
        MakeError::Start(_) => errors::raised::StateError::new_err(error.to_string()),
        MakeError::Engine(error) => errors::engine(error),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the form that map_err wants")]
fn called(error: BatchError) -> PyErr {
    let text = error.to_string();
    match error {
        BatchError::Action { .. } | BatchError::Length { .. } | BatchError::NoLane { .. } => {
            PyValueError::new_err(text)
        }
        BatchError::NotReset { .. } | BatchError::Ended { .. } => errors::raised::ResetNeeded::new_err(text),
        BatchError::OtherProcess | BatchError::Interrupted | BatchError::Script { .. } => PyRuntimeError::new_err(text),
        BatchError::Snapshot { .. } => errors::raised::StateError::new_err(text),
    }
}

/// Runs a call without the interpreter, and breaks it off when a signal handler raises: Ctrl-C in a long step.
#[allow(clippy::redundant_closure_for_method_calls, reason = "the method is not general over lifetimes")]
fn watched(
    py: Python<'_>,
    call: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<(), BatchError> + Send,
) -> PyResult<()> {
    let mut raised = None;
    let result = py.detach(|| {
        call(&mut || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_some()
        })
    });
    raised.map_or_else(|| result.map_err(called), Err)
}

fn bytes_of<'a>(array: &'a mut Output<'_>) -> PyResult<&'a mut [u8]> {
    match array {
        None => Ok(&mut []),
        Some(array) => Ok(array.as_slice_mut()?),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
#[pymethods]
impl Batch {
    /// options: JSON of NesVectorEnv's arguments. data, scenario: the texts of the game's files. starts: names and the
    /// bytes of their states, None for power-on. scripts: names and texts of the scenario's scripts.
    /// signals: the text of signals.json, None for no signals.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "one for each of a game's files")]
    #[pyo3(signature = (rom, options, data, scenario, starts, scripts = Vec::new(), signals = None))]
    fn new(
        py: Python<'_>,
        rom: &[u8],
        options: &str,
        data: &str,
        scenario: &str,
        starts: Vec<(String, Option<Vec<u8>>)>,
        scripts: Vec<(String, String)>,
        signals: Option<&str>,
    ) -> PyResult<Self> {
        let cart = Arc::new(Cartridge::parse(rom).map_err(|error| errors::rom(&error))?);
        let work_ram = if cart.has_work_ram() { 0x2000 } else { 0 };
        let game = rules::compile(data, scenario, scripts, signals, work_ram)?;
        let options = serde_json::from_str(options).map_err(|error| errors::config(error.to_string()))?;
        let config = Config::read(options, Some(&game.scenario)).map_err(|error| errors::config(error.to_string()))?;
        let read = |(name, bytes): &(String, Option<Vec<u8>>)| Start::read(name, bytes.as_deref(), &cart);
        let starts = starts.iter().map(read).collect::<Result<Vec<_>, _>>().map_err(|error| made(&error.into()))?;
        let batch = vec_env::Batch::new(&cart, config, game, starts).map_err(|error| made(&error))?;
        let names = batch.infos().integer_names().chain(batch.infos().real_names());
        let key =
            |name: &str| (PyString::intern(py, name).unbind(), PyString::intern(py, &format!("_{name}")).unbind());
        let keys = names.map(key).collect();
        Ok(Self { batch, cart, keys })
    }

    #[getter]
    fn num_envs(&self) -> usize {
        self.batch.config().num_envs
    }

    /// Threads that run lanes, the caller's included.
    #[getter]
    fn num_threads(&self) -> usize {
        self.batch.threads()
    }

    /// Shape of one lane's stacked image; None without images.
    #[getter]
    fn image_shape(&self) -> Option<(usize, usize, usize)> {
        self.batch.image_shape().map(|[a, b, c]| (a, b, c))
    }

    /// Bytes of one lane's RAM observation; 0 without.
    #[getter]
    fn ram_bytes(&self) -> usize {
        self.batch.ram_bytes()
    }

    /// Name of the action space (Discrete, MultiDiscrete, MultiBinary) and its sizes.
    #[getter]
    fn action_space(&self) -> (&'static str, Vec<usize>) {
        self.batch.config().actions.describe()
    }

    /// For a Discrete space: the button masks of both pads for each number.
    #[getter]
    fn action_buttons(&self) -> Option<Vec<(u8, u8)>> {
        self.batch.config().actions.rows().map(|rows| rows.iter().map(|[a, b]| (a.0, b.0)).collect())
    }

    #[getter]
    fn integer_keys(&self) -> Vec<String> {
        self.batch.infos().integer_names().map(String::from).collect()
    }

    #[getter]
    fn real_keys(&self) -> Vec<String> {
        self.batch.infos().real_names().map(String::from).collect()
    }

    /// Names of the states where episodes can begin.
    #[getter]
    fn start_names(&self) -> Vec<String> {
        self.batch.start_names().map(String::from).collect()
    }

    /// Which of them each lane begins at.
    #[getter]
    fn starts(&self) -> Vec<usize> {
        self.batch.starts().collect()
    }

    /// What the game's files say that does not mean what it seems to.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.batch.game().warnings.clone()
    }

    /// SHA-1 of the ROM without its header.
    #[getter]
    fn rom_sha1(&self) -> String {
        self.cart.payload_sha1()
    }

    /// Adds a state where episodes can begin; gives its index. It takes the place of forgotten, unless lanes begin there.
    #[pyo3(signature = (name, state, forgotten = None))]
    fn add_start(&mut self, name: &str, state: Option<&[u8]>, forgotten: Option<usize>) -> PyResult<usize> {
        let start = Start::read(name, state, &self.cart).map_err(|error| made(&error.into()))?;
        self.batch.add_start(start, forgotten).map_err(|error| made(&error.into()))
    }

    /// Begins episodes in the lanes of mask (all without one) and writes the observations of all lanes. anew: at their
    /// starts, also where the last episode ended with a life alone.
    #[pyo3(signature = (mask, seeds, starts, anew, image, ram))]
    #[allow(clippy::too_many_arguments, reason = "what a reset chooses, and where it writes")]
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        mask: Option<PyReadonlyArray1<'py, bool>>,
        seeds: Vec<Option<u64>>,
        starts: Option<Vec<usize>>,
        anew: bool,
        mut image: Output<'py>,
        mut ram: Output<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mask = mask.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let buffers = Buffers { image: bytes_of(&mut image)?, ram: bytes_of(&mut ram)? };
        watched(py, |interrupted| self.batch.reset(mask, &seeds, starts.as_deref(), anew, buffers, interrupted))?;
        self.infos_of(py, &self.batch.tallies().map(Some).collect::<Vec<_>>(), mask)
    }

    /// Plays one action a lane and writes the observations. actions: int64, all lanes' numbers in a row. Lanes outside
    /// mask neither move nor write, and what is told of them is what was.
    #[pyo3(signature = (actions, image, ram, mask = None))]
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        actions: PyReadonlyArray1<'py, i64>,
        mut image: Output<'py>,
        mut ram: Output<'py>,
        mask: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<Stepped<'py>> {
        let actions = actions.as_slice()?;
        let mask = mask.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let buffers = Buffers { image: bytes_of(&mut image)?, ram: bytes_of(&mut ram)? };
        watched(py, |interrupted| self.batch.step(mask, actions, buffers, interrupted))?;
        let outcomes: Vec<_> = self.batch.outcomes().collect();
        let flags =
            |flag: fn(&Outcome) -> bool| PyArray1::from_slice(py, &outcomes.iter().map(flag).collect::<Vec<_>>());
        let reward = PyArray1::from_slice(py, &outcomes.iter().map(|outcome| outcome.reward).collect::<Vec<_>>());
        let (terminated, truncated) = (flags(|outcome| outcome.terminated), flags(|outcome| outcome.truncated));
        let infos = self.infos_of(py, &self.batch.tallies().map(Some).collect::<Vec<_>>(), None)?;
        Ok((reward, terminated, truncated, infos, self.batch.endings().next().is_some()))
    }

    /// Lanes that a step would refuse: never reset, or ended where nothing resets them.
    #[getter]
    fn refused(&self) -> Vec<bool> {
        (0..self.num_envs()).map(|lane| self.batch.steppable(lane).is_err()).collect()
    }

    /// What the episodes that the last step ended and reset showed last: (lane, image bytes, RAM bytes) each, and their
    /// infos; other lanes' infos are 0 and masked.
    fn endings<'py>(&self, py: Python<'py>) -> PyResult<(Vec<Last<'py>>, Bound<'py, PyDict>)> {
        let (mut mask, mut tallies) = (vec![false; self.num_envs()], vec![None; self.num_envs()]);
        let mut last = Vec::new();
        for (lane, image, ram, tally) in self.batch.endings() {
            last.push((lane, PyArray1::from_slice(py, image), PyArray1::from_slice(py, ram)));
            mask[lane] = true;
            tallies[lane] = Some(tally);
        }
        Ok((last, self.infos_of(py, &tallies, Some(&mask))?))
    }

    /// Writes the observations as they are.
    #[pyo3(signature = (image, ram))]
    fn observe<'py>(&mut self, py: Python<'py>, mut image: Output<'py>, mut ram: Output<'py>) -> PyResult<()> {
        let buffers = Buffers { image: bytes_of(&mut image)?, ram: bytes_of(&mut ram)? };
        py.detach(|| self.batch.observe(buffers)).map_err(called)
    }

    /// The whole state of each chosen lane, None for the others.
    fn keep(&self, lanes: Vec<bool>) -> PyResult<Vec<Option<KeptLane>>> {
        let one = |(lane, chosen): (usize, &bool)| {
            chosen.then(|| self.batch.keep(lane).map(KeptLane).map_err(called)).transpose()
        };
        lanes.iter().enumerate().map(one).collect()
    }

    /// The lane that a snapshot's bytes tell of, for lane `lane`, which an error names.
    fn read(&self, lane: usize, snapshot: &[u8]) -> PyResult<KeptLane> {
        self.batch.read(lane, snapshot).map(KeptLane).map_err(called)
    }

    /// Takes over kept lanes; None leaves a lane as it is. Nothing changes unless all of them fit.
    fn recall(&mut self, kept: Vec<Option<PyRef<'_, KeptLane>>>) -> PyResult<()> {
        let kept: Vec<_> = kept.iter().map(|kept| kept.as_ref().map(|kept| &kept.0)).collect();
        self.batch.recall(&kept).map_err(called)
    }

    /// Copies the state of lane source into the chosen lanes.
    fn fork(&mut self, source: usize, lanes: Vec<bool>) -> PyResult<()> {
        self.batch.fork(source, &lanes).map_err(called)
    }

    /// Writes down what is pressed in the chosen lanes from now on.
    fn log_inputs(&mut self, lanes: Vec<bool>) -> PyResult<()> {
        self.batch.log_inputs(&lanes).map_err(called)
    }

    /// Where a lane's log begins, as a state for Console.load, two bytes a frame, one a pad, and whether scripts wrote
    /// into memory; None without a log.
    fn inputs<'py>(&self, py: Python<'py>, lane: usize, before: bool) -> PyResult<Option<Logged<'py>>> {
        let inputs = self.batch.inputs(lane, before).map_err(called)?;
        Ok(inputs.map(|inputs| {
            let pads: Vec<u8> = inputs.pads.iter().flatten().map(|pad| pad.0).collect();
            (PyBytes::new(py, &codec::encode(&inputs.start, self.batch.rom())), PyBytes::new(py, &pads), inputs.poked)
        }))
    }

    /// The lane's last picture, uint8[224, 240, 3].
    fn render<'py>(&mut self, py: Python<'py>, lane: usize) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let mut picture = vec![0; 3 * WINDOW_HEIGHT * WINDOW_WIDTH];
        self.batch.render(lane, &mut picture).map_err(called)?;
        PyArray1::from_vec(py, picture).reshape([WINDOW_HEIGHT, WINDOW_WIDTH, 3])
    }

    /// Every lane's RAM, uint8[lanes, 2048].
    fn ram<'py>(&self, py: Python<'py>) -> PyResult<Array2<'py, u8>> {
        let mut bytes = vec![0; 2048 * self.num_envs()];
        self.batch.ram(&mut bytes);
        PyArray1::from_vec(py, bytes).reshape([self.num_envs(), 2048])
    }

    /// Starts or stops the clocks inside lanes.
    fn time_lanes(&mut self, on: bool) {
        self.batch.time_lanes(on);
    }

    /// Waits until the code that was reached so far is translated; returns at once where nothing is.
    fn settle(&mut self, py: Python<'_>) {
        py.detach(|| self.batch.settle());
    }

    /// What was done and how long it took.
    fn profile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let profile = self.batch.profile();
        let out = PyDict::new(py);
        for (name, count) in [
            ("calls", profile.calls),
            ("steps", profile.work.steps),
            ("frames", profile.work.frames),
            ("frames_redrawn", profile.work.redrawn),
            ("lines_drawn_at_once", profile.work.lines_drawn_at_once),
            ("episodes", profile.work.episodes),
            ("resets", profile.work.resets),
            ("memory_per_lane", profile.lane_bytes as u64),
        ] {
            out.set_item(name, count)?;
        }
        out.set_item("seconds_in_step", profile.stepping.as_secs_f64())?;
        let parts = [
            "lane_seconds_cpu",
            "lane_seconds_ppu",
            "lane_seconds_drawing",
            "lane_seconds_observing",
            "lane_seconds_looking",
        ];
        for (name, time) in parts.iter().zip(profile.work.spent.0) {
            out.set_item(name, time.as_secs_f64())?;
        }
        let translated = profile.translated.unwrap_or_default();
        for (name, count) in [
            ("jit_generations", translated.generation),
            ("jit_instructions", translated.instructions),
            ("jit_bytes", translated.bytes),
            ("jit_interpreted", translated.interpreted),
        ] {
            out.set_item(name, count)?;
        }
        out.set_item("jit_seconds", translated.seconds)?;
        Ok(out)
    }
}

impl Batch {
    /// Every key with its values, 0 where a lane has none, and its mask.
    fn infos_of<'py>(
        &self,
        py: Python<'py>,
        tallies: &[Option<&Tally>],
        mask: Option<&[bool]>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let infos = self.batch.infos();
        let whole = infos.integer_names().count();
        let out = PyDict::new(py);
        let all = vec![true; tallies.len()];
        let (mut integers, mut reals) = (vec![0; tallies.len()], vec![0.0; tallies.len()]);
        for (at, (key, mask_key)) in self.keys.iter().enumerate() {
            if at < whole {
                for (value, tally) in integers.iter_mut().zip(tallies) {
                    *value = tally.map_or(0, |tally| infos.integer(at, tally));
                }
                out.set_item(key, PyArray1::from_slice(py, &integers))?;
            } else {
                for (value, tally) in reals.iter_mut().zip(tallies) {
                    *value = tally.map_or(0.0, |tally| infos.real(at - whole, tally));
                }
                out.set_item(key, PyArray1::from_slice(py, &reals))?;
            }
            out.set_item(mask_key, PyArray1::from_slice(py, mask.unwrap_or(&all)))?;
        }
        Ok(out)
    }
}
