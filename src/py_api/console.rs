//! `rollcart.Console`: one NES with a cartridge in it, for scripts, tests and tools.
//!
//! Translates between Python's values and the engine contract; what a console does is the engine's business, and what
//! many consoles do together is `vec_env`'s.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

use super::errors;
use crate::emulator::cart::{Cartridge, MOST_FILE_BYTES};
use crate::emulator::engine::{Draw, Engine, EngineOptions, FRAME_HEIGHT, FRAME_WIDTH, Frame, ResetKind};
use crate::emulator::fast::Fast;
use crate::emulator::nes::{Buttons, codec, palette};

/// Frames between two looks at whether the user pressed Ctrl-C.
const FRAMES_PER_SIGNAL_CHECK: u64 = 256;

/// The CPU's registers at the end of a frame.
#[pyclass(frozen, get_all, eq, module = "rollcart")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CpuRegisters {
    pc: u16,
    a: u8,
    x: u8,
    y: u8,
    s: u8,
    /// N V 1 0 D I Z C: bit 5 set, bit 4 clear.
    p: u8,
    /// CPU cycles since power-on.
    cycles: u64,
}

impl CpuRegisters {
    fn row(&self) -> [u64; 7] {
        let Self { pc, a, x, y, s, p, cycles } = *self;
        [pc.into(), a.into(), x.into(), y.into(), s.into(), p.into(), cycles]
    }
}

#[pymethods]
impl CpuRegisters {
    fn __len__(&self) -> usize {
        self.row().len()
    }

    /// The registers are a row too, in the order of their declaration.
    fn __getitem__(&self, index: usize) -> PyResult<u64> {
        self.row().get(index).copied().ok_or_else(|| PyIndexError::new_err("the CPU has 7 registers"))
    }

    fn __repr__(&self) -> String {
        let Self { pc, a, x, y, s, p, cycles } = self;
        format!(
            "CpuRegisters(pc=0x{pc:04X}, a=0x{a:02X}, x=0x{x:02X}, y=0x{y:02X}, s=0x{s:02X}, p=0x{p:02X}, cycles={cycles})"
        )
    }
}

/// What bytes, a bytearray or a memoryview holds; `None` for any other thing.
fn held_bytes(object: &Bound<'_, PyAny>) -> Option<PyResult<Vec<u8>>> {
    let holds = object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyMemoryView>();
    holds.then(|| object.py().get_type::<PyBytes>().call1((object,))?.extract())
}

/// The bytes of a ROM given as bytes or as the path of a file.
fn rom_bytes(rom: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Some(bytes) = held_bytes(rom) {
        return bytes;
    }
    if rom.extract::<PathBuf>().is_err() {
        let kind = rom.get_type().name()?;
        return Err(PyTypeError::new_err(format!("rom is of type {kind}, expected a path (str or PathLike) or bytes")));
    }
    let path: PathBuf = rom.py().import("os.path")?.call_method1("expanduser", (rom,))?.extract()?;
    // A device has no end, and a file of another kind may not fit into memory.
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MOST_FILE_BYTES + 1).read_to_end(&mut bytes));
    if bytes.len() as u64 > MOST_FILE_BYTES {
        let text = format!("{} has more than {MOST_FILE_BYTES} bytes, expected a NES ROM (.nes)", path.display());
        return Err(errors::raised::RomError::new_err(text));
    }
    read.map(|_| bytes).map_err(|error| {
        let class = PyErr::from(std::io::Error::from(error.kind())).get_type(rom.py());
        let text = format!("cannot read the ROM {}: {error}", path.display());
        class.call1((text,)).map_or_else(|failed| failed, PyErr::from_value)
    })
}

/// One NES with a cartridge in it.
///
/// rom: path of an iNES or NES 2.0 file, or its bytes. engine: "fast". ram_fill: what RAM and work RAM hold at
/// power-on. Raises RomError, UnsupportedBoard or ConfigError (all of them ValueError), OSError if the file cannot be read.
#[pyclass(module = "rollcart")]
pub(crate) struct Console {
    cart: Arc<Cartridge>,
    engine: Fast,
}

