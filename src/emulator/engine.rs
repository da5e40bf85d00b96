//! The contract that every engine meets.
//!
//! An engine is one console with one cartridge in it. Engines of the same cartridge, options, state and buttons
//! are equal in every exported field and drawn frame.

use std::sync::Arc;

use thiserror::Error;

use super::cart::Cartridge;
use super::nes::{Buttons, ConsoleState};

pub const FRAME_WIDTH: usize = 256;
pub const FRAME_HEIGHT: usize = 240;

/// What can be chosen when an engine is made. Switches never change what the console does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// What RAM and work RAM are filled with at power-on.
    pub ram_fill: u8,
    /// Pass over whole turns of a loop that only waits for an event.
    pub idle_skip: bool,
    /// The same for loops that poll $2002, as long as it reads the same.
    pub poll_skip: bool,
    /// Stop the CPU only where an access has moved the time of an interrupt or a DMA, and not where the frame's length is settled.
    pub kept_deadlines: bool,
    /// Write down what whole lines of a picture are made of, and draw them together when somebody looks.
    pub line_log: bool,
    /// Pass lines in which a register changes by tiles, not by dots, and many lines together.
    pub beam_jumps: bool,
    /// Sum observations up from lines as they are drawn, where their kind allows it.
    pub direct_bins: bool,
    /// Sum up lines that are only written down by tiles, without drawing them.
    pub tile_sums: bool,
    /// Sum them up by an observation's outputs at once, not by columns, where its width allows it.
    pub joined_sums: bool,
    /// Use wide instructions where the processor has them.
    pub simd: bool,
    /// Save and load states within the process as copies of the console's own structures, not as plain data.
    pub state_copies: bool,
    pub jit: JitOptions,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            ram_fill: 0xFF,
            idle_skip: true,
            poll_skip: true,
            kept_deadlines: true,
            line_log: true,
            beam_jumps: true,
            direct_bins: true,
            tile_sums: true,
            joined_sums: true,
            simd: true,
            state_copies: true,
            jit: JitOptions::default(),
        }
    }
}

/// A switch: its name in `engine_options`, and where it is.
pub type Switch = (&'static str, fn(&mut EngineOptions) -> &mut bool);

/// Every switch.
pub const SWITCHES: [Switch; 16] = [
    ("idle_skip", |options| &mut options.idle_skip),
    ("poll_skip", |options| &mut options.poll_skip),
    ("kept_deadlines", |options| &mut options.kept_deadlines),
    ("line_log", |options| &mut options.line_log),
    ("beam_jumps", |options| &mut options.beam_jumps),
    ("direct_bins", |options| &mut options.direct_bins),
    ("tile_sums", |options| &mut options.tile_sums),
    ("joined_sums", |options| &mut options.joined_sums),
    ("simd", |options| &mut options.simd),
    ("state_copies", |options| &mut options.state_copies),
    ("jit", |options| &mut options.jit.on),
    ("jit_links", |options| &mut options.jit.links),
    ("jit_dead_flags", |options| &mut options.jit.dead_flags),
    ("jit_polls", |options| &mut options.jit.polls),
    ("jit_registers", |options| &mut options.jit.registers),
    ("jit_returns", |options| &mut options.jit.returns),
];

/// The environment variable that names switches to be off where nothing else is asked for.
pub const SWITCHED_OFF: &str = "ROLLCART_SWITCHED_OFF";

impl EngineOptions {
    /// The defaults, with the switches off that `ROLLCART_SWITCHED_OFF` names.
    ///
    /// # Errors
    /// When it names something that is no switch.
    pub fn from_environment() -> Result<Self, EngineError> {
        Self::default().without(&std::env::var(SWITCHED_OFF).unwrap_or_default())
    }

    /// Switches off what `names` lists, with commas between.
    fn without(mut self, names: &str) -> Result<Self, EngineError> {
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let switch = SWITCHES.iter().find(|(known, _)| *known == name);
            let (_, at) = switch.ok_or_else(|| EngineError::NoSwitch { name: name.to_owned() })?;
            *at(&mut self) = false;
        }
        Ok(self)
    }
}

/// How 6502 code is translated to native code, by engines that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitOptions {
    /// Translate at all.
    pub on: bool,
    /// Translated blocks jump to each other; without, each goes back to the dispatcher.
    pub links: bool,
    /// Flags that nothing can see are not computed; without, every block's end looks at the deadline, and so at all
    /// of them.
    pub dead_flags: bool,
    /// Loops that poll $2002 are passed over without a way back to the interpreter.
    pub polls: bool,
    /// An access to a register calls what that register does, and a sprite DMA runs without a way back to the interpreter.
    pub registers: bool,
    /// A return looks first at where the subroutine's calls come from, and RTI and jumps to themselves are translated.
    pub returns: bool,
    /// Varies where code lies in memory: the order of functions and the space between them.
    pub layout_seed: u64,
}

impl Default for JitOptions {
    fn default() -> Self {
        Self { on: true, links: true, dead_flags: true, polls: true, registers: true, returns: true, layout_seed: 0 }
    }
}

