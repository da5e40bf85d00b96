//! From the instructions that were reached to basic blocks with bounds.
//!
//! A block begins where a jump, a return or the interpreter may enter it. `bound` is the most cycles that run from its
//! start to the next look at the deadline: an edge needs no look (`Edge::Free`) when it goes forward and the bounds
//! of both sides together stay small, so no chain of free edges is a loop or long.

mod returns;

use std::collections::BTreeMap;

use super::decode::{Flow, Instruction, decode};
use super::{Image, Passes, REACHED, WANTED};
use crate::emulator::fast::interp::idle::{Poll, poll, waiting_turn};
use crate::emulator::nes::opcodes::Mnemonic;

/// The most cycles between two looks at the deadline. The interpreter goes the last so many to every deadline.
pub(super) const MOST_CYCLES: u32 = 128;
/// A longer block is cut.
const MOST_BLOCK_CYCLES: u32 = 64;
/// Functions of about so many instructions: allocating registers takes more than linear time.
const FUNCTION_INSTRUCTIONS: usize = 3000;
const NONE: u16 = u16::MAX;
const VECTORS: [u16; 3] = [0xFFFA, 0xFFFC, 0xFFFE];

#[derive(Debug)]
pub(super) struct Block {
    pub start: u16,
    pub instructions: Vec<Instruction>,
    /// Where the dispatcher may enter.
    pub entry: bool,
    /// The function that it is part of.
    pub function: u16,
    cycles: u32,
    pub bound: u32,
}

/// How translated code gets from a block to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// To this block without a look at the deadline.
    Free(usize),
    /// To this block if its bound allows.
    Checked(usize),
    /// Back to the dispatcher.
    Leave,
}

pub(super) struct Graph {
    /// By address.
    pub blocks: Vec<Block>,
    /// The block that starts at $8000 + index.
    starts: Vec<u16>,
    passes: Passes,
    /// By the address of an RTS: where it probably goes.
    returns: BTreeMap<u16, Vec<u16>>,
    pub functions: u16,
}

/// The index of an address in PRG-ROM.
pub(super) fn slot(at: u16) -> usize {
    usize::from(at & 0x7FFF)
}

impl Graph {
    /// `reached`: `REACHED` and `WANTED` of every address from $8000 on.
    pub(super) fn new(image: &Image, reached: &[u8], passes: Passes) -> Self {
        let plan = Plan::new(image, reached, passes);
        let returns = if passes.returns { returns::foretold(&plan.instructions) } else { BTreeMap::new() };
        let mut graph = Self { blocks: Vec::new(), starts: vec![NONE; 0x8000], passes, returns, functions: 0 };
        let mut count = 0;
        for at in 0x8000..=0xFFFF {
            if plan.leader[slot(at)] && plan.translated(at) {
                let block = plan.block(at, (count / FUNCTION_INSTRUCTIONS) as u16);
                count += block.instructions.len();
                graph.functions = block.function + 1;
                graph.starts[slot(at)] = graph.blocks.len() as u16;
                graph.blocks.push(block);
            }
        }
        graph.bound_blocks();
        graph
    }

    /// Block by block from the last: free edges go forward, so the bounds behind them are known.
    fn bound_blocks(&mut self) {
        for at in (0..self.blocks.len()).rev() {
            let block = &self.blocks[at];
            let beyond = targets(block).into_iter().flatten().filter_map(|to| match self.edge(block, to) {
                Edge::Free(next) => Some(self.blocks[next].bound),
                _ => None,
            });
            let bound = block.cycles + beyond.max().unwrap_or(0);
            self.blocks[at].bound = bound;
        }
    }

    pub(super) fn links(&self) -> bool {
        self.passes.links
    }

    /// Whether accesses to registers call what the register does.
    pub(super) fn registers(&self) -> bool {
        self.passes.registers
    }

    /// Whether a jump to itself passes time as far as the deadline.
    pub(super) fn passes_jump_turns(&self) -> bool {
        self.passes.idle_skip
    }

    /// Where the RTS at the end of `from` probably goes, with the blocks there.
    pub(super) fn returns(&self, from: &Block) -> Vec<(u16, usize)> {
        let foretold = self.returns.get(&from.last().at).map_or(&[][..], Vec::as_slice);
        foretold.iter().filter_map(|&to| self.neighbour(from, to).map(|next| (to, next))).collect()
    }

    /// The block at `to`, if translated code can go there from `from`.
    fn neighbour(&self, from: &Block, to: u16) -> Option<usize> {
        let next = if to < 0x8000 { NONE } else { self.starts[slot(to)] };
        let block = self.blocks.get(usize::from(next))?;
        (self.passes.links && block.function == from.function).then_some(usize::from(next))
    }

    /// The turn of a polling loop from `to` to the branch that ends before `end`, if it is translated with a way to pass
    /// over it.
    pub(super) fn poll(&self, image: &Image, to: u16, end: u16) -> Option<Poll> {
        translated_poll(image, self.passes, to, end)
    }

    /// The edge from the end of `from` to the address `to`.
    pub(super) fn edge(&self, from: &Block, to: u16) -> Edge {
        let Some(next) = self.neighbour(from, to) else { return Edge::Leave };
        let block = &self.blocks[next];
        let from_bus = matches!(from.last().flow, Flow::Bus);
        let short = from.cycles + block.bound <= MOST_CYCLES;
        if self.passes.dead_flags && !from_bus && to > from.start && short {
            Edge::Free(next)
        } else {
            Edge::Checked(next)
        }
    }
}

impl Block {
    pub(super) fn last(&self) -> &Instruction {
        self.instructions.last().expect("a block holds an instruction")
    }
}

