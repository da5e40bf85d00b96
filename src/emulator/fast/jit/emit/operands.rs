//! Where operands are and how they are read and written.
//!
//! RAM is at a fixed offset in the `Bus`, PRG-ROM at a fixed address. What may hit a register or work RAM is a call
//! (`calls`) where the address tells so, else the instruction is given up to the interpreter before it has an effect.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlags, Value};

use super::super::decode::{Area, Instruction, area, indexed_area};
use super::{DataBus, Emitter, Register, S, TIME, X, Y, calls, layout};
use crate::emulator::nes::opcodes::Mode;

/// Cycles of the fetches of an absolute operand.
const ABSOLUTE_FETCHES: i64 = 3;

/// A place in memory that is there for reading and writing without side effects.
#[derive(Clone, Copy)]
pub(super) struct Place {
    base: Value,
    offset: i32,
}

impl Emitter<'_, '_> {
    fn index(mode: Mode) -> Register {
        if matches!(mode, Mode::Zpy | Mode::Aby | Mode::Izy) { Y } else { X }
    }

    /// The operand's value.
    pub(super) fn read(&mut self, instruction: &Instruction) -> Value {
        let operand = instruction.operand;
        let value = match instruction.row.mode {
            Mode::Imm => {
                self.data_bus = DataBus::Byte(operand as u8);
                return self.byte(operand as u8);
            }
            Mode::Abs if area(operand) == Area::Bus => {
                return match self.program.graph.registers().then(|| calls::reader(operand)).flatten() {
                    Some(call) => self.read_register(instruction, call),
                    None => self.call_read(instruction, None),
                };
            }
            Mode::Abs => self.read_fixed(operand),
            Mode::Abx | Mode::Aby if indexed_area(operand) == Area::Bus => {
                let index = self.get(Self::index(instruction.row.mode));
                return self.call_read(instruction, Some(index));
            }
            Mode::Abx | Mode::Aby => self.read_indexed(instruction),
            Mode::Izx => {
                let (low, high) = self.indexed_pointer(operand as u8);
                let address = self.word(low, high);
                let bus = self.is_bus(address);
                self.bail_out(bus, instruction.at);
                self.load_anywhere(address)
            }
            Mode::Izy => self.read_behind_pointer(instruction),
            _ => {
                let place = self.place(instruction);
                self.load(place)
            }
        };
        self.data_bus = DataBus::Value(value);
        value
    }

    /// Stores a value at the operand.
    pub(super) fn write(&mut self, instruction: &Instruction, value: Value) {
        let (operand, mode) = (instruction.operand, instruction.row.mode);
        match mode {
            Mode::Abs if area(operand) != Area::Ram => {
                return match self.program.graph.registers().then(|| calls::writer(operand)).flatten() {
                    Some(call) => self.write_register(instruction, call, value),
                    None => self.call_write(instruction, None, value),
                };
            }
            Mode::Abx | Mode::Aby if indexed_area(operand) != Area::Ram => {
                let index = self.get(Self::index(mode));
                return self.call_write(instruction, Some(index), value);
            }
            Mode::Izx | Mode::Izy => {
                let address = self.pointed_address(instruction);
                let beyond = self.builder.ins().icmp_imm(IntCC::UnsignedGreaterThanOrEqual, address, 0x2000);
                self.bail_out(beyond, instruction.at);
                let place = self.ram_at(address);
                self.store(place, value);
            }
            _ => {
                let place = self.place(instruction);
                self.store(place, value);
            }
        }
        self.data_bus = DataBus::Value(value);
    }