/// Which button on the console is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetKind {
    /// Power off and on: everything is as after `new`.
    Hard,
    /// The reset button: memories and most registers stay.
    Soft,
}

/// Whether a frame's picture is wanted. The console does the same either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    Skip,
    Picture,
}

/// A picture: 240 rows of 256 palette indices (0-63), and the emphasis bits of each line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Row by row; grey scale is already applied to the indices.
    pub pixels: Box<[u8; FRAME_WIDTH * FRAME_HEIGHT]>,
    /// Bits 7-5 of $2001 at the end of each line, shifted down to 0-7: red 1, green 2, blue 4.
    pub emphasis: [u8; FRAME_HEIGHT],
}

impl Frame {
    /// The frame before the first one: zeros.
    ///
    /// # Panics
    /// Never: the slice has the array's length.
    #[must_use]
    pub fn blank() -> Self {
        let pixels = vec![0; FRAME_WIDTH * FRAME_HEIGHT].into_boxed_slice();
        Self { pixels: pixels.try_into().expect("the length is the array's"), emphasis: [0; FRAME_HEIGHT] }
    }

    /// The 256 palette indices of a line.
    #[must_use]
    pub fn row(&self, line: usize) -> &[u8] {
        &self.pixels[line * FRAME_WIDTH..(line + 1) * FRAME_WIDTH]
    }
}

/// The CPU's registers, for showing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRegisters {
    pub pc: u16,
    pub a: u8,
    pub x: u8,
    pub y: u8,
    pub s: u8,
    /// Bit 5 set, bit 4 clear.
    pub p: u8,
    /// CPU cycles since power-on.
    pub cycles: u64,
}

/// Why an engine could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    #[error("${addr:04X} cannot be written from outside, expected $0000-$07FF or the board's RAM in $6000-$7FFF")]
    NotWritable { addr: u16 },
    #[error("{field} of the state is {found}, expected {expected}; load a state that was saved with this ROM")]
    BadState { field: &'static str, found: u64, expected: String },
    #[error("{SWITCHED_OFF}: there is no switch {name:?}, expected some of {known}", known = switch_names())]
    NoSwitch { name: String },
}

fn switch_names() -> String {
    SWITCHES.map(|(name, _)| name).join(", ")
}

/// One console.
pub trait Engine: Sized + Send {
    /// A console that was just switched on; no frame has run.
    ///
    /// # Errors
    /// When this engine cannot run the cartridge.
    fn new(cart: Arc<Cartridge>, options: &EngineOptions) -> Result<Self, EngineError>;

    /// Presses reset, or power-cycles. Runs no frame; a hard reset also clears the frame and its count.
    fn reset(&mut self, kind: ResetKind);

    /// Runs from this instruction boundary to the first one at or after the next start of line 240, with these
    /// buttons held on the two pads.
    fn run_frame(&mut self, pads: [Buttons; 2], draw: Draw);

    /// The picture of the last frame that was drawn.
    fn frame(&self) -> &Frame;

    /// Frames run since power-on, or as loaded.
    fn frame_count(&self) -> u64;

    fn cpu(&self) -> CpuRegisters;

    fn ram(&self) -> &[u8; 2048];

    /// The 8 KiB at $6000, if the board has them. Borrowed: an engine may keep untouched work RAM in common.
    fn work_ram(&self) -> Option<&[u8]>;

    /// Name tables: 2,048 bytes, or 4,096 with four screens.
    fn vram(&self) -> &[u8];

    fn oam(&self) -> &[u8; 256];

    fn palette_ram(&self) -> &[u8; 32];

    /// Memory as the CPU would read it, without side effects: $2000-$401F give the open bus.
    fn peek(&self, addr: u16) -> u8;

    /// Changes RAM ($0000-$07FF) or work RAM ($6000-$7FFF).
    ///
    /// # Errors
    /// `NotWritable` elsewhere.
    fn poke(&mut self, addr: u16, value: u8) -> Result<(), EngineError>;

    fn export(&self) -> ConsoleState;

    /// Takes over a state; the frame stays as it is until the next one is drawn.
    ///
    /// # Errors
    /// `BadState` when the state does not fit this cartridge; nothing has changed then.
    fn import(&mut self, state: &ConsoleState) -> Result<(), EngineError>;
}

#[cfg(test)]
mod tests {
    use super::{EngineOptions, SWITCHES};

    #[test]
    fn every_switch_is_on_until_its_name_is_listed() {
        assert_eq!(EngineOptions::default().without(" ,"), Ok(EngineOptions::default()));
        for (name, at) in SWITCHES {
            let mut expected = EngineOptions::default();
            assert!(*at(&mut expected));
            *at(&mut expected) = false;
            assert_eq!(EngineOptions::default().without(name), Ok(expected), "{name}");
        }
        let error = EngineOptions::default().without("idle_skip,turbo").unwrap_err().to_string();
        assert!(error.contains("\"turbo\"") && error.contains("line_log"), "{error}");
    }
}