fn translated_poll(image: &Image, passes: Passes, to: u16, end: u16) -> Option<Poll> {
    if passes.polls { poll(|at| image.read(at), to, end) } else { None }
}

/// Where a block goes on: behind itself, and to its jump's address.
fn targets(block: &Block) -> [Option<u16>; 2] {
    let last = block.last();
    match last.flow {
        Flow::Next | Flow::Bus | Flow::Left => [Some(last.end), None],
        Flow::Branch(to) => [Some(last.end), Some(to)],
        Flow::Jump(to) | Flow::Call(to) => [None, Some(to)],
        Flow::Computed => [None, None],
    }
}

/// Where blocks begin.
struct Plan {
    /// What was reached, by address; instructions of waiting loops are left to the interpreter, which passes over them.
    instructions: Vec<Option<Instruction>>,
    leader: Vec<bool>,
    entry: Vec<bool>,
}

impl Plan {
    fn new(image: &Image, reached: &[u8], passes: Passes) -> Self {
        let instructions =
            (0x8000..=0xFFFF).map(|at| (reached[slot(at)] & REACHED != 0).then(|| decode(image, at))).collect();
        let mut plan = Self { instructions, leader: vec![false; 0x8000], entry: vec![false; 0x8000] };
        plan.leave_waiting_loops(image, passes);
        for at in 0x8000..=0xFFFF {
            if reached[slot(at)] & WANTED != 0 {
                plan.enter(at);
            }
        }
        for vector in VECTORS {
            plan.enter(u16::from_le_bytes([image.read(vector), image.read(vector + 1)]));
        }
        plan.find_leaders();
        if !passes.links {
            plan.entry.copy_from_slice(&plan.leader);
        }
        plan
    }

    fn translated(&self, at: u16) -> bool {
        at >= 0x8000 && self.instructions[slot(at)].is_some_and(|instruction| instruction.flow != Flow::Left)
    }

    fn lead(&mut self, at: u16) {
        if at >= 0x8000 {
            self.leader[slot(at)] = true;
        }
    }

    fn enter(&mut self, at: u16) {
        self.lead(at);
        if at >= 0x8000 {
            self.entry[slot(at)] = true;
        }
    }

    fn leave_waiting_loops(&mut self, image: &Image, passes: Passes) {
        let passed = |polls| if polls { passes.poll_skip } else { passes.idle_skip };
        for at in 0..0x8000 {
            let Some(instruction) = self.instructions[at] else { continue };
            let from = match instruction.flow {
                Flow::Branch(to) if translated_poll(image, passes, to, instruction.end).is_some() => continue,
                Flow::Branch(to) => match waiting_turn(|at| image.read(at), to, instruction.end) {
                    Some(turn) if passed(turn.polls) => to,
                    _ => continue,
                },
                // RTI and a jump to itself go together: the way out of an interrupt and what it comes back to.
                Flow::Jump(to) if to == instruction.at && passes.idle_skip && !passes.returns => to,
                Flow::Computed if instruction.row.mnemonic == Mnemonic::Rti && !passes.returns => instruction.at,
                _ => continue,
            };
            for inside in from..instruction.end {
                if let Some(instruction) = &mut self.instructions[slot(inside)] {
                    instruction.flow = Flow::Left;
                }
            }
        }
    }

    fn find_leaders(&mut self) {
        let mut came_from = vec![0_u8; 0x8000];
        for at in 0..0x8000 {
            let Some(instruction) = self.instructions[at] else { continue };
            let end = instruction.end;
            match instruction.flow {
                Flow::Next => came_from[slot(end)] = came_from[slot(end)].saturating_add(1),
                // The interpreter comes back here, or a look at the deadline sends it here.
                Flow::Bus | Flow::Left => self.enter(end),
                Flow::Branch(to) => {
                    self.lead(end);
                    self.jump(instruction.at, to);
                }
                Flow::Jump(to) => self.jump(instruction.at, to),
                Flow::Call(to) => {
                    self.jump(instruction.at, to);
                    self.enter(end);
                }
                Flow::Computed => {}
            }
        }
        // One way in that is not a jump: part of the block before. Two when code overlaps, none after a gap.
        for (at, &ways) in came_from.iter().enumerate() {
            if ways != 1 {
                self.leader[at] = true;
            }
        }
        self.cut_long_blocks();
    }

    /// A loop's head is where the interpreter, having begun a frame inside, gets back to translated code.
    fn jump(&mut self, from: u16, to: u16) {
        self.lead(to);
        if to <= from {
            self.enter(to);
        }
    }

    fn cut_long_blocks(&mut self) {
        let mut cycles_before = vec![0; 0x8000];
        for at in 0..0x8000 {
            let Some(instruction) = self.instructions[at] else { continue };
            if self.leader[at] {
                cycles_before[at] = 0;
            }
            let after = cycles_before[at] + instruction.most_cycles();
            let next = slot(instruction.end);
            if instruction.flow == Flow::Next && !self.leader[next] && instruction.end > instruction.at {
                if after > MOST_BLOCK_CYCLES - 8 {
                    self.enter(instruction.end);
                } else {
                    cycles_before[next] = after;
                }
            }
        }
    }

    fn block(&self, start: u16, function: u16) -> Block {
        let (mut at, mut cycles, mut instructions) = (start, 0, Vec::new());
        loop {
            let instruction = self.instructions[slot(at)].expect("the caller and the loop look before they step");
            cycles += instruction.most_cycles();
            instructions.push(instruction);
            at = instruction.end;
            if instruction.flow != Flow::Next || self.leader[slot(at)] || !self.translated(at) {
                let entry = self.entry[slot(start)];
                return Block { start, instructions, entry, function, cycles, bound: 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests;
