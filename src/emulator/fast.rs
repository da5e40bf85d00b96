//! The engine that lanes run: an event-scheduled console with an exact interpreter.
//!
//! Nothing ticks. The CPU runs freely to the next deadline (`run`); every access knows its cycle; PPU and APU are
//! brought up to that cycle when somebody looks at them. `ppu` says what it leaves to the reference engine, `bus`
//! what is where, `interp` what an instruction does.
//!
//! A JAM opcode hangs the CPU until reset; frames go on.

mod apu;
mod bus;
mod cpu;
mod interp;
#[cfg(feature = "jit")]
mod jit;
#[cfg(not(feature = "jit"))]
#[path = "fast/no_jit.rs"]
mod jit;
mod pads;
mod ppu;
pub mod probe;
mod render;
mod run;
mod saved;
mod snapshot;

use std::sync::{Arc, LazyLock};

use super::cart::Cartridge;
use super::engine::{CpuRegisters, Draw, Engine, EngineError, EngineOptions, Frame, ResetKind};
use super::nes::trace::Moment;
use super::nes::{Buttons, ConsoleState, timing};
use bus::{Bus, Interrupt};
use cpu::Cpu;
use jit::Jit;
use probe::{Part, Probe, Silent};
pub use render::{
    Avx2, BEFORE, Canvas, ColumnPart, Columns, Joined, Lines, NO_COLUMNS, OUTPUTS, PARTS, PERIOD, PERIOD_OUTPUTS, Run,
    Scene, Strip, TileSums, first_column,
};
pub use saved::Saved;

/// The frame before the first one.
static BLANK: LazyLock<Frame> = LazyLock::new(Frame::blank);

const RESET_VECTOR: u16 = 0xFFFC;

/// How much of a console's program runs as native code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Translated {
    /// How often the cartridge was translated; each time takes in what was reached since.
    pub generation: u64,
    /// 6502 instructions, basic blocks and bytes of machine code of the newest generation, and how long it took.
    pub instructions: u64,
    pub blocks: u64,
    pub bytes: u64,
    pub seconds: f64,
    /// Instructions that this console executed in the interpreter.
    pub interpreted: u64,
}

/// A console with its cartridge.
pub struct Fast {
    cart: Arc<Cartridge>,
    options: EngineOptions,
    cpu: Cpu,
    bus: Bus,
    frame_count: u64,
    /// None: everything is interpreted.
    jit: Option<Jit>,
}

impl Fast {
    /// The CPU's reset sequence: three stack pushes that do not write, then the vector.
    fn start(&mut self) {
        self.cpu.s = self.cpu.s.wrapping_sub(3);
        self.cpu.i = true;
        self.cpu.jammed = false;
        self.bus.cycles += timing::RESET_CYCLES;
        self.bus.forget_polls();
        self.cpu.pc = u16::from_le_bytes([self.bus.peek(RESET_VECTOR), self.bus.peek(RESET_VECTOR + 1)]);
        self.bus.data_bus = (self.cpu.pc >> 8) as u8;
    }

    fn bus(cart: &Arc<Cartridge>, options: EngineOptions) -> Bus {
        let mut bus = Bus::new(cart, options.ram_fill);
        bus.idle_skip = options.idle_skip;
        bus.poll_skip = options.poll_skip;
        bus.kept_deadlines = options.kept_deadlines;
        bus.ppu.line_log = options.line_log;
        bus.ppu.beam_jumps = options.beam_jumps;
        bus.ppu.avx2 = Avx2::found(options.simd);
        bus
    }

    /// Runs a frame as `run_frame` does; `draw_noted` says that no line's pixels may be left for later.
    fn run<P: Probe>(&mut self, pads: [Buttons; 2], draw: bool, draw_noted: bool) {
        self.bus.pads.hold(pads.map(|pad| pad.0));
        self.bus.probed = P::ON;
        P::span(Part::Ppu, || self.bus.ppu.begin_frame(self.bus.cycles, draw));
        if let Some(jit) = &mut self.jit {
            jit.begin_frame();
        }
        run::run_frame(&mut self.cpu, &mut self.bus, &self.cart, self.jit.as_mut());
        self.end_frame::<P>(draw_noted);
    }

    fn end_frame<P: Probe>(&mut self, draw_noted: bool) {
        self.bus.apu.catch_up(self.bus.cycles - 1);
        P::span(Part::Ppu, || self.bus.ppu.end_frame(self.bus.cycles));
        P::span(Part::Draw, || self.bus.ppu.end_picture(draw_noted));
        self.frame_count += 1;
    }

    /// Runs a frame whose picture, from line `seen_from` on, comes to be on `canvas`, which is made where there is none; `scene`
    /// shows it. `frame` stays as it is.
    pub fn run_frame_on<P: Probe>(&mut self, pads: [Buttons; 2], canvas: &mut Option<Box<Canvas>>, seen_from: usize) {
        canvas.get_or_insert_default().seen_from = seen_from;
        std::mem::swap(canvas, &mut self.bus.ppu.canvas);
        self.run::<P>(pads, true, false);
        std::mem::swap(canvas, &mut self.bus.ppu.canvas);
    }

    /// Runs a frame of which nobody sees the picture.
    pub fn run_frame_unseen<P: Probe>(&mut self, pads: [Buttons; 2]) {
        self.run::<P>(pads, false, false);
    }

