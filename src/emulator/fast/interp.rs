//! The interpreter: one instruction, access by access, cycle by cycle.
//!
//! Every access is one CPU cycle and happens at its own time, so a register sees the exact cycle of each read and
//! write, dummy ones too. Dummy accesses to RAM and ROM have no effect and only take their cycle. What the
//! opcodes mean is the MOS data sheet's and, for the unofficial ones, the nesdev wiki's ("CPU unofficial opcodes").
//!
//! `EXACT` is for the few instructions near a DMA: then every read, dummies too, goes to the bus, which may halt
//! the CPU there. Otherwise no halt can be due, and reads need no test for it.
//!
//! Leaves to `run`: when interrupts are polled. This file notes what shifts a poll (`Bus::late_poll`, I's delay).

mod alu;
pub(super) mod idle;
mod operands;
mod sequence;

use super::bus::{Bus, Interrupt};
use super::cpu::{BREAK, Cpu};
use crate::emulator::cart::Cartridge;

/// An 8 KiB window of PRG-ROM.
pub(super) type Window = [u8; 0x2000];

/// The CPU at its bus. Registers, time and the data bus are kept here while instructions run, so that they can
/// live in the host's registers: nothing may take a `Core` by reference that is not inlined (see `apart`).
pub(super) struct Core<'a, const EXACT: bool> {
    cpu: Cpu,
    cycles: u64,
    data_bus: u8,
    /// What is at $8000, $A000, $C000 and $E000.
    windows: [&'a Window; 4],
    bus: &'a mut Bus,
    /// Where a turn of a loop may have begun last, and when: at the first instruction, then behind every branch back to what
    /// may be a waiting loop.
    turn_began: (u16, u64),
}

/// An operation on an operand that was read: `load!(self, zp, lda)`.
macro_rules! load {
    ($core:ident, $mode:ident, $op:ident) => {{
        let address = $core.$mode();
        let value = $core.read(address);
        $core.$op(value);
    }};
}

/// A store of a value: `store!(self, zp, a)`.
macro_rules! store {
    ($core:ident, $mode:ident, $value:expr) => {{
        let address = $core.$mode();
        $core.write(address, $value);
    }};
}

/// Read, write back, write the result.
macro_rules! modify {
    ($core:ident, $mode:ident, $op:ident) => {{
        let address = $core.$mode();
        let value = $core.read(address);
        $core.write_back(address, value);
        let result = $core.$op(value);
        $core.write(address, result);
    }};
}

/// An operation on the accumulator or flags, with the dummy read of the next opcode.
macro_rules! implied {
    ($core:ident, $effect:expr) => {{
        $core.dummy_fetch();
        $effect;
    }};
}

/// Runs instructions until the bus's deadline, one at least.
pub(super) fn run<const EXACT: bool>(cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge) {
    run_until::<EXACT>(cpu, bus, cart, |_| false);
}

/// The same, but also ends before an instruction at whose address `stop` says so.
#[inline(never)]
pub(super) fn run_until<const EXACT: bool>(
    cpu: &mut Cpu,
    bus: &mut Bus,
    cart: &Cartridge,
    mut stop: impl FnMut(u16) -> bool,
) {
    let mut core = Core::<EXACT>::new(*cpu, bus, cart);
    loop {
        core.step();
        if core.cycles >= core.bus.deadline || stop(core.cpu.pc) {
            break;
        }
    }
    *cpu = core.leave();
}

/// Takes an interrupt.
pub(super) fn interrupt<const EXACT: bool>(cpu: &mut Cpu, bus: &mut Bus, cart: &Cartridge, kind: Interrupt) {
    let mut core = Core::<EXACT>::new(*cpu, bus, cart);
    core.interrupt(kind);
    *cpu = core.leave();
}

impl<'a, const EXACT: bool> Core<'a, EXACT> {
    #[inline(always)]
    fn new(cpu: Cpu, bus: &'a mut Bus, cart: &'a Cartridge) -> Self {
        let windows = bus.prg_windows(cart);
        Self { cpu, cycles: bus.cycles, data_bus: bus.data_bus, windows, turn_began: (cpu.pc, bus.cycles), bus }
    }

    /// Brings the bus up to date.
    #[inline(always)]
    fn hand_over(&mut self) {
        self.bus.cycles = self.cycles;
        self.bus.data_bus = self.data_bus;
    }

    /// After something went on at the bus.
    #[inline(always)]
    fn take_back(&mut self) {
        self.cycles = self.bus.cycles;
        self.data_bus = self.bus.data_bus;
    }

