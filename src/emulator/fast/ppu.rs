//! The PPU without a loop over dots (nesdev wiki, "PPU rendering", "PPU frame timing").
//!
//! Three things happen at their own pace:
//! - `timeline`: the few events of a frame (vblank, flags cleared, the odd frame's missing dot), when time passes
//!   them;
//! - the beam: scrolling and fetches, brought up to date (`catch_up`) before anything changes what they depend on:
//!   a whole line at a time, and by dots only in a line in which the program touched a register;
//! - sprite 0 hit and overflow: foretold from the state at hand, when somebody reads the flags.
//!
//! Drawing hangs on the beam: `catch_up` tells what was on the screen with which registers (`draw`), and the picture
//! is made of that afterwards (`render`). Leaves to the reference engine: OAM reads and writes while rendering, beyond their effect on OAMADDR.

mod beam;
mod draw;
mod memory;
mod palette;
mod registers;
mod snapshot;
mod sprites;
mod timeline;

use super::bus::NEVER;
use super::render::{Avx2, Canvas};
use crate::emulator::cart::Cartridge;
use beam::Beam;
use draw::Units;
pub(super) use draw::{BEHIND, SPREAD};
pub(super) use memory::VideoMemory;
pub(super) use palette::PaletteRam;
use registers::OpenBus;
pub(super) use sprites::{FLIP_X, FLIP_Y, SPRITES_PER_LINE, sprite_height, sprite_row};
pub(super) use timeline::Stop;
use timeline::{Event, FIRST_DOT};

/// The beam is not foretold yet.
const UNKNOWN: u64 = u64::MAX - 1;

/// Drawing begins at no line.
const NOBODYS: u32 = u32::MAX;

/// $2000.
pub(super) mod ctrl {
    pub(in super::super) const DOWN: u8 = 0x04;
    pub(in super::super) const SPRITE_TABLE: u8 = 0x08;
    pub(in super::super) const BACKGROUND_TABLE: u8 = 0x10;
    pub(in super::super) const TALL_SPRITES: u8 = 0x20;
    pub(in super::super) const NMI: u8 = 0x80;
}

/// $2001.
pub(super) mod mask {
    pub(in super::super) const GREY: u8 = 0x01;
    pub(in super::super) const BACKGROUND_LEFT: u8 = 0x02;
    pub(in super::super) const SPRITES_LEFT: u8 = 0x04;
    pub(in super::super) const BACKGROUND: u8 = 0x08;
    pub(in super::super) const SPRITES: u8 = 0x10;
    pub(in super::super) const RENDERING: u8 = BACKGROUND | SPRITES;
}

pub(super) struct Ppu {
    /// Where in time the frame is, and what comes next.
    frame_start: u64,
    event: Event,
    event_at: u64,
    odd_frame: bool,
    /// The cycle in which the CPU sees the NMI edge that comes next or waits.
    pub nmi_at: u64,
    vblank: bool,
    vblank_suppressed: bool,
    hit: bool,
    overflow: bool,
    /// The dots at which the two flags will be set if no register changes: `UNKNOWN` or `NEVER` or a time.
    hit_at: u64,
    overflow_at: u64,
    /// From which dot on `overflow_at` counts: before, other sprites or sizes held.
    overflow_from: u64,

    beam: Beam,
    /// Dots before this one have passed the beam.
    done: u64,
    /// The line of `done`, and its first dot.
    line: u32,
    line_start: u64,

    second_write: bool,
    warming_up: bool,
    oam_addr: u8,
    read_buffer: u8,
    /// The cycle of the last read of $2007.
    data_read_at: u64,
    open_bus: OpenBus,
    pub oam: [u8; 256],
    pub palette: PaletteRam,
    pub memory: VideoMemory,

    /// A picture is wanted of what passes the beam; then there is a canvas.
    drawing: bool,
    /// The line that begins this, and from which on the picture is somebody's; beyond all lines where it is nobody's.
    draws_from: u32,
    /// Whole lines are written down and drawn later.
    pub line_log: bool,
    /// In frames that nobody sees, lines that a write split are passed over by tiles.
    pub beam_jumps: bool,
    /// Wide instructions to draw with.
    pub avx2: Option<Avx2>,
    units: Units,
    pub canvas: Option<Box<Canvas>>,
}

impl Ppu {
    pub(super) fn new(cart: &std::sync::Arc<Cartridge>) -> Self {
        let mut ppu = Self {
            frame_start: FIRST_DOT,
            event: Event::Vblank,
            event_at: 0,
            odd_frame: false,
            nmi_at: NEVER,
            vblank: false,
            vblank_suppressed: false,
            hit: false,
            overflow: false,
            hit_at: UNKNOWN,
            overflow_at: UNKNOWN,
            overflow_from: FIRST_DOT,
            beam: Beam::default(),
            done: FIRST_DOT,
            line: 0,
            line_start: FIRST_DOT,
            second_write: false,
            warming_up: true,
            oam_addr: 0,
            read_buffer: 0,
            data_read_at: 0,
            open_bus: OpenBus::default(),
            oam: [0; 256],
            palette: PaletteRam::default(),
            memory: VideoMemory::new(cart),
            drawing: false,
            draws_from: NOBODYS,
            line_log: true,
            beam_jumps: true,
            avx2: None,
            units: Units::default(),
            canvas: None,
        };
        ppu.event_at = ppu.time_of(Event::Vblank);
        ppu
    }

    /// The reset button: registers are cleared and deaf until the next pre-render line; memories stay.
    pub(super) fn soft_reset(&mut self, cycle: u64) {
        self.sync(cycle);
        self.beam.reset();
        self.second_write = false;
        self.read_buffer = 0;
        self.warming_up = true;
        self.nmi_at = NEVER;
    }

    fn rendering(&self) -> bool {
        self.beam.mask & mask::RENDERING != 0
    }
}
