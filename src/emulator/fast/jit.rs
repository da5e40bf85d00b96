//! Translation of a cartridge's 6502 code to native code (Cranelift).
//!
//! The interpreter runs first and notes what it reaches. When enough time went into code that is not translated, a
//! thread makes a new generation from everything reached; lanes take it over between frames. All lanes and threads of
//! the process that play the same ROM share it. docs/engine.md says how equality with the interpreter is kept.
//!
//! ```text
//! decode  one instruction      graph  blocks, bounds, edges       emit   a function of Cranelift's language
//! code    memory and entry     calls  register accesses           shared reached code, generations, the thread
//! ```
//! To add a board with bank switching: key `table`, `known` and `reached` by bank too (`Image` holds what is visible
//! now); to translate one more instruction: its row in `decode::flow`, its effect in `emit::alu`.

mod calls;
mod code;
mod decode;
mod emit;
mod graph;
mod layout;
mod shared;

use std::sync::Arc;

use super::Translated;
use super::bus::Bus;
use super::cpu::Cpu;
use super::interp;
use crate::emulator::cart::boards::nrom;
use crate::emulator::cart::{Board, Cartridge};
use crate::emulator::engine::EngineOptions;
use code::{Code, Exit};
use graph::MOST_CYCLES;
use shared::Shared;

/// The program came to this address.
const REACHED: u8 = 1;
/// It came by a computed jump, or from the interpreter: the dispatcher wants an entry here.
const WANTED: u8 = 2;

/// PRG-ROM as the CPU sees it from $8000 on.
#[derive(PartialEq, Eq)]
struct Image(Vec<u8>);

impl Image {
    fn new(cart: &Cartridge) -> Self {
        let banks = match cart.board() {
            Board::Nrom => nrom::prg_banks(cart.prg().len()),
        };
        Self(banks.iter().flat_map(|&bank| cart.prg_banks()[usize::from(bank)]).collect())
    }

    /// These bytes again and again.
    #[cfg(test)]
    fn of(bytes: &[u8]) -> Self {
        Self(bytes.iter().copied().cycle().take(0x8000).collect())
    }

    fn read(&self, at: u16) -> u8 {
        self.0[graph::slot(at)]
    }

    fn from(&self, at: u16) -> &[u8] {
        &self.0[graph::slot(at)..]
    }
}

/// What decides how code is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passes {
    idle_skip: bool,
    poll_skip: bool,
    links: bool,
    dead_flags: bool,
    polls: bool,
    registers: bool,
    returns: bool,
    layout_seed: u64,
}

/// A lane's hold on the translation of its cartridge.
pub(super) struct Jit {
    shared: Arc<Shared>,
    code: Arc<Code>,
    generation: u64,
    interpreted: u64,
}

impl Jit {
    /// The translation that this process shares for the cartridge and options; `None` when it is switched off.
    pub(super) fn open(cart: &Arc<Cartridge>, options: &EngineOptions) -> Option<Self> {
        let jit = options.jit;
        let passes = Passes {
            idle_skip: options.idle_skip,
            poll_skip: options.poll_skip,
            links: jit.links,
            dead_flags: jit.dead_flags,
            polls: jit.polls && options.poll_skip,
            registers: jit.registers,
            returns: jit.returns,
            layout_seed: jit.layout_seed,
        };
        jit.on.then(|| Self::new(Shared::open(Image::new(cart), passes)))
    }

    fn new(shared: Arc<Shared>) -> Self {
        let (generation, code) = shared.newest();
        Self { shared, code, generation, interpreted: 0 }
    }

    /// Between frames: takes over a new generation, and asks for one when it is worth while.
    pub(super) fn begin_frame(&mut self) {
        Shared::translate_if_worth_while(&self.shared);
        self.take_over();
    }

    fn take_over(&mut self) {
        // At once, or before the next frame.
        if self.generation != self.shared.generation() {
            if let Some(newest) = self.shared.newest_if_free() {
                (self.generation, self.code) = newest;
            }
        }
    }

    /// Waits until everything that was reached up to now is translated.
    pub(super) fn settle(&mut self) {
        self.shared.settle();
        self.take_over();
    }

    pub(super) fn stats(&self) -> Translated {
        let size = self.code.size;
        Translated {
            generation: self.generation,
            instructions: size.instructions as u64,
            blocks: size.blocks as u64,
            bytes: size.bytes as u64,
            seconds: size.took.as_secs_f64(),
            interpreted: self.interpreted,
        }
    }

    /// Runs instructions until the bus's deadline, one at least: translated where they are and the deadline is far, else
    /// interpreted.
    pub(super) fn run(&mut self, cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge) {
        loop {
            if bus.cycles + u64::from(MOST_CYCLES) > bus.deadline {
                self.interpret_to_deadline(cpu, bus, cart);
                return;
            }
            match self.code.entry(cpu.pc).map(|entry| self.code.run(entry, cpu, bus)) {
                Some(Exit::Boundary) => self.note(cpu.pc, WANTED),
                Some(Exit::Interpret) | None => self.interpret(cpu, bus, cart),
            }
            if bus.cycles >= bus.deadline {
                return;
            }
        }
    }

    fn interpret_to_deadline(&mut self, cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge) {
        self.interpreted += 1;
        interp::run_until::<false>(cpu, bus, cart, |_| {
            self.interpreted += 1;
            false
        });
    }

    /// Up to the deadline or the next entry; notes the way.
    fn interpret(&mut self, cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge) {
        let mut from = cpu.pc;
        self.note(from, REACHED);
        self.interpreted += 1;
        interp::run_until::<false>(cpu, bus, cart, |pc| {
            if self.code.entry(pc).is_some() {
                return true;
            }
            self.note(pc, if self.shared.is_computed(from) { REACHED | WANTED } else { REACHED });
            self.interpreted += 1;
            from = pc;
            false
        });
    }

    /// Tells the translator what it did not know when it made this generation.
    #[inline]
    fn note(&self, pc: u16, bits: u8) {
        if pc >= 0x8000 && self.code.known(pc) & bits != bits && self.code.entry(pc).is_none() {
            self.shared.note(pc, bits);
        }
    }
}

#[cfg(test)]
mod tests;