    #[inline(always)]
    fn leave(mut self) -> Cpu {
        self.hand_over();
        self.cpu
    }

    /// Runs a rare operation out of line, on a copy of this core.
    #[inline(always)]
    fn apart(&mut self, operation: fn(&mut Core<EXACT>)) {
        self.hand_over();
        self.cpu = run_apart(self.cpu, self.windows, self.bus, operation);
        self.take_back();
    }

    /// Runs one instruction.
    #[rustfmt::skip]
    #[allow(clippy::redundant_closure_for_method_calls)] // a method's path has one lifetime too few here
    #[inline(always)]
    fn step(&mut self) {
        match self.fetch() {
            // Loads.
            0xA9 => load!(self, imm, lda), 0xA5 => load!(self, zp, lda), 0xB5 => load!(self, zpx, lda),
            0xAD => load!(self, abs, lda), 0xBD => load!(self, abx, lda), 0xB9 => load!(self, aby, lda),
            0xA1 => load!(self, izx, lda), 0xB1 => load!(self, izy, lda),
            0xA2 => load!(self, imm, ldx), 0xA6 => load!(self, zp, ldx), 0xB6 => load!(self, zpy, ldx),
            0xAE => load!(self, abs, ldx), 0xBE => load!(self, aby, ldx),
            0xA0 => load!(self, imm, ldy), 0xA4 => load!(self, zp, ldy), 0xB4 => load!(self, zpx, ldy),
            0xAC => load!(self, abs, ldy), 0xBC => load!(self, abx, ldy),
            0xA7 => load!(self, zp, lax), 0xB7 => load!(self, zpy, lax), 0xAF => load!(self, abs, lax),
            0xBF => load!(self, aby, lax), 0xA3 => load!(self, izx, lax), 0xB3 => load!(self, izy, lax),
            0xBB => load!(self, aby, las), 0xAB => load!(self, imm, lxa),

            // Stores.
            0x85 => store!(self, zp, self.cpu.a), 0x95 => store!(self, zpx, self.cpu.a),
            0x8D => store!(self, abs, self.cpu.a), 0x9D => store!(self, abx_write, self.cpu.a),
            0x99 => store!(self, aby_write, self.cpu.a), 0x81 => store!(self, izx, self.cpu.a),
            0x91 => store!(self, izy_write, self.cpu.a),
            0x86 => store!(self, zp, self.cpu.x), 0x96 => store!(self, zpy, self.cpu.x),
            0x8E => store!(self, abs, self.cpu.x),
            0x84 => store!(self, zp, self.cpu.y), 0x94 => store!(self, zpx, self.cpu.y),
            0x8C => store!(self, abs, self.cpu.y),
            0x87 => store!(self, zp, self.cpu.a & self.cpu.x), 0x97 => store!(self, zpy, self.cpu.a & self.cpu.x),
            0x8F => store!(self, abs, self.cpu.a & self.cpu.x), 0x83 => store!(self, izx, self.cpu.a & self.cpu.x),
            0x9B => self.apart(|core| core.tas()), 0x9C => self.apart(|core| core.shy()), 0x9E => self.apart(|core| core.shx()),
            0x9F => self.apart(|core| core.sha_aby()), 0x93 => self.apart(|core| core.sha_izy()),

            // Arithmetic and logic.
            0x09 => load!(self, imm, ora), 0x05 => load!(self, zp, ora), 0x15 => load!(self, zpx, ora),
            0x0D => load!(self, abs, ora), 0x1D => load!(self, abx, ora), 0x19 => load!(self, aby, ora),
            0x01 => load!(self, izx, ora), 0x11 => load!(self, izy, ora),
            0x29 => load!(self, imm, and), 0x25 => load!(self, zp, and), 0x35 => load!(self, zpx, and),
            0x2D => load!(self, abs, and), 0x3D => load!(self, abx, and), 0x39 => load!(self, aby, and),
            0x21 => load!(self, izx, and), 0x31 => load!(self, izy, and),
            0x49 => load!(self, imm, eor), 0x45 => load!(self, zp, eor), 0x55 => load!(self, zpx, eor),
            0x4D => load!(self, abs, eor), 0x5D => load!(self, abx, eor), 0x59 => load!(self, aby, eor),
            0x41 => load!(self, izx, eor), 0x51 => load!(self, izy, eor),
            0x69 => load!(self, imm, adc), 0x65 => load!(self, zp, adc), 0x75 => load!(self, zpx, adc),
            0x6D => load!(self, abs, adc), 0x7D => load!(self, abx, adc), 0x79 => load!(self, aby, adc),
            0x61 => load!(self, izx, adc), 0x71 => load!(self, izy, adc),
            0xE9 | 0xEB => load!(self, imm, sbc), 0xE5 => load!(self, zp, sbc), 0xF5 => load!(self, zpx, sbc),
            0xED => load!(self, abs, sbc), 0xFD => load!(self, abx, sbc), 0xF9 => load!(self, aby, sbc),
            0xE1 => load!(self, izx, sbc), 0xF1 => load!(self, izy, sbc),
            0xC9 => load!(self, imm, cmp), 0xC5 => load!(self, zp, cmp), 0xD5 => load!(self, zpx, cmp),
            0xCD => load!(self, abs, cmp), 0xDD => load!(self, abx, cmp), 0xD9 => load!(self, aby, cmp),
            0xC1 => load!(self, izx, cmp), 0xD1 => load!(self, izy, cmp),
            0xE0 => load!(self, imm, cpx), 0xE4 => load!(self, zp, cpx), 0xEC => load!(self, abs, cpx),
            0xC0 => load!(self, imm, cpy), 0xC4 => load!(self, zp, cpy), 0xCC => load!(self, abs, cpy),
            0x24 => load!(self, zp, bit), 0x2C => load!(self, abs, bit),
            0x0B | 0x2B => load!(self, imm, anc), 0x4B => load!(self, imm, alr), 0x6B => load!(self, imm, arr),
            0x8B => load!(self, imm, ane), 0xCB => load!(self, imm, sbx),

            // Read, modify, write.
            0x06 => modify!(self, zp, asl), 0x16 => modify!(self, zpx, asl),
            0x0E => modify!(self, abs, asl), 0x1E => modify!(self, abx_write, asl),
            0x26 => modify!(self, zp, rol), 0x36 => modify!(self, zpx, rol),
            0x2E => modify!(self, abs, rol), 0x3E => modify!(self, abx_write, rol),
            0x46 => modify!(self, zp, lsr), 0x56 => modify!(self, zpx, lsr),
            0x4E => modify!(self, abs, lsr), 0x5E => modify!(self, abx_write, lsr),
            0x66 => modify!(self, zp, ror), 0x76 => modify!(self, zpx, ror),
            0x6E => modify!(self, abs, ror), 0x7E => modify!(self, abx_write, ror),
            0xC6 => modify!(self, zp, dec), 0xD6 => modify!(self, zpx, dec),
            0xCE => modify!(self, abs, dec), 0xDE => modify!(self, abx_write, dec),
            0xE6 => modify!(self, zp, inc), 0xF6 => modify!(self, zpx, inc),
            0xEE => modify!(self, abs, inc), 0xFE => modify!(self, abx_write, inc),
            0x07 => modify!(self, zp, slo), 0x17 => modify!(self, zpx, slo), 0x0F => modify!(self, abs, slo),
            0x1F => modify!(self, abx_write, slo), 0x1B => modify!(self, aby_write, slo),
            0x03 => modify!(self, izx, slo), 0x13 => modify!(self, izy_write, slo),
            0x27 => modify!(self, zp, rla), 0x37 => modify!(self, zpx, rla), 0x2F => modify!(self, abs, rla),
            0x3F => modify!(self, abx_write, rla), 0x3B => modify!(self, aby_write, rla),
            0x23 => modify!(self, izx, rla), 0x33 => modify!(self, izy_write, rla),
            0x47 => modify!(self, zp, sre), 0x57 => modify!(self, zpx, sre), 0x4F => modify!(self, abs, sre),
            0x5F => modify!(self, abx_write, sre), 0x5B => modify!(self, aby_write, sre),
            0x43 => modify!(self, izx, sre), 0x53 => modify!(self, izy_write, sre),
            0x67 => modify!(self, zp, rra), 0x77 => modify!(self, zpx, rra), 0x6F => modify!(self, abs, rra),
            0x7F => modify!(self, abx_write, rra), 0x7B => modify!(self, aby_write, rra),
            0x63 => modify!(self, izx, rra), 0x73 => modify!(self, izy_write, rra),
            0xC7 => modify!(self, zp, dcp), 0xD7 => modify!(self, zpx, dcp), 0xCF => modify!(self, abs, dcp),
            0xDF => modify!(self, abx_write, dcp), 0xDB => modify!(self, aby_write, dcp),
            0xC3 => modify!(self, izx, dcp), 0xD3 => modify!(self, izy_write, dcp),
            0xE7 => modify!(self, zp, isc), 0xF7 => modify!(self, zpx, isc), 0xEF => modify!(self, abs, isc),
            0xFF => modify!(self, abx_write, isc), 0xFB => modify!(self, aby_write, isc),
            0xE3 => modify!(self, izx, isc), 0xF3 => modify!(self, izy_write, isc),
            0x0A => implied!(self, self.cpu.a = self.asl(self.cpu.a)),
            0x2A => implied!(self, self.cpu.a = self.rol(self.cpu.a)),
            0x4A => implied!(self, self.cpu.a = self.lsr(self.cpu.a)),
            0x6A => implied!(self, self.cpu.a = self.ror(self.cpu.a)),

            // Registers.
            0xAA => implied!(self, self.ldx(self.cpu.a)), 0xA8 => implied!(self, self.ldy(self.cpu.a)),
            0x8A => implied!(self, self.lda(self.cpu.x)), 0x98 => implied!(self, self.lda(self.cpu.y)),
            0xBA => implied!(self, self.ldx(self.cpu.s)), 0x9A => implied!(self, self.cpu.s = self.cpu.x),
            0xE8 => implied!(self, self.ldx(self.cpu.x.wrapping_add(1))),
            0xC8 => implied!(self, self.ldy(self.cpu.y.wrapping_add(1))),
            0xCA => implied!(self, self.ldx(self.cpu.x.wrapping_sub(1))),
            0x88 => implied!(self, self.ldy(self.cpu.y.wrapping_sub(1))),

            // Flags.
            0x18 => implied!(self, self.cpu.c = 0), 0x38 => implied!(self, self.cpu.c = 1),
            0x58 => implied!(self, self.set_i_late(false)), 0x78 => implied!(self, self.set_i_late(true)),
            0xB8 => implied!(self, self.cpu.v = false),
            0xD8 => implied!(self, self.cpu.d = false), 0xF8 => implied!(self, self.cpu.d = true),

            // Stack.
            0x48 => implied!(self, self.push(self.cpu.a)),
            0x08 => implied!(self, self.push(self.cpu.p() | BREAK)),
            0x68 => self.pla(), 0x28 => self.plp(),

            // Flow.
            0x10 => self.branch(self.cpu.n & 0x80 == 0), 0x30 => self.branch(self.cpu.n & 0x80 != 0),
            0x50 => self.branch(!self.cpu.v), 0x70 => self.branch(self.cpu.v),
            0x90 => self.branch(self.cpu.c == 0), 0xB0 => self.branch(self.cpu.c != 0),
            0xD0 => self.branch(self.cpu.z != 0), 0xF0 => self.branch(self.cpu.z == 0),
            0x4C => self.jmp(), 0x6C => self.jmp_indirect(),
            0x20 => self.jsr(), 0x60 => self.rts(), 0x40 => self.rti(), 0x00 => self.apart(|core| core.brk()),

            // Nothing, in every mode.
            0xEA | 0x1A | 0x3A | 0x5A | 0x7A | 0xDA | 0xFA => self.dummy_fetch(),
            0x80 | 0x82 | 0x89 | 0xC2 | 0xE2 => load!(self, imm, ignore),
            0x04 | 0x44 | 0x64 => load!(self, zp, ignore),
            0x14 | 0x34 | 0x54 | 0x74 | 0xD4 | 0xF4 => load!(self, zpx, ignore),
            0x0C => load!(self, abs, ignore),
            0x1C | 0x3C | 0x5C | 0x7C | 0xDC | 0xFC => load!(self, abx, ignore),
            0x02 | 0x12 | 0x22 | 0x32 | 0x42 | 0x52 | 0x62 | 0x72 | 0x92 | 0xB2 | 0xD2 | 0xF2 => self.apart(|core| core.jam()),
        }
    }
}

#[cold]
#[inline(never)]
fn run_apart<const EXACT: bool>(
    cpu: Cpu,
    windows: [&Window; 4],
    bus: &mut Bus,
    operation: fn(&mut Core<EXACT>),
) -> Cpu {
    let mut core = Core { cpu, cycles: bus.cycles, data_bus: bus.data_bus, windows, bus, turn_began: (0, 0) };
    operation(&mut core);
    core.leave()
}
