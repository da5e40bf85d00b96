//! The ends of blocks: branches, jumps, calls and returns, and the edges behind them.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlags, Value};

use super::super::decode::{Flow, Instruction};
use super::super::graph::{Block, Edge};
use super::{C, DataBus, Emitter, Exit, N, TIME, V, Z, calls, layout};
use crate::emulator::fast::interp::idle::Poll;
use crate::emulator::nes::opcodes::Mnemonic;

/// A taken branch within its page is polled this long before its end.
const BRANCH_SLACK: i64 = 3;

impl Emitter<'_, '_> {
    pub(super) fn flow(&mut self, block: &Block, last: &Instruction) {
        match last.flow {
            Flow::Branch(to) => self.branch(block, last, to),
            Flow::Jump(to) if to == last.at && self.program.graph.passes_jump_turns() => {
                self.jump_to_itself(block, last);
            }
            Flow::Jump(to) => {
                self.data_bus = DataBus::Byte((to >> 8) as u8);
                self.elapsed += i64::from(last.row.cycles);
                self.pass_time();
                self.edge(block, to, 0);
            }
            Flow::Call(to) => {
                let [low, high] = last.end.wrapping_sub(1).to_le_bytes();
                for byte in [high, low] {
                    let value = self.byte(byte);
                    self.push(value);
                }
                self.data_bus = DataBus::Byte((to >> 8) as u8);
                self.elapsed += i64::from(last.row.cycles);
                self.pass_time();
                self.edge(block, to, 0);
            }
            Flow::Computed if last.row.mnemonic == Mnemonic::Rts => self.rts(block, last),
            Flow::Computed if last.row.mnemonic == Mnemonic::Rti => self.rti(last),
            Flow::Computed => self.jmp_indirect(last),
            Flow::Next | Flow::Bus | Flow::Left => unreachable!("these are no flow"),
        }
    }

    /// From the end of `block` to an address; the data bus and `TIME` are up to date.
    pub(super) fn edge(&mut self, block: &Block, to: u16, slack: i64) {
        match self.program.graph.edge(block, to) {
            Edge::Free(next) => {
                self.builder.ins().jump(self.labels[next].expect("edges stay in a function"), &[]);
            }
            Edge::Checked(next) => self.checked_edge(next, to, slack),
            Edge::Leave => self.leave_for(to, slack),
        }
    }

    /// To block `next`, which starts at `to`, if its bound allows.
    fn checked_edge(&mut self, next: usize, to: u16, slack: i64) {
        let label = self.labels[next].expect("edges stay in a function");
        let free = self.before_deadline(i64::from(self.program.graph.blocks[next].bound));
        let out = self.builder.create_block();
        self.builder.ins().brif(free, label, &[], out, &[]);
        self.builder.switch_to_block(out);
        self.builder.set_cold_block(out);
        self.leave_for(to, slack);
    }

