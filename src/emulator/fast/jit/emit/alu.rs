//! What instructions do to registers and flags; the interpreter's `alu` says the same in Rust.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlags, Value};

use super::super::decode::Instruction;
use super::{A, C, Cpu, DataBus, Emitter, N, Register, S, V, X, Y, Z, layout};
use crate::emulator::fast::cpu::{BREAK, UNUSED, ZERO};
use crate::emulator::nes::opcodes::{Mnemonic, Mode};

impl Emitter<'_, '_> {
    /// An instruction behind which the program goes on with the next one.
    pub(super) fn operation(&mut self, instruction: &Instruction) {
        use Mnemonic as M;
        let opcode = self.program.image.read(instruction.at);
        self.data_bus = DataBus::Byte(opcode);
        match instruction.row.mnemonic {
            M::Lda => self.load_into(A, instruction),
            M::Ldx => self.load_into(X, instruction),
            M::Ldy => self.load_into(Y, instruction),
            M::Sta => self.store_from(A, instruction),
            M::Stx => self.store_from(X, instruction),
            M::Sty => self.store_from(Y, instruction),
            M::Adc => {
                let value = self.read(instruction);
                self.adc(value);
            }
            M::Sbc => {
                let value = self.read(instruction);
                let value = self.builder.ins().bnot(value);
                self.adc(value);
            }
            M::And | M::Ora | M::Eor => self.logic(instruction),
            M::Cmp => self.compare(A, instruction),
            M::Cpx => self.compare(X, instruction),
            M::Cpy => self.compare(Y, instruction),
            M::Bit => self.bit(instruction),
            M::Asl | M::Lsr | M::Rol | M::Ror | M::Inc | M::Dec => self.modify(instruction),
            M::Tax => self.transfer(A, X),
            M::Tay => self.transfer(A, Y),
            M::Txa => self.transfer(X, A),
            M::Tya => self.transfer(Y, A),
            M::Tsx => self.transfer(S, X),
            M::Txs => {
                let value = self.get(X);
                self.put(S, value);
            }
            M::Inx => self.count(X, 1),
            M::Iny => self.count(Y, 1),
            M::Dex => self.count(X, -1),
            M::Dey => self.count(Y, -1),
            M::Clc => self.set(C, 0),
            M::Sec => self.set(C, 1),
            M::Clv => self.set(V, 0),
            M::Cld => self.set_decimal(0),
            M::Sed => self.set_decimal(1),
            M::Pha => {
                let value = self.get(A);
                self.push(value);
            }
            M::Php => {
                let value = self.status();
                self.push(value);
            }
            M::Pla => {
                let value = self.pull();
                self.set_register(A, value);
            }
            M::Nop => {}
            _ => unreachable!("no operation of the translator: {instruction:?}"),
        }
    }

    fn set_nz(&mut self, value: Value) {
        self.put(N, value);
        self.put(Z, value);
    }

    /// A register and the flags of its new value.
    fn set_register(&mut self, register: Register, value: Value) {
        self.put(register, value);
        self.set_nz(value);
    }

    fn load_into(&mut self, register: Register, instruction: &Instruction) {
        let value = self.read(instruction);
        self.set_register(register, value);
    }

    fn store_from(&mut self, register: Register, instruction: &Instruction) {
        let value = self.get(register);
        self.write(instruction, value);
    }

    fn transfer(&mut self, from: Register, to: Register) {
        let value = self.get(from);
        self.set_register(to, value);
    }

    fn count(&mut self, register: Register, by: i64) {
        let value = self.get(register);
        let value = self.builder.ins().iadd_imm(value, by);
        self.set_register(register, value);
    }

    fn set(&mut self, flag: Register, value: u8) {
        let value = self.byte(value);
        self.put(flag, value);
    }

    fn set_decimal(&mut self, value: u8) {
        let value = self.byte(value);
        self.builder.ins().store(MemFlags::trusted(), value, self.cpu, offset_of!(Cpu, d) as i32);
    }

    fn adc(&mut self, value: Value) {
        let (a, carry) = (self.get(A), self.get(C));
        let [wide_a, wide_value, wide_carry] = [a, value, carry].map(|byte| self.builder.ins().uextend(I32, byte));
        let sum = self.builder.ins().iadd(wide_a, wide_value);
        let sum = self.builder.ins().iadd(sum, wide_carry);
        let result = self.builder.ins().ireduce(I8, sum);
        let carry = self.builder.ins().ushr_imm(sum, 8);
        let carry = self.builder.ins().ireduce(I8, carry);
        let from_a = self.builder.ins().bxor(a, result);
        let from_value = self.builder.ins().bxor(value, result);
        let both = self.builder.ins().band(from_a, from_value);
        let overflow = self.builder.ins().ushr_imm(both, 7);
        self.put(C, carry);
        self.put(V, overflow);
        self.set_register(A, result);
    }