/// A Python integer; one beyond 64 bits is out of every range here: a ConfigError and no OverflowError.
fn whole(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            errors::config(format!("found the number {value}, expected one of at most 64 bits"))
        } else {
            error
        }
    })
}

fn in_range<T: TryFrom<i64>>(what: &str, value: i64, range: &str) -> PyResult<T> {
    T::try_from(value).map_err(|_| errors::config(format!("{what} is {value}, expected {range}")))
}

fn pad(what: &str, buttons: i64) -> PyResult<Buttons> {
    const RANGE: &str = "a sum of A=1 B=2 SELECT=4 START=8 UP=16 DOWN=32 LEFT=64 RIGHT=128 (0-255)";
    Ok(Buttons(in_range(what, buttons, RANGE)?))
}

fn check_engine(name: &str) -> PyResult<()> {
    match name {
        "fast" => Ok(()),
        "reference" => Err(errors::config(
            "engine=\"reference\" is not in this version; it arrives with a later one; use engine=\"fast\"".into(),
        )),
        other => Err(errors::config(format!("engine is {other:?}, expected \"fast\""))),
    }
}

fn rgb_bytes(frame: &Frame) -> Vec<u8> {
    let mut out = vec![0; FRAME_HEIGHT * FRAME_WIDTH * 3];
    for (line, row) in out.chunks_exact_mut(FRAME_WIDTH * 3).enumerate() {
        let colours = &palette::RGB[usize::from(frame.emphasis[line] & 7)];
        for (pixel, &index) in row.chunks_exact_mut(3).zip(frame.row(line)) {
            pixel.copy_from_slice(&colours[usize::from(index & 0x3F)]);
        }
    }
    out
}

#[pymethods]
impl Console {
    #[new]
    #[pyo3(signature = (rom, engine = "fast", ram_fill = 0xFF))]
    fn new(rom: &Bound<'_, PyAny>, engine: &str, #[pyo3(from_py_with = whole)] ram_fill: i64) -> PyResult<Self> {
        check_engine(engine)?;
        let ram_fill = in_range("ram_fill", ram_fill, "a byte (0-255)")?;
        let cart = Arc::new(Cartridge::parse(&rom_bytes(rom)?).map_err(|error| errors::rom(&error))?);
        let options = EngineOptions::from_environment().map_err(|error| errors::engine(&error))?;
        let options = EngineOptions { ram_fill, ..options };
        let engine = Fast::new(Arc::clone(&cart), &options).map_err(|error| errors::engine(&error))?;
        Ok(Self { cart, engine })
    }

