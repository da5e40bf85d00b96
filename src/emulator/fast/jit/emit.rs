//! One function of translated code: the blocks of a part of the program, a dispatcher in front of them, a way out.
//!
//! A, X, Y, S, the flags and the time are variables, which become registers and block parameters; what no path can see
//! is not computed. N is a byte's bit 7, Z is set while a byte is 0, C and V are 0 or 1, as in `Cpu`. I and D stay in
//! the `Cpu`: code that changes I is not translated.
//!
//! - `dispatch(pc, data_bus)`: where the program goes by a computed jump, and where a call of the function begins. It
//!   looks at the deadline, then jumps to the entry of that address, or leaves.
//! - `leave(pc, data_bus, slack, how)`: writes everything back. `slack` other than 0 tells of a poll that came early
//!   (`Bus::late_poll`).
//!
//! The data bus is followed at translation time: it matters only where the function is left.

mod alu;
mod flow;
mod operands;

use std::mem::offset_of;

use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, BlockArg, BlockCall, Function, InstBuilder, JumpTableData, MemFlags, SigRef, Signature, Type, Value,
    condcodes::IntCC,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};

use super::calls;
use super::decode::Flow;
use super::graph::{Block, Graph, MOST_CYCLES};
use super::{Image, code::Exit};
use crate::emulator::fast::bus::layout;
use crate::emulator::fast::cpu::Cpu;

/// The number of a variable of the function.
#[derive(Clone, Copy)]
struct Register(u32);

const A: Register = Register(0);
const X: Register = Register(1);
const Y: Register = Register(2);
const S: Register = Register(3);
const N: Register = Register(4);
const Z: Register = Register(5);
const C: Register = Register(6);
const V: Register = Register(7);
/// `Bus::cycles` at the start of the block, page crossings since then added.
const TIME: Register = Register(8);

impl Register {
    fn variable(self) -> Variable {
        Variable::from_u32(self.0)
    }
}

/// The byte variables and where they are in a `Cpu`.
const BYTES: [(Register, usize); 8] = [
    (A, offset_of!(Cpu, a)),
    (X, offset_of!(Cpu, x)),
    (Y, offset_of!(Cpu, y)),
    (S, offset_of!(Cpu, s)),
    (N, offset_of!(Cpu, n)),
    (Z, offset_of!(Cpu, z)),
    (C, offset_of!(Cpu, c)),
    (V, offset_of!(Cpu, v)),
];

/// What is on the data bus.
#[derive(Clone, Copy)]
enum DataBus {
    Byte(u8),
    Value(Value),
    /// As the `Bus` has it.
    Stored,
}

/// What all functions of a translation have in common.
pub(super) struct Program<'a> {
    pub image: &'a Image,
    pub graph: &'a Graph,
    /// The number of each entry, by `slot`; 0 for none.
    pub table: &'a [u16; 0x8000],
    pub call_conv: CallConv,
}

struct Emitter<'a, 'f> {
    program: &'a Program<'a>,
    builder: FunctionBuilder<'f>,
    cpu: Value,
    bus: Value,
    /// By block of the graph.
    labels: Vec<Option<cranelift_codegen::ir::Block>>,
    dispatch: cranelift_codegen::ir::Block,
    leave: cranelift_codegen::ir::Block,
    read_call: SigRef,
    write_call: SigRef,
    poll_call: SigRef,
    reader_call: SigRef,
    writer_call: SigRef,
    /// Cycles since `TIME`, up to the instruction at hand.
    elapsed: i64,
    data_bus: DataBus,
}

/// The signature of a translated function: the CPU's and the bus's address in, an `Exit` out.
pub(super) fn signature(call_conv: CallConv) -> Signature {
    call_signature(call_conv, &[I64, I64], Some(I32))
}

fn call_signature(call_conv: CallConv, params: &[Type], result: Option<Type>) -> Signature {
    let mut signature = Signature::new(call_conv);
    signature.params.extend(params.iter().map(|&kind| AbiParam::new(kind)));
    signature.returns.extend(result.map(AbiParam::new));
    signature
}

