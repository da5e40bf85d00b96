//! The console's whole state at an instruction boundary, as plain data that every engine gives and takes.
//!
//! Field names follow the nesdev wiki. What cannot be seen by software is left out: the phases of the sound
//! generators, and the picture's shift registers and sprite units, which every engine starts empty at the
//! frame boundary (line 240) where states are made.

use super::plain::{Plain, plain_data};

plain_data! {
    /// The 2A03's CPU core.
    #[derive(Default)]
    pub struct CpuState {
        pub pc: u16,
        pub a: u8,
        pub x: u8,
        pub y: u8,
        pub s: u8,
        /// N V 1 0 D I Z C: bit 5 set, bit 4 clear.
        pub p: u8,
        /// Cycles since power-on; its lowest bit tells DMA's get cycles from put cycles.
        pub cycles: u64,
        /// A JAM opcode was executed: only reset helps.
        pub jammed: bool,
        /// The last value on the data bus.
        pub data_bus: u8,
        /// An NMI edge was seen and not served yet.
        pub nmi_edge: bool,
        /// That edge was polled: the NMI comes before the next instruction.
        pub nmi_polled: bool,
        /// An IRQ was polled with I clear: it comes before the next instruction.
        pub irq_polled: bool,
        /// An OAM DMA from this page waits for the next read cycle.
        pub oam_dma: Option<u8>,
    }

    /// The 2C02.
    pub struct PpuState {
        /// 0-239 visible, 240 post-render, 241-260 vblank, 261 pre-render.
        pub line: u16,
        /// 0-340: the dot with which the CPU's next cycle starts.
        pub dot: u16,
        /// This frame is an odd one: its pre-render line is a dot shorter while rendering is on.
        pub odd_frame: bool,
        /// $2000 as written last.
        pub ctrl: u8,
        /// $2001 as written last.
        pub mask: u8,
        /// The current VRAM address: 0yyy NNYY YYYX XXXX.
        pub v: u16,
        /// The address being written, or the top left corner of the picture.
        pub t: u16,
        pub fine_x: u8,
        /// The next write to $2005/$2006 is the second of its pair.
        pub second_write: bool,
        pub vblank: bool,
        pub sprite_zero_hit: bool,
        pub sprite_overflow: bool,
        pub oam_addr: u8,
        /// What the next read of $2007 gives below the palette.
        pub read_buffer: u8,
        /// The PPU's own data bus latch, and the cycle at which bits 7-6, 5 and 4-0 were last driven.
        pub open_bus: u8,
        pub open_bus_driven: [u64; 3],
        /// Writes to $2000, $2001, $2005 and $2006 are ignored until the first pre-render line after reset.
        pub warming_up: bool,
        pub oam: [u8; 256],
        pub palette: [u8; 32],
        /// Name tables: 2,048 bytes, or 4,096 with four screens.
        pub vram: Vec<u8>,
    }

    /// An envelope generator.
    #[derive(Copy, Default)]
    pub struct EnvelopeState {
        pub start: bool,
        pub divider: u8,
        pub decay: u8,
    }

    /// A pulse channel.
    #[derive(Copy, Default)]
    pub struct PulseState {
        /// Its four registers as written last.
        pub registers: [u8; 4],
        pub length: u8,
        pub envelope: EnvelopeState,
        pub sweep_reload: bool,
        pub sweep_divider: u8,
        /// The timer's reload value, which the sweep changes.
        pub period: u16,
    }

    /// The triangle channel.
    #[derive(Copy, Default)]
    pub struct TriangleState {
        pub registers: [u8; 4],
        pub length: u8,
        pub linear: u8,
        pub linear_reload: bool,
    }

    /// The noise channel.
    #[derive(Copy, Default)]
    pub struct NoiseState {
        pub registers: [u8; 4],
        pub length: u8,
        pub envelope: EnvelopeState,
    }

    /// The delta modulation channel.
    #[derive(Copy, Default)]
    pub struct DmcState {
        pub registers: [u8; 4],
        /// The output level.
        pub level: u8,
        /// Where the next byte is read.
        pub address: u16,
        pub bytes_left: u16,
        /// The byte read ahead.
        pub buffer: Option<u8>,
        pub shift: u8,
        pub bits_left: u8,
        pub silent: bool,
        /// CPU cycles until the output unit's next clock.
        pub timer: u16,
        /// 1 while a byte is wanted from memory, one more for each CPU cycle until then; 0 for none.
        pub request_in: u8,
        pub irq: bool,
    }

    /// The 2A03's sound part, as far as software can see it.
    #[derive(Default)]
    pub struct ApuState {
        pub pulse: [PulseState; 2],
        pub triangle: TriangleState,
        pub noise: NoiseState,
        pub dmc: DmcState,
        /// Channels switched on through $4015: pulse 1, pulse 2, triangle, noise in bits 0-3.
        pub enabled: u8,
        /// $4017 as written last.
        pub frame_mode: u8,
        /// The five-step sequence runs.
        pub frame_five: bool,
        /// CPU cycles since the frame sequence began.
        pub frame_cycle: u16,
        /// 1 in the cycle in which a write to $4017 restarts the sequence, one more for each cycle before; 0 for none.
        pub frame_restart: u8,
        pub frame_irq: bool,
    }

    /// Both pads on the ports.
    #[derive(Default)]
    pub struct PadsState {
        /// Buttons held in this frame.
        pub held: [u8; 2],
        /// What is left to shift out.
        pub shift: [u8; 2],
        pub strobe: bool,
    }

    /// Everything that decides what the console does next.
    pub struct ConsoleState {
        pub frame_count: u64,
        pub cpu: CpuState,
        pub ppu: PpuState,
        pub apu: ApuState,
        pub pads: PadsState,
        pub ram: [u8; 2048],
        /// Work RAM at $6000; absent where the board has none, or while every byte is $FF.
        pub work_ram: Option<Vec<u8>>,
        /// Pattern tables where they are RAM, else empty.
        pub chr_ram: Vec<u8>,
        /// The board's registers, in the order that its file gives.
        pub board: Vec<u8>,
    }
}

impl ConsoleState {
    /// The first field in which two states differ, as `ram[$0012]: $00 != $01`; `None` when they are equal.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        self.difference(other).map(|found| found.trim_start_matches('.').to_owned())
    }
}