    fn logic(&mut self, instruction: &Instruction) {
        let value = self.read(instruction);
        let a = self.get(A);
        let result = match instruction.row.mnemonic {
            Mnemonic::And => self.builder.ins().band(a, value),
            Mnemonic::Ora => self.builder.ins().bor(a, value),
            _ => self.builder.ins().bxor(a, value),
        };
        self.set_register(A, result);
    }

    fn compare(&mut self, register: Register, instruction: &Instruction) {
        let value = self.read(instruction);
        let register = self.get(register);
        let carry = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, register, value);
        let difference = self.builder.ins().isub(register, value);
        self.put(C, carry);
        self.set_nz(difference);
    }

    fn bit(&mut self, instruction: &Instruction) {
        let value = self.read(instruction);
        let a = self.get(A);
        let zero = self.builder.ins().band(a, value);
        let overflow = self.builder.ins().ushr_imm(value, 6);
        let overflow = self.builder.ins().band_imm(overflow, 1);
        self.put(N, value);
        self.put(V, overflow);
        self.put(Z, zero);
    }

    /// Read, change, write; on the accumulator too.
    fn modify(&mut self, instruction: &Instruction) {
        if instruction.row.mode == Mode::Acc || instruction.row.mode == Mode::Imp {
            let value = self.get(A);
            let result = self.changed(instruction.row.mnemonic, value);
            return self.set_register(A, result);
        }
        let place = self.place(instruction);
        let value = self.load(place);
        let result = self.changed(instruction.row.mnemonic, value);
        self.store(place, result);
        self.set_nz(result);
        self.data_bus = DataBus::Value(result);
    }

    fn changed(&mut self, mnemonic: Mnemonic, value: Value) -> Value {
        match mnemonic {
            Mnemonic::Inc => self.builder.ins().iadd_imm(value, 1),
            Mnemonic::Dec => self.builder.ins().iadd_imm(value, -1),
            Mnemonic::Asl | Mnemonic::Rol => {
                let carry = self.get(C);
                let out = self.builder.ins().ushr_imm(value, 7);
                let shifted = self.builder.ins().ishl_imm(value, 1);
                self.put(C, out);
                if mnemonic == Mnemonic::Asl { shifted } else { self.builder.ins().bor(shifted, carry) }
            }
            _ => {
                let carry = self.get(C);
                let out = self.builder.ins().band_imm(value, 1);
                let shifted = self.builder.ins().ushr_imm(value, 1);
                self.put(C, out);
                if mnemonic == Mnemonic::Lsr {
                    return shifted;
                }
                let high = self.builder.ins().ishl_imm(carry, 7);
                self.builder.ins().bor(shifted, high)
            }
        }
    }

    /// P as PHP pushes it.
    fn status(&mut self) -> Value {
        let flags = MemFlags::trusted();
        let negative = self.get(N);
        let negative = self.builder.ins().band_imm(negative, 0x80);
        let zero = self.get(Z);
        let zero = self.builder.ins().icmp_imm(IntCC::Equal, zero, 0);
        let overflow = self.get(V);
        let decimal = self.builder.ins().load(I8, flags, self.cpu, offset_of!(Cpu, d) as i32);
        let masked = self.builder.ins().load(I8, flags, self.cpu, offset_of!(Cpu, i) as i32);
        let carry = self.get(C);
        let mut status = self.builder.ins().bor_imm(negative, i64::from(UNUSED | BREAK));
        for (flag, bit) in [(overflow, 6), (decimal, 3), (masked, 2), (zero, 1), (carry, 0)] {
            let shifted = self.builder.ins().ishl_imm(flag, bit);
            status = self.builder.ins().bor(status, shifted);
        }
        status
    }

    /// Takes the flags from P as it was on the stack. Another I is looked at at once.
    pub(super) fn set_status(&mut self, p: Value) {
        let flags = MemFlags::trusted();
        self.put(N, p);
        let not = self.builder.ins().bnot(p);
        let zero = self.builder.ins().band_imm(not, i64::from(ZERO));
        self.put(Z, zero);
        for (register, bit) in [(C, 0), (V, 6)] {
            let flag = self.status_bit(p, bit);
            self.put(register, flag);
        }
        let decimal = self.status_bit(p, 3);
        self.builder.ins().store(flags, decimal, self.cpu, offset_of!(Cpu, d) as i32);
        let masked = self.status_bit(p, 2);
        let before = self.builder.ins().load(I8, flags, self.cpu, offset_of!(Cpu, i) as i32);
        self.builder.ins().store(flags, masked, self.cpu, offset_of!(Cpu, i) as i32);
        let changed = self.builder.ins().icmp(IntCC::NotEqual, masked, before);
        let deadline = self.builder.ins().load(I64, flags, self.bus, layout::DEADLINE);
        let now = self.builder.ins().iconst(I64, 0);
        let deadline = self.builder.ins().select(changed, now, deadline);
        self.builder.ins().store(flags, deadline, self.bus, layout::DEADLINE);
    }

    fn status_bit(&mut self, p: Value, bit: i64) -> Value {
        let shifted = self.builder.ins().ushr_imm(p, bit);
        self.builder.ins().band_imm(shifted, 1)
    }
}