/// Fills `function` with the blocks of function `number`; `entries` are their numbers in the table.
pub(super) fn emit(
    program: &Program,
    number: u16,
    entries: std::ops::Range<u16>,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
) {
    let mut builder = FunctionBuilder::new(function, context);
    for (register, _) in BYTES {
        builder.declare_var(register.variable(), I8);
    }
    builder.declare_var(TIME.variable(), I64);
    let start = builder.create_block();
    builder.append_block_params_for_function_params(start);
    let (cpu, bus) = (builder.block_params(start)[0], builder.block_params(start)[1]);
    let (dispatch, leave) = (builder.create_block(), builder.create_block());
    let read_call = builder.import_signature(call_signature(program.call_conv, &[I64, I32, I32], Some(I32)));
    let write_call = builder.import_signature(call_signature(program.call_conv, &[I64, I32, I32, I32], None));
    let poll_call = builder.import_signature(call_signature(program.call_conv, &[I64, I64, I32, I32], Some(I64)));
    let reader_call = builder.import_signature(call_signature(program.call_conv, &[I64, I64], Some(I32)));
    let writer_call = builder.import_signature(call_signature(program.call_conv, &[I64, I64, I32], None));
    let blocks = &program.graph.blocks;
    let own = |block: &Block| block.function == number;
    let labels = blocks.iter().map(|block| own(block).then(|| builder.create_block())).collect();
    let data_bus = DataBus::Stored;
    let mut emitter = Emitter {
        program,
        builder,
        cpu,
        bus,
        labels,
        dispatch,
        leave,
        read_call,
        write_call,
        poll_call,
        reader_call,
        writer_call,
        elapsed: 0,
        data_bus,
    };
    emitter.start(start);
    emitter.dispatcher(number, entries);
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| own(block)) {
        emitter.block(at, block);
    }
    emitter.way_out();
    emitter.builder.seal_all_blocks();
    emitter.builder.finalize();
}

impl Emitter<'_, '_> {
    fn get(&mut self, register: Register) -> Value {
        self.builder.use_var(register.variable())
    }

    fn put(&mut self, register: Register, value: Value) {
        self.builder.def_var(register.variable(), value);
    }

    fn start(&mut self, start: cranelift_codegen::ir::Block) {
        let flags = MemFlags::trusted();
        self.builder.switch_to_block(start);
        for (register, offset) in BYTES {
            let value = self.builder.ins().load(I8, flags, self.cpu, offset as i32);
            self.put(register, value);
        }
        let time = self.builder.ins().load(I64, flags, self.bus, layout::CYCLES);
        self.put(TIME, time);
        let pc = self.builder.ins().uload16(I32, flags, self.cpu, offset_of!(Cpu, pc) as i32);
        let data_bus = self.builder.ins().load(I8, flags, self.bus, layout::DATA_BUS);
        self.builder.ins().jump(self.dispatch, &[BlockArg::Value(pc), BlockArg::Value(data_bus)]);
    }

    fn dispatcher(&mut self, number: u16, entries: std::ops::Range<u16>) {
        let pc = self.builder.append_block_param(self.dispatch, I32);
        let data_bus = self.builder.append_block_param(self.dispatch, I8);
        self.builder.switch_to_block(self.dispatch);
        let (in_rom, in_time, out) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let rom = self.builder.ins().icmp_imm(IntCC::UnsignedGreaterThanOrEqual, pc, 0x8000);
        self.builder.ins().brif(rom, in_rom, &[], out, &[]);
        self.builder.switch_to_block(in_rom);
        let free = self.before_deadline(i64::from(MOST_CYCLES));
        self.builder.ins().brif(free, in_time, &[], out, &[]);

        self.builder.switch_to_block(in_time);
        let offset = self.builder.ins().iadd_imm(pc, -0x8000);
        let offset = self.builder.ins().ishl_imm(offset, 1);
        let offset = self.builder.ins().uextend(I64, offset);
        let table = self.builder.ins().iconst(I64, self.program.table.as_ptr() as i64);
        let at = self.builder.ins().iadd(table, offset);
        let entry = self.builder.ins().uload16(I32, MemFlags::trusted(), at, 0);
        let index = self.builder.ins().iadd_imm(entry, -i64::from(entries.start));
        let blocks = &self.program.graph.blocks;
        let labels: Vec<_> = blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.function == number && block.entry)
            .map(|(at, _)| self.labels[at].expect("the function's own block"))
            .collect();
        assert_eq!(labels.len(), usize::from(entries.end - entries.start));
        let pool = &mut self.builder.func.dfg.value_lists;
        let call = |block, pool: &mut _| BlockCall::new(block, std::iter::empty(), pool);
        let default = call(out, pool);
        let targets: Vec<_> = labels.into_iter().map(|block| call(block, pool)).collect();
        let jumps = self.builder.create_jump_table(JumpTableData::new(default, &targets));
        self.builder.ins().br_table(index, jumps);