    /// The picture of the last frame, which `run_frame_on` has put on `canvas`. With another canvas, or after anything has
    /// changed since, what it shows means nothing.
    pub fn scene<'a, P: Probe>(&'a self, canvas: &'a Canvas) -> Scene<'a, P> {
        Scene::new(canvas, self.bus.ppu.memories())
    }

    /// Runs a frame as `run_frame` does, by single instructions and drawing it; `line` gets the trace's line of each.
    pub fn trace_frame(&mut self, pads: [Buttons; 2], line: &mut dyn FnMut(String)) {
        self.bus.pads.hold(pads.map(|pad| pad.0));
        self.bus.ppu.begin_frame(self.bus.cycles, true);
        run::trace_frame(&mut self.cpu, &mut self.bus, &self.cart, &mut |cpu, bus, interrupt| {
            let ppu = bus.ppu.export(bus.cycles);
            let moment = Moment {
                pc: cpu.pc,
                a: cpu.a,
                x: cpu.x,
                y: cpu.y,
                p: cpu.p(),
                s: cpu.s,
                line: ppu.line,
                dot: ppu.dot,
                cycles: bus.cycles,
            };
            line(match interrupt {
                Some(Interrupt::Nmi) => moment.interrupt("NMI"),
                Some(Interrupt::Irq) => moment.interrupt("IRQ"),
                None => moment.instruction(|addr| bus.peek(addr)),
            });
        });
        self.end_frame::<Silent>(true);
    }

    /// Runs one instruction or takes one interrupt, as if no frame ended. For traces.
    pub fn step_instruction(&mut self) {
        run::step(&mut self.cpu, &mut self.bus, &self.cart);
    }

    /// Waits until the code that was reached so far is translated, so that no translation runs inside a measurement.
    pub fn settle(&mut self) {
        if let Some(jit) = &mut self.jit {
            jit.settle();
        }
    }

    /// `None` where nothing is translated.
    pub fn translated(&self) -> Option<Translated> {
        self.jit.as_ref().map(Jit::stats)
    }

    /// Lets the program go on at `pc`. For test ROMs that have a second entry.
    pub fn jump(&mut self, pc: u16) {
        self.cpu.pc = pc;
    }
}

impl Engine for Fast {
    fn new(cart: Arc<Cartridge>, options: &EngineOptions) -> Result<Self, EngineError> {
        let bus = Self::bus(&cart, *options);
        let mut cpu = Cpu::default();
        cpu.set_p(0x24);
        let jit = Jit::open(&cart, options);
        let mut fast = Self { cart, options: *options, cpu, bus, frame_count: 0, jit };
        fast.start();
        Ok(fast)
    }

    fn reset(&mut self, kind: ResetKind) {
        match kind {
            ResetKind::Hard => {
                self.bus = Self::bus(&self.cart, self.options);
                self.cpu = Cpu::default();
                self.cpu.set_p(0x24);
                self.frame_count = 0;
            }
            ResetKind::Soft => {
                self.bus.ppu.soft_reset(self.bus.cycles);
                self.bus.apu.soft_reset(self.bus.cycles);
                self.bus.oam_dma = None;
            }
        }
        self.start();
    }

    fn run_frame(&mut self, pads: [Buttons; 2], draw: Draw) {
        let draw = draw == Draw::Picture;
        self.run::<Silent>(pads, draw, draw);
    }

    fn frame(&self) -> &Frame {
        self.bus.ppu.canvas.as_ref().map_or(&BLANK, |canvas| canvas.frame())
    }

    fn frame_count(&self) -> u64 {
        self.frame_count
    }

    fn cpu(&self) -> CpuRegisters {
        let cpu = &self.cpu;
        CpuRegisters { pc: cpu.pc, a: cpu.a, x: cpu.x, y: cpu.y, s: cpu.s, p: cpu.p(), cycles: self.bus.cycles }
    }

    fn ram(&self) -> &[u8; 2048] {
        &self.bus.ram
    }

    fn work_ram(&self) -> Option<&[u8]> {
        self.bus.work_ram.bytes()
    }

    fn vram(&self) -> &[u8] {
        &self.bus.ppu.memory.vram
    }

    fn oam(&self) -> &[u8; 256] {
        &self.bus.ppu.oam
    }

    fn palette_ram(&self) -> &[u8; 32] {
        &self.bus.ppu.palette.bytes
    }

    fn peek(&self, addr: u16) -> u8 {
        self.bus.peek(addr)
    }

    fn poke(&mut self, addr: u16, value: u8) -> Result<(), EngineError> {
        match addr {
            0x0000..0x0800 => self.bus.ram[usize::from(addr)] = value,
            0x6000..0x8000 if self.bus.work_ram.bytes().is_some() => self.bus.work_ram.write(addr, value),
            _ => return Err(EngineError::NotWritable { addr }),
        }
        Ok(())
    }

    fn export(&self) -> ConsoleState {
        snapshot::export(&self.cpu, &self.bus, self.frame_count)
    }

    fn import(&mut self, state: &ConsoleState) -> Result<(), EngineError> {
        snapshot::import(&mut self.cpu, &mut self.bus, state)?;
        self.frame_count = state.frame_count;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
