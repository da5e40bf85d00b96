//! The event loop of a frame: let the CPU run to the next deadline, look at interrupts, again.

use super::bus::{Bus, Interrupt};
use super::cpu::Cpu;
use super::interp;
use super::jit::Jit;
use super::ppu::Stop;
use crate::emulator::cart::Cartridge;

/// Runs from this boundary to the first one at or after the next start of line 240.
pub(super) fn run_frame(cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge, mut jit: Option<&mut Jit>) {
    frame_of_stops(bus, |bus, stop| run_until(cpu, bus, cart, stop, jit.as_deref_mut()));
}

/// Runs to the stops of a frame one after the other.
fn frame_of_stops(bus: &mut Bus, mut run_to: impl FnMut(&mut Bus, u64)) {
    loop {
        match bus.ppu.next_stop(bus.cycles, bus.kept_deadlines) {
            Stop::End(cycle) => return run_to(bus, cycle),
            Stop::Unsettled(cycle) => run_to(bus, cycle),
            Stop::EndAtLeast(cycle) => {
                run_to(bus, cycle);
                let end = bus.ppu.post_render_cycle(bus.cycles);
                return run_to(bus, end);
            }
        }
    }
}

/// The same by single instructions, without translated code. `see` gets the console before each one, and the interrupt
/// that is taken in its place.
pub(super) fn trace_frame(
    cpu: &mut Cpu,
    bus: &mut Bus,
    cart: &Cartridge,
    see: &mut dyn FnMut(&Cpu, &Bus, Option<Interrupt>),
) {
    frame_of_stops(bus, |bus, stop| {
        while bus.cycles < stop {
            if cpu.jammed {
                hang(bus, stop);
            } else {
                see(cpu, bus, bus.poll(cpu.i));
                run_until(cpu, bus, cart, bus.cycles + 1, None);
            }
        }
    });
}

/// Runs whole instructions until `stop` is reached.
fn run_until(cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge, stop: u64, mut jit: Option<&mut Jit>) {
    while bus.cycles < stop {
        if cpu.jammed {
            hang(bus, stop);
        } else if bus.dma_is_near() {
            turn::<true>(cpu, bus, cart, stop, None);
        } else {
            turn::<false>(cpu, bus, cart, stop, jit.as_deref_mut());
        }
    }
}

/// Takes the interrupt that was polled, or runs instructions up to the deadline; next to a DMA one at a time.
fn turn<const EXACT: bool>(cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge, stop: u64, jit: Option<&mut Jit>) {
    let interrupt = bus.poll(cpu.i);
    bus.deadline = if EXACT { 0 } else { bus.next_deadline(cpu.i, stop) };
    match (interrupt, jit) {
        (Some(kind), _) => interp::interrupt::<EXACT>(cpu, bus, cart, kind),
        (None, Some(jit)) => jit.run(cpu, bus, cart),
        (None, None) => interp::run::<EXACT>(cpu, bus, cart),
    }
}

/// A jammed CPU reads on and on; DMA still gets the bus.
fn hang(bus: &mut Bus, stop: u64) {
    const STUCK_AT: u16 = 0xFFFF;
    while bus.cycles < stop {
        bus.cycles = bus.cycles.max(bus.apu.dma_at().min(stop - 1));
        bus.read_with_dma(STUCK_AT);
    }
}

/// Runs one instruction or interrupt sequence.
pub(super) fn step(cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge) {
    bus.ppu.begin_frame(bus.cycles, false);
    run_until(cpu, bus, cart, bus.cycles + 1, None);
}
