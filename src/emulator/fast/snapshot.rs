//! The fast engine's state as plain data and back.

use super::bus::{Bus, Interrupt};
use super::cpu::Cpu;
use crate::emulator::engine::EngineError;
use crate::emulator::nes::state::{ConsoleState, CpuState};
use crate::emulator::nes::timing::{DOTS_PER_LINE, LINES};

pub(super) fn export(cpu: &Cpu, bus: &Bus, frame_count: u64) -> ConsoleState {
    let (polled, nmi_edge) = bus.pending(cpu.i);
    ConsoleState {
        frame_count,
        cpu: CpuState {
            pc: cpu.pc,
            a: cpu.a,
            x: cpu.x,
            y: cpu.y,
            s: cpu.s,
            p: cpu.p(),
            cycles: bus.cycles,
            jammed: cpu.jammed,
            data_bus: bus.data_bus,
            nmi_edge,
            nmi_polled: polled == Some(Interrupt::Nmi),
            irq_polled: polled == Some(Interrupt::Irq),
            oam_dma: bus.oam_dma,
        },
        ppu: bus.ppu.export(bus.cycles),
        apu: bus.apu.export(bus.cycles),
        pads: bus.pads.export(),
        ram: bus.ram,
        work_ram: bus.work_ram.export(),
        chr_ram: bus.ppu.memory.chr_ram.to_vec(),
        board: Vec::new(),
    }
}

/// Takes over all of a state but its number of frames.
pub(super) fn import(cpu: &mut Cpu, bus: &mut Bus, state: &ConsoleState) -> Result<(), EngineError> {
    check(bus, state)?;
    let cycles = state.cpu.cycles;
    *cpu = Cpu::from_state(&state.cpu);
    bus.cycles = cycles;
    bus.data_bus = state.cpu.data_bus;
    bus.oam_dma = state.cpu.oam_dma;
    bus.ram = state.ram;
    bus.work_ram.import(state.work_ram.as_deref());
    bus.ppu.import(&state.ppu, cycles);
    bus.ppu.memory.chr_ram.copy_from_slice(&state.chr_ram);
    bus.apu.import(&state.apu, cycles);
    bus.pads.import(&state.pads);
    let polled = match (state.cpu.nmi_polled, state.cpu.irq_polled) {
        (true, _) => Some(Interrupt::Nmi),
        (_, true) => Some(Interrupt::Irq),
        _ => None,
    };
    bus.set_pending(polled, state.cpu.nmi_edge);
    Ok(())
}

/// Whether a state fits this cartridge and could have come from a console.
fn check(bus: &Bus, state: &ConsoleState) -> Result<(), EngineError> {
    let bad =
        |field, found: usize, expected: String| Err(EngineError::BadState { field, found: found as u64, expected });
    let ppu = &state.ppu;
    let lengths = [
        ("the length of ppu.vram", ppu.vram.len(), bus.ppu.memory.vram.len()),
        ("the length of chr_ram", state.chr_ram.len(), bus.ppu.memory.chr_ram.len()),
        ("the length of board", state.board.len(), 0),
    ];
    for (field, found, expected) in lengths {
        if found != expected {
            return bad(field, found, expected.to_string());
        }
    }
    if let Some(work_ram) = &state.work_ram {
        let expected = bus.work_ram.bytes().map_or(0, <[u8]>::len);
        if work_ram.len() != expected {
            return bad("the length of work_ram", work_ram.len(), expected.to_string());
        }
    }
    if u32::from(ppu.line) >= LINES {
        return bad("ppu.line", ppu.line.into(), format!("at most {}", LINES - 1));
    }
    if u32::from(ppu.dot) >= DOTS_PER_LINE {
        return bad("ppu.dot", ppu.dot.into(), format!("at most {}", DOTS_PER_LINE - 1));
    }
    // Far from the end of time, so that sums of cycles and dots cannot overflow.
    let most = u64::MAX >> 8;
    if state.cpu.cycles > most {
        return bad("cpu.cycles", state.cpu.cycles as usize, format!("at most {most}"));
    }
    Ok(())
}