    /// The operand's place in RAM, for modes in which that is known.
    pub(super) fn place(&mut self, instruction: &Instruction) -> Place {
        let operand = instruction.operand;
        let mode = instruction.row.mode;
        match mode {
            Mode::Zp | Mode::Abs => self.ram_fixed(operand),
            Mode::Zpx | Mode::Zpy => {
                let index = self.get(Self::index(mode));
                let within = self.builder.ins().iadd_imm(index, i64::from(operand as u8));
                self.ram_byte(within, 0)
            }
            Mode::Abx | Mode::Aby => {
                let index = self.get(Self::index(mode));
                if operand < 0x0700 {
                    return self.ram_byte(index, i32::from(operand));
                }
                let wide = self.builder.ins().uextend(I32, index);
                let address = self.builder.ins().iadd_imm(wide, i64::from(operand));
                self.ram_at(address)
            }
            _ => unreachable!("no other mode has a place in RAM: {instruction:?}"),
        }
    }

    pub(super) fn load(&mut self, place: Place) -> Value {
        self.builder.ins().load(I8, MemFlags::trusted(), place.base, place.offset)
    }

    pub(super) fn store(&mut self, place: Place, value: Value) {
        self.builder.ins().store(MemFlags::trusted(), value, place.base, place.offset);
    }

    fn ram_fixed(&self, address: u16) -> Place {
        Place { base: self.bus, offset: layout::RAM + i32::from(address & 0x07FF) }
    }

    /// RAM at a byte index from `offset`.
    fn ram_byte(&mut self, index: Value, offset: i32) -> Place {
        let wide = self.builder.ins().uextend(I64, index);
        let base = self.builder.ins().iadd(self.bus, wide);
        Place { base, offset: layout::RAM + offset }
    }

    /// RAM at an address below $2000.
    fn ram_at(&mut self, address: Value) -> Place {
        let within = self.builder.ins().band_imm(address, 0x07FF);
        self.ram_byte(within, 0)
    }

    /// A fixed address in RAM or ROM.
    pub(super) fn read_fixed(&mut self, address: u16) -> Value {
        if area(address) == Area::Rom {
            return self.byte(self.program.image.read(address));
        }
        let place = self.ram_fixed(address);
        self.load(place)
    }

    /// PRG-ROM from `address` on, which `index` is added to.
    fn rom(&mut self, address: u16, index: Value) -> Place {
        let bytes = self.program.image.from(address);
        let base = self.builder.ins().iconst(I64, bytes.as_ptr() as i64);
        let wide = self.builder.ins().uextend(I64, index);
        Place { base: self.builder.ins().iadd(base, wide), offset: 0 }
    }

    /// A fixed address in RAM or ROM with an index; a crossed page costs a cycle.
    fn read_indexed(&mut self, instruction: &Instruction) -> Value {
        let operand = instruction.operand;
        let index = self.get(Self::index(instruction.row.mode));
        let value = if indexed_area(operand) == Area::Rom {
            let place = self.rom(operand, index);
            self.load(place)
        } else {
            let place = self.place(instruction);
            self.load(place)
        };
        let low = (operand & 0x00FF) as u8;
        if low != 0 {
            let crosses = self.builder.ins().icmp_imm(IntCC::UnsignedGreaterThanOrEqual, index, -i64::from(low) & 0xFF);
            self.add_cycle(crosses);
        }
        value
    }

    /// A cycle more if `condition` holds.
    fn add_cycle(&mut self, condition: Value) {
        let cycle = self.builder.ins().uextend(I64, condition);
        let time = self.get(TIME);
        let time = self.builder.ins().iadd(time, cycle);
        self.put(TIME, time);
    }

    /// Two bytes as an address.
    pub(super) fn word(&mut self, low: Value, high: Value) -> Value {
        let low = self.builder.ins().uextend(I32, low);
        let high = self.builder.ins().uextend(I32, high);
        let high = self.builder.ins().ishl_imm(high, 8);
        self.builder.ins().bor(high, low)
    }

    /// Whether an address is neither RAM nor PRG-ROM.
    pub(super) fn is_bus(&mut self, address: Value) -> Value {
        let above = self.builder.ins().iadd_imm(address, -0x2000);
        self.builder.ins().icmp_imm(IntCC::UnsignedLessThan, above, 0x6000)
    }