    /// Lets time pass by whole turns until the deadline is reached: the last one too, so that the interpreter has nothing
    /// left to do.
    fn jump_to_itself(&mut self, block: &Block, last: &Instruction) {
        self.data_bus = DataBus::Byte((last.at >> 8) as u8);
        self.elapsed += i64::from(last.row.cycles);
        self.pass_time();
        let now = self.get(TIME);
        let deadline = self.builder.ins().load(I64, MemFlags::trusted(), self.bus, layout::DEADLINE);
        let is_ahead = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, deadline, now);
        let ahead = self.builder.ins().isub(deadline, now);
        let none = self.builder.ins().iconst(I64, 0);
        let ahead = self.builder.ins().select(is_ahead, ahead, none);
        let ahead = self.builder.ins().iadd_imm(ahead, i64::from(last.row.cycles) - 1);
        let turns = self.builder.ins().udiv_imm(ahead, i64::from(last.row.cycles));
        let passed = self.builder.ins().imul_imm(turns, i64::from(last.row.cycles));
        let after = self.builder.ins().iadd(now, passed);
        self.put(TIME, after);
        self.edge(block, last.at, 0);
    }

    fn leave_for(&mut self, to: u16, slack: i64) {
        let pc = self.builder.ins().iconst(I32, i64::from(to));
        let data_bus = self.data_bus_value();
        self.jump_to_leave(pc, data_bus, slack, Exit::Boundary);
    }

    fn branch(&mut self, block: &Block, last: &Instruction, to: u16) {
        let taken = self.is_taken(last.row.mnemonic);
        let (there, on) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(taken, there, &[], on, &[]);
        let elapsed = self.elapsed + i64::from(last.row.cycles);
        self.data_bus = DataBus::Byte(last.operand as u8);
        self.builder.switch_to_block(on);
        self.elapsed = elapsed;
        self.pass_time();
        self.edge(block, last.end, 0);
        let stays = (last.end ^ to) & 0xFF00 == 0;
        self.builder.switch_to_block(there);
        self.elapsed = elapsed + if stays { 1 } else { 2 };
        self.pass_time();
        if let Some(poll) = self.program.graph.poll(self.program.image, to, last.end) {
            self.pass_polls(poll);
        }
        self.edge(block, to, if stays { BRANCH_SLACK } else { 0 });
    }

    /// Lets time pass by whole turns of a polling loop that goes back.
    fn pass_polls(&mut self, poll: Poll) {
        let now = self.get(TIME);
        let [cycles, since] =
            [poll.cycles, poll.since_read].map(|cycles| self.builder.ins().iconst(I32, cycles as i64));
        let call = self.builder.ins().iconst(I64, calls::pass_polls as *const () as i64);
        let signature = self.poll_call;
        let call = self.builder.ins().call_indirect(signature, call, &[self.bus, now, cycles, since]);
        let after = self.builder.inst_results(call)[0];
        self.put(TIME, after);
    }

    fn is_taken(&mut self, mnemonic: Mnemonic) -> Value {
        let (variable, code) = match mnemonic {
            Mnemonic::Bmi => (N, IntCC::SignedLessThan),
            Mnemonic::Bpl => (N, IntCC::SignedGreaterThanOrEqual),
            Mnemonic::Bcs => (C, IntCC::NotEqual),
            Mnemonic::Bcc => (C, IntCC::Equal),
            Mnemonic::Bvs => (V, IntCC::NotEqual),
            Mnemonic::Bvc => (V, IntCC::Equal),
            Mnemonic::Bne => (Z, IntCC::NotEqual),
            _ => (Z, IntCC::Equal),
        };
        let value = self.get(variable);
        self.builder.ins().icmp_imm(code, value, 0)
    }

    fn rts(&mut self, block: &Block, last: &Instruction) {
        let stack = self.get(super::S);
        let low_at = self.builder.ins().iadd_imm(stack, 1);
        let high_at = self.builder.ins().iadd_imm(stack, 2);
        let (low, high) = (self.stack_byte(low_at), self.stack_byte(high_at));
        let from = self.word(low, high);
        // The dummy read at that address may hit a register.
        let register = self.is_bus(from);
        self.bail_out(register, last.at);
        self.put(super::S, high_at);
        let next = self.builder.ins().iadd_imm(from, 1);
        let pc = self.builder.ins().band_imm(next, 0xFFFF);
        self.elapsed += i64::from(last.row.cycles);
        self.pass_time();
        for (to, next) in self.program.graph.returns(block) {
            let same = self.builder.ins().icmp_imm(IntCC::Equal, pc, i64::from(to));
            let (there, on) = (self.builder.create_block(), self.builder.create_block());
            self.builder.ins().brif(same, there, &[], on, &[]);
            self.builder.switch_to_block(there);
            self.data_bus = DataBus::Value(high);
            self.checked_edge(next, to, 0);
            self.builder.switch_to_block(on);
        }
        self.computed(pc, high);
    }

    fn rti(&mut self, last: &Instruction) {
        let p = self.pull();
        let (low, high) = (self.pull(), self.pull());
        self.set_status(p);
        let pc = self.word(low, high);
        self.elapsed += i64::from(last.row.cycles);
        self.pass_time();
        self.computed(pc, high);
    }

    /// The pointer's high byte comes from the same page as its low byte.
    fn jmp_indirect(&mut self, last: &Instruction) {
        let at = last.operand;
        let low = self.read_fixed(at);
        let high = self.read_fixed(at & 0xFF00 | at.wrapping_add(1) & 0x00FF);
        let pc = self.word(low, high);
        self.elapsed += i64::from(last.row.cycles);
        self.pass_time();
        self.computed(pc, high);
    }

    /// Where the program says; `TIME` is up to date.
    fn computed(&mut self, pc: Value, data_bus: Value) {
        let args = [pc, data_bus].map(BlockArg::Value);
        if self.program.graph.links() {
            self.builder.ins().jump(self.dispatch, &args);
        } else {
            self.jump_to_leave(pc, data_bus, 0, Exit::Boundary);
        }
    }
}
