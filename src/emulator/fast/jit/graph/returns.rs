//! Where subroutines return to: behind the calls from which the way leads to their RTS.
//!
//! It is a guess. Code may take its return address off the stack or put another one there, so whoever uses it compares
//! first.

use std::collections::BTreeMap;

use super::super::decode::{Flow, Instruction};
use super::slot;
use crate::emulator::nes::opcodes::Mnemonic;

/// An RTS with more places to go to is not foretold.
const MOST_PLACES: usize = 3;
/// Instructions of a subroutine that are looked at.
const MOST_INSTRUCTIONS: usize = 1024;

/// By the address of an RTS: the addresses behind the calls that probably led to it. `instructions` are those from $8000 on.
pub(super) fn foretold(instructions: &[Option<Instruction>]) -> BTreeMap<u16, Vec<u16>> {
    let mut calls = BTreeMap::<u16, Vec<u16>>::new();
    for instruction in instructions.iter().flatten() {
        if let Flow::Call(to) = instruction.flow {
            calls.entry(to).or_default().push(instruction.end);
        }
    }
    let mut returns = BTreeMap::<u16, Vec<u16>>::new();
    for (to, places) in calls {
        for at in ends(instructions, to) {
            returns.entry(at).or_default().extend(&places);
        }
    }
    returns.retain(|_, places| {
        places.sort_unstable();
        places.dedup();
        places.len() <= MOST_PLACES
    });
    returns
}

/// Every RTS that the way from `start` leads to, calls passed over.
fn ends(instructions: &[Option<Instruction>], start: u16) -> Vec<u16> {
    let mut seen = std::collections::BTreeSet::new();
    let (mut open, mut found) = (vec![start], Vec::new());
    while let Some(at) = open.pop() {
        if at < 0x8000 || seen.len() == MOST_INSTRUCTIONS || !seen.insert(at) {
            continue;
        }
        let Some(instruction) = instructions[slot(at)] else { continue };
        match instruction.flow {
            Flow::Next | Flow::Bus | Flow::Left | Flow::Call(_) => open.push(instruction.end),
            Flow::Branch(to) => open.extend([instruction.end, to]),
            Flow::Jump(to) => open.push(to),
            Flow::Computed if instruction.row.mnemonic == Mnemonic::Rts => found.push(at),
            Flow::Computed => {}
        }
    }
    found
}
