//! The PPU's state as plain data and back, at a frame boundary, and from one console to another.

use super::Ppu;
use crate::emulator::nes::state::PpuState;

impl Ppu {
    pub(in super::super) fn export(&self, cycle: u64) -> PpuState {
        let (line, dot) = self.position(cycle);
        PpuState {
            line,
            dot,
            odd_frame: self.odd_frame,
            ctrl: self.beam.ctrl,
            mask: self.beam.mask,
            v: self.beam.v,
            t: self.beam.t,
            fine_x: self.beam.fine_x,
            second_write: self.second_write,
            vblank: self.vblank,
            sprite_zero_hit: self.hit,
            sprite_overflow: self.overflow,
            oam_addr: self.oam_addr,
            read_buffer: self.read_buffer,
            open_bus: self.open_bus.value,
            open_bus_driven: self.open_bus.driven,
            warming_up: self.warming_up,
            oam: self.oam,
            palette: self.palette.bytes,
            vram: self.memory.vram.to_vec(),
        }
    }

    pub(in super::super) fn import(&mut self, state: &PpuState, cycle: u64) {
        self.beam.forget_line();
        self.units.clear();
        self.beam.ctrl = state.ctrl;
        self.beam.mask = state.mask;
        self.beam.v = state.v & 0x7FFF;
        self.beam.t = state.t & 0x7FFF;
        self.beam.fine_x = state.fine_x & 7;
        self.second_write = state.second_write;
        self.vblank = state.vblank;
        self.hit = state.sprite_zero_hit;
        self.overflow = state.sprite_overflow;
        self.oam_addr = state.oam_addr;
        self.read_buffer = state.read_buffer;
        self.open_bus.value = state.open_bus;
        self.open_bus.driven = state.open_bus_driven;
        self.warming_up = state.warming_up;
        self.oam = state.oam;
        self.palette.bytes = state.palette.map(|colour| colour & 0x3F);
        self.memory.vram.copy_from_slice(&state.vram);
        self.nmi_at = super::NEVER;
        self.set_position(state.line, state.dot, state.odd_frame, cycle);
    }

    /// Becomes equal to that of another console with the same cartridge. How pictures are drawn stays, and the canvas.
    pub(in super::super) fn copy_from(&mut self, other: &Self) {
        let Self {
            frame_start,
            event,
            event_at,
            odd_frame,
            nmi_at,
            vblank,
            vblank_suppressed,
            hit,
            overflow,
            hit_at,
            overflow_at,
            overflow_from,
            beam,
            done,
            line,
            line_start,
            second_write,
            warming_up,
            oam_addr,
            read_buffer,
            data_read_at,
            open_bus,
            oam,
            palette,
            memory,
            drawing,
            draws_from,
            line_log: _,
            beam_jumps: _,
            avx2: _,
            units,
            canvas: _,
        } = other;
        self.frame_start = *frame_start;
        self.event = *event;
        self.event_at = *event_at;
        self.odd_frame = *odd_frame;
        self.nmi_at = *nmi_at;
        self.vblank = *vblank;
        self.vblank_suppressed = *vblank_suppressed;
        self.hit = *hit;
        self.overflow = *overflow;
        self.hit_at = *hit_at;
        self.overflow_at = *overflow_at;
        self.overflow_from = *overflow_from;
        self.beam = *beam;
        self.done = *done;
        self.line = *line;
        self.line_start = *line_start;
        self.second_write = *second_write;
        self.warming_up = *warming_up;
        self.oam_addr = *oam_addr;
        self.read_buffer = *read_buffer;
        self.data_read_at = *data_read_at;
        self.open_bus = *open_bus;
        self.oam = *oam;
        self.palette = *palette;
        self.memory.copy_from(memory);
        self.drawing = *drawing;
        self.draws_from = *draws_from;
        self.units = *units;
    }
}