    /// The pointer at `at` + X in page zero, which wraps within it.
    fn indexed_pointer(&mut self, at: u8) -> (Value, Value) {
        let index = self.get(X);
        let low_at = self.builder.ins().iadd_imm(index, i64::from(at));
        let high_at = self.builder.ins().iadd_imm(low_at, 1);
        let (low, high) = (self.ram_byte(low_at, 0), self.ram_byte(high_at, 0));
        (self.load(low), self.load(high))
    }

    /// The pointer at `at` in page zero. Two loads: a wide one would wait for the stores of both bytes.
    fn pointer(&mut self, at: u8) -> (Value, Value) {
        let (low, high) = (self.ram_fixed(u16::from(at)), self.ram_fixed(u16::from(at.wrapping_add(1))));
        (self.load(low), self.load(high))
    }

    fn pointed_address(&mut self, instruction: &Instruction) -> Value {
        let at = instruction.operand as u8;
        if instruction.row.mode == Mode::Izx {
            let (low, high) = self.indexed_pointer(at);
            return self.word(low, high);
        }
        let (low, high) = self.pointer(at);
        let base = self.word(low, high);
        self.add_index(base)
    }

    /// base + Y.
    fn add_index(&mut self, base: Value) -> Value {
        let index = self.get(Y);
        let wide = self.builder.ins().uextend(I32, index);
        let sum = self.builder.ins().iadd(base, wide);
        self.builder.ins().band_imm(sum, 0xFFFF)
    }

    fn read_behind_pointer(&mut self, instruction: &Instruction) -> Value {
        let (low, high) = self.pointer(instruction.operand as u8);
        let base = self.word(low, high);
        let address = self.add_index(base);
        // The dummy read lies in the base's page.
        let (dummy, own) = (self.is_bus(base), self.is_bus(address));
        let bus = self.builder.ins().bor(dummy, own);
        self.bail_out(bus, instruction.at);
        let value = self.load_anywhere(address);
        let pages = self.builder.ins().bxor(base, address);
        let crosses = self.builder.ins().icmp_imm(IntCC::UnsignedGreaterThan, pages, 0xFF);
        self.add_cycle(crosses);
        value
    }

    /// Reads RAM or ROM.
    fn load_anywhere(&mut self, address: Value) -> Value {
        let in_ram = self.ram_at(address);
        let in_ram = self.builder.ins().iadd_imm(in_ram.base, i64::from(layout::RAM));
        let within = self.builder.ins().band_imm(address, 0x7FFF);
        let in_rom = self.rom(0x8000, within);
        let rom = self.builder.ins().icmp_imm(IntCC::UnsignedGreaterThanOrEqual, address, 0x8000);
        let base = self.builder.ins().select(rom, in_rom.base, in_ram);
        self.load(Place { base, offset: 0 })
    }

    /// The stack's byte at this value of S.
    pub(super) fn stack_byte(&mut self, at: Value) -> Value {
        let place = self.ram_byte(at, 0x0100);
        self.load(place)
    }

    pub(super) fn push(&mut self, value: Value) {
        let stack = self.get(S);
        let place = self.ram_byte(stack, 0x0100);
        self.store(place, value);
        let stack = self.builder.ins().iadd_imm(stack, -1);
        self.put(S, stack);
        self.data_bus = DataBus::Value(value);
    }

    pub(super) fn pull(&mut self) -> Value {
        let stack = self.get(S);
        let stack = self.builder.ins().iadd_imm(stack, 1);
        let value = self.stack_byte(stack);
        self.put(S, stack);
        self.data_bus = DataBus::Value(value);
        value
    }

    /// Tells the bus the time and what is on it, before an access of its own.
    fn hand_over(&mut self, instruction: &Instruction) {
        let time = self.get(TIME);
        let at = self.builder.ins().iadd_imm(time, self.elapsed + ABSOLUTE_FETCHES);
        self.builder.ins().store(MemFlags::trusted(), at, self.bus, layout::CYCLES);
        let high = self.byte((instruction.operand >> 8) as u8);
        self.builder.ins().store(MemFlags::trusted(), high, self.bus, layout::DATA_BUS);
    }