    #[allow(clippy::unused_self, reason = "Python calls it on one")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Console cannot be pickled or copied: make one with the same ROM and hand its state over with save() and load()",
        ))
    }

    /// Presses the reset button (soft=True) or switches off and on; runs no frame.
    #[pyo3(signature = (soft = false))]
    fn reset(&mut self, soft: bool) {
        self.engine.reset(if soft { ResetKind::Soft } else { ResetKind::Hard });
    }

    /// Runs frames with these buttons held on the pads (A=1 B=2 SELECT=4 START=8 UP=16 DOWN=32 LEFT=64 RIGHT=128).
    ///
    /// Only the last frame is drawn; what the console does does not depend on that.
    #[pyo3(signature = (buttons = 0, frames = 1, buttons2 = 0))]
    fn step(
        &mut self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] buttons: i64,
        #[pyo3(from_py_with = whole)] frames: i64,
        #[pyo3(from_py_with = whole)] buttons2: i64,
    ) -> PyResult<()> {
        let pads = [pad("buttons", buttons)?, pad("buttons2", buttons2)?];
        let mut left: u64 = in_range("frames", frames, "1 or more")?;
        if left == 0 {
            return Err(errors::config("frames is 0, expected 1 or more".into()));
        }
        while left > 0 {
            let turn = left.min(FRAMES_PER_SIGNAL_CHECK);
            left -= turn;
            py.detach(|| {
                for at in 1..=turn {
                    let draw = if left == 0 && at == turn { Draw::Picture } else { Draw::Skip };
                    self.engine.run_frame(pads, draw);
                }
            });
            py.check_signals()?;
        }
        Ok(())
    }

    /// Runs one frame with these buttons held, as step() does, and gives its CPU trace: a line an instruction or interrupt,
    /// in the columns of nestest's log.
    #[pyo3(signature = (buttons = 0, buttons2 = 0))]
    fn trace(
        &mut self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] buttons: i64,
        #[pyo3(from_py_with = whole)] buttons2: i64,
    ) -> PyResult<Vec<String>> {
        let pads = [pad("buttons", buttons)?, pad("buttons2", buttons2)?];
        let mut lines = Vec::new();
        py.detach(|| self.engine.trace_frame(pads, &mut |line| lines.push(line)));
        Ok(lines)
    }

    /// The console's RAM, uint8[2048], a copy.
    #[getter]
    fn ram<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, self.engine.ram())
    }

    /// The cartridge's RAM at $6000, uint8[8192], a copy; uint8[0] where there is none.
    #[getter]
    fn work_ram<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, self.engine.work_ram().unwrap_or_default())
    }

    /// Name tables, uint8[2048], or uint8[4096] with four screens; a copy.
    fn vram<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, self.engine.vram())
    }

    /// Sprite memory, uint8[256], a copy.
    fn oam<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, self.engine.oam())
    }

    /// Palette memory, uint8[32], a copy; entries 16, 20, 24 and 28 mirror 0, 4, 8 and 12.
    fn palette_ram<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, self.engine.palette_ram())
    }

    /// The byte that the CPU would read there, without side effects: $2000-$401F give the open bus.
    fn peek(&self, #[pyo3(from_py_with = whole)] addr: i64) -> PyResult<u8> {
        Ok(self.engine.peek(in_range("addr", addr, "an address of the CPU ($0000-$FFFF, 0-65535)")?))
    }

    /// Changes a byte of RAM ($0000-$07FF) or work RAM ($6000-$7FFF).
    fn poke(
        &mut self,
        #[pyo3(from_py_with = whole)] addr: i64,
        #[pyo3(from_py_with = whole)] value: i64,
    ) -> PyResult<()> {
        let addr =
            in_range("addr", addr, "$0000-$07FF (0-2047), or $6000-$7FFF (24576-32767) where there is work RAM")?;
        let value = in_range("value", value, "a byte (0-255)")?;
        self.engine.poke(addr, value).map_err(|error| errors::engine(&error))
    }

    /// The last picture as palette indices, uint8[240, 256]; zeros before the first frame.
    fn frame<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u8>>> {
        PyArray1::from_slice(py, self.engine.frame().pixels.as_slice()).reshape([FRAME_HEIGHT, FRAME_WIDTH])
    }

    /// The last picture in red, green and blue, uint8[240, 256, 3], in Stable Retro's colours.
    fn rgb<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        PyArray1::from_vec(py, rgb_bytes(self.engine.frame())).reshape([FRAME_HEIGHT, FRAME_WIDTH, 3])
    }

    #[getter]
    fn cpu(&self) -> CpuRegisters {
        let cpu = self.engine.cpu();
        CpuRegisters { pc: cpu.pc, a: cpu.a, x: cpu.x, y: cpu.y, s: cpu.s, p: cpu.p, cycles: cpu.cycles }
    }

    /// Frames run since power-on, or as loaded.
    #[getter]
    fn frame_count(&self) -> u64 {
        self.engine.frame_count()
    }

    /// The whole state as bytes, for load() of a Console with the same ROM.
    fn save<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &codec::encode(&self.engine.export(), self.cart.payload_digest()))
    }

    /// Goes on from what save() gave, or from a gzip'd FCEUmm state (a .state file of Stable Retro).
    ///
    /// The picture stays until the next frame. Raises StateError, and changes nothing then.
    fn load(&mut self, state: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(bytes) = held_bytes(state) else {
            let kind = state.get_type().name()?;
            return Err(PyTypeError::new_err(format!("state is of type {kind}, expected bytes that save() gave")));
        };
        let state = self.cart.read_state(&bytes?).map_err(|error| errors::state(&error))?;
        self.engine.import(&state).map_err(|error| errors::engine(&error))
    }
}