        self.builder.switch_to_block(out);
        self.builder.set_cold_block(out);
        self.jump_to_leave(pc, data_bus, 0, Exit::Boundary);
    }

    fn block(&mut self, at: usize, block: &Block) {
        self.builder.switch_to_block(self.labels[at].expect("the function's own block"));
        self.elapsed = 0;
        self.data_bus = DataBus::Stored;
        let [inner @ .., last] = block.instructions.as_slice() else { return };
        for instruction in inner {
            self.operation(instruction);
            self.elapsed += i64::from(instruction.row.cycles);
        }
        match last.flow {
            Flow::Next | Flow::Bus | Flow::Left => {
                self.operation(last);
                self.elapsed += i64::from(last.row.cycles);
                self.pass_time();
                self.edge(block, last.end, 0);
            }
            _ => self.flow(block, last),
        }
    }

    /// Writes everything back and returns.
    fn way_out(&mut self) {
        let leave = self.leave;
        let [pc, data_bus, slack, how] = [I32, I8, I8, I32].map(|kind| self.builder.append_block_param(leave, kind));
        let flags = MemFlags::trusted();
        self.builder.switch_to_block(leave);
        self.builder.set_cold_block(leave);
        for (register, offset) in BYTES {
            let value = self.get(register);
            self.builder.ins().store(flags, value, self.cpu, offset as i32);
        }
        let time = self.get(TIME);
        self.builder.ins().store(flags, time, self.bus, layout::CYCLES);
        self.builder.ins().istore16(flags, pc, self.cpu, offset_of!(Cpu, pc) as i32);
        self.builder.ins().store(flags, data_bus, self.bus, layout::DATA_BUS);
        let (early, done) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(slack, early, &[], done, &[]);
        self.builder.switch_to_block(early);
        self.builder.ins().store(flags, time, self.bus, layout::LATE_POLL_AT);
        self.builder.ins().store(flags, slack, self.bus, layout::POLL_SLACK);
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(done);
        self.builder.ins().return_(&[how]);
    }

    fn jump_to_leave(&mut self, pc: Value, data_bus: Value, slack: i64, how: Exit) {
        let slack = self.builder.ins().iconst(I8, slack);
        let how = self.builder.ins().iconst(I32, how as i64);
        self.builder.ins().jump(self.leave, &[pc, data_bus, slack, how].map(BlockArg::Value));
    }

    /// Whether `TIME` and so many cycles more come to the deadline at most.
    fn before_deadline(&mut self, cycles: i64) -> Value {
        let time = self.get(TIME);
        let deadline = self.builder.ins().load(I64, MemFlags::trusted(), self.bus, layout::DEADLINE);
        let after = self.builder.ins().iadd_imm(time, cycles);
        self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, after, deadline)
    }

    /// The time after `elapsed` cycles.
    fn now(&mut self) -> Value {
        let time = self.get(TIME);
        self.builder.ins().iadd_imm(time, self.elapsed)
    }

    /// Brings `TIME` up to date.
    fn pass_time(&mut self) {
        let now = self.now();
        self.put(TIME, now);
        self.elapsed = 0;
    }

    fn byte(&mut self, value: u8) -> Value {
        self.builder.ins().iconst(I8, i64::from(value))
    }

    fn data_bus_value(&mut self) -> Value {
        match self.data_bus {
            DataBus::Byte(byte) => self.byte(byte),
            DataBus::Value(value) => value,
            DataBus::Stored => self.builder.ins().load(I8, MemFlags::trusted(), self.bus, layout::DATA_BUS),
        }
    }

    /// Lets the interpreter execute the instruction at `pc`, which has done nothing yet, if `condition` holds.
    fn bail_out(&mut self, condition: Value, pc: u16) {
        let (out, go_on) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(condition, out, &[], go_on, &[]);
        self.builder.switch_to_block(out);
        self.builder.set_cold_block(out);
        let now = self.now();
        self.put(TIME, now);
        let pc = self.builder.ins().iconst(I32, i64::from(pc));
        // The interpreter's first fetch drives the bus before anybody looks.
        let data_bus = self.byte(0);
        self.jump_to_leave(pc, data_bus, 0, Exit::Interpret);
        self.builder.switch_to_block(go_on);
    }
}
