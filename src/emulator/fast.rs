//! The engine that lanes run: an event-scheduled console.

use std::sync::Arc;

use super::cart::Cartridge;
use super::engine::{CpuRegisters, Draw, Engine, EngineError, EngineOptions, Frame, ResetKind};
use super::nes::state::{ApuState, ConsoleState, CpuState, PadsState, PpuState};
use super::nes::{Buttons, timing};

/// A console with its cartridge.
pub struct Fast {
    cart: Arc<Cartridge>,
    options: EngineOptions,
    state: ConsoleState,
    frame: Frame,
}

fn power_on(cart: &Cartridge, options: EngineOptions) -> ConsoleState {
    ConsoleState {
        frame_count: 0,
        cpu: CpuState { s: 0xFD, p: 0x24, cycles: timing::RESET_CYCLES, ..CpuState::default() },
        ppu: PpuState {
            line: 0,
            dot: 21,
            odd_frame: false,
            ctrl: 0,
            mask: 0,
            v: 0,
            t: 0,
            fine_x: 0,
            second_write: false,
            vblank: false,
            sprite_zero_hit: false,
            sprite_overflow: false,
            oam_addr: 0,
            read_buffer: 0,
            open_bus: 0,
            open_bus_driven: [0; 3],
            warming_up: true,
            oam: [0xFF; 256],
            palette: [0; 32],
            vram: vec![0; cart.vram_bytes()],
        },
        apu: ApuState::default(),
        pads: PadsState::default(),
        ram: [options.ram_fill; 2048],
        work_ram: cart.has_work_ram().then(|| vec![options.ram_fill; 0x2000]),
        chr_ram: vec![0; cart.chr_ram_bytes()],
        board: Vec::new(),
    }
}

impl Engine for Fast {
    fn new(cart: Arc<Cartridge>, options: &EngineOptions) -> Result<Self, EngineError> {
        let state = power_on(&cart, *options);
        Ok(Self { cart, options: *options, state, frame: Frame::blank() })
    }

    fn reset(&mut self, kind: ResetKind) {
        if kind == ResetKind::Hard {
            self.state = power_on(&self.cart, self.options);
            self.frame = Frame::blank();
        }
    }

    fn run_frame(&mut self, pads: [Buttons; 2], _draw: Draw) {
        self.state.pads.held = pads.map(|pad| pad.0);
        self.state.cpu.cycles += timing::CYCLES_PER_FRAME;
        self.state.frame_count += 1;
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn frame_count(&self) -> u64 {
        self.state.frame_count
    }

    fn cpu(&self) -> CpuRegisters {
        let cpu = &self.state.cpu;
        CpuRegisters { pc: cpu.pc, a: cpu.a, x: cpu.x, y: cpu.y, s: cpu.s, p: cpu.p, cycles: cpu.cycles }
    }

    fn ram(&self) -> &[u8; 2048] {
        &self.state.ram
    }

    fn work_ram(&self) -> Option<&[u8]> {
        self.state.work_ram.as_deref()
    }

    fn vram(&self) -> &[u8] {
        &self.state.ppu.vram
    }

    fn oam(&self) -> &[u8; 256] {
        &self.state.ppu.oam
    }

    fn palette_ram(&self) -> &[u8; 32] {
        &self.state.ppu.palette
    }

    fn peek(&self, addr: u16) -> u8 {
        match addr {
            0x0000..0x2000 => self.state.ram[usize::from(addr & 0x7FF)],
            0x6000..0x8000 => {
                (self.state.work_ram.as_ref()).map_or(self.state.cpu.data_bus, |ram| ram[usize::from(addr & 0x1FFF)])
            }
            0x8000.. => self.cart.prg()[usize::from(addr) % self.cart.prg().len()],
            _ => self.state.cpu.data_bus,
        }
    }

    fn poke(&mut self, addr: u16, value: u8) -> Result<(), EngineError> {
        match (addr, &mut self.state.work_ram) {
            (0x0000..0x0800, _) => self.state.ram[usize::from(addr)] = value,
            (0x6000..0x8000, Some(ram)) => ram[usize::from(addr & 0x1FFF)] = value,
            _ => return Err(EngineError::NotWritable { addr }),
        }
        Ok(())
    }

    fn export(&self) -> ConsoleState {
        self.state.clone()
    }

    fn import(&mut self, state: &ConsoleState) -> Result<(), EngineError> {
        self.state = state.clone();
        Ok(())
    }
}