    /// Takes the time from the bus; the caller adds the instruction's cycles, as everywhere.
    fn take_back(&mut self, instruction: &Instruction) {
        let after = self.builder.ins().load(I64, MemFlags::trusted(), self.bus, layout::CYCLES);
        let counted = self.elapsed + i64::from(instruction.row.cycles);
        let time = self.builder.ins().iadd_imm(after, -counted);
        self.put(TIME, time);
        self.data_bus = DataBus::Stored;
    }

    fn call_read(&mut self, instruction: &Instruction, index: Option<Value>) -> Value {
        self.hand_over(instruction);
        let base = self.builder.ins().iconst(I32, i64::from(instruction.operand));
        let (call, index) = self.call_operands(index, calls::read as *const (), calls::read_indexed as *const ());
        let signature = self.read_call;
        let call = self.builder.ins().call_indirect(signature, call, &[self.bus, base, index]);
        let value = self.builder.inst_results(call)[0];
        self.take_back(instruction);
        self.builder.ins().ireduce(I8, value)
    }

    fn call_write(&mut self, instruction: &Instruction, index: Option<Value>, value: Value) {
        self.hand_over(instruction);
        let dma = index.is_none() && instruction.operand == 0x4014 && self.program.graph.registers();
        let (plain, base) = if dma {
            (calls::write_oam_dma as *const (), instruction.end)
        } else {
            (calls::write as *const (), instruction.operand)
        };
        let base = self.builder.ins().iconst(I32, i64::from(base));
        let (call, index) = self.call_operands(index, plain, calls::write_indexed as *const ());
        let signature = self.write_call;
        let wide = self.builder.ins().uextend(I32, value);
        self.builder.ins().call_indirect(signature, call, &[self.bus, base, index, wide]);
        self.take_back(instruction);
    }

    /// The cycle of the access of an instruction with an absolute operand.
    fn access_cycle(&mut self) -> Value {
        let time = self.get(TIME);
        self.builder.ins().iadd_imm(time, self.elapsed + ABSOLUTE_FETCHES)
    }

    /// Reads a register that takes one cycle and needs no more of the bus.
    fn read_register(&mut self, instruction: &Instruction, call: *const ()) -> Value {
        let cycle = self.access_cycle();
        let call = self.builder.ins().iconst(I64, call as i64);
        let signature = self.reader_call;
        let call = self.builder.ins().call_indirect(signature, call, &[self.bus, cycle]);
        let value = self.builder.inst_results(call)[0];
        let value = self.builder.ins().ireduce(I8, value);
        // What $4015 gives stays inside the 2A03.
        self.data_bus = if instruction.operand == 0x4015 { DataBus::Byte(0x40) } else { DataBus::Value(value) };
        value
    }

    /// Writes a register that takes one cycle and needs no more of the bus.
    fn write_register(&mut self, _instruction: &Instruction, call: *const (), value: Value) {
        let cycle = self.access_cycle();
        let call = self.builder.ins().iconst(I64, call as i64);
        let signature = self.writer_call;
        let wide = self.builder.ins().uextend(I32, value);
        self.builder.ins().call_indirect(signature, call, &[self.bus, cycle, wide]);
        self.data_bus = DataBus::Value(value);
    }

    /// The function to call, and the index as 32 bits.
    fn call_operands(&mut self, index: Option<Value>, plain: *const (), indexed: *const ()) -> (Value, Value) {
        let address = if index.is_some() { indexed } else { plain };
        let call = self.builder.ins().iconst(I64, address as i64);
        let index = match index {
            Some(index) => self.builder.ins().uextend(I32, index),
            None => self.builder.ins().iconst(I32, 0),
        };
        (call, index)
    }
}
