//! nestest: its CPU trace, line by line with cycles, and both pages of its menu.
//!
//! The engine contract runs frames, not instructions. A state that stands at the last dots of the picture makes a frame
//! of exactly one instruction, so any engine can be traced through the contract alone.

use std::path::Path;

use rollcart::emulator::engine::{Draw, Engine};
use rollcart::emulator::nes::Buttons;

use crate::console::Console;

const TRACE: &str = "nes-test-roms/other/nestest.log";
const LINES: usize = 8991;
/// Where the trace begins, instead of at the reset vector.
const AUTOMATION: u16 = 0xC000;

pub(crate) fn run(folder: &Path, console: &mut Console) -> Result<(), String> {
    trace(folder, console)?;
    console.0.reset(rollcart::emulator::engine::ResetKind::Hard);
    trace_text(folder, console)?;
    console.0.reset(rollcart::emulator::engine::ResetKind::Hard);
    menu(console)
}

/// The registers in one line of the trace: `C000  4C F5 C5  JMP $C5F5   A:00 X:00 Y:00 P:24 SP:FD PPU:  0, 21 CYC:7`.
fn registers(line: &str) -> Option<[u64; 7]> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest);
    let byte = |mark: &str| after(mark).and_then(|rest| hex(rest.get(..2)?));
    let cycles = after("CYC:")?.trim().parse().ok()?;
    Some([hex(line.get(..4)?)?, byte(" A:")?, byte(" X:")?, byte(" Y:")?, byte(" P:")?, byte(" SP:")?, cycles])
}

fn trace(folder: &Path, console: &mut Console) -> Result<(), String> {
    let log = std::fs::read_to_string(folder.join(TRACE)).expect("nestest.log can be read");
    let mut state = console.0.export();
    state.cpu.pc = AUTOMATION;
    let mut lines = 0;
    for (number, line) in (1..).zip(log.lines()) {
        let expected = registers(line).unwrap_or_else(|| panic!("line {number} of nestest.log: {line}"));
        let cpu = &state.cpu;
        let found = [cpu.pc.into(), cpu.a.into(), cpu.x.into(), cpu.y.into(), cpu.p.into(), cpu.s.into(), cpu.cycles];
        if found != expected {
            return Err(format!("trace line {number}: pc a x y p s cycles are {found:X?}, expected {line}"));
        }
        state.ppu.line = 239;
        state.ppu.dot = 339;
        console.0.import(&state).map_err(|error| error.to_string())?;
        console.0.run_frame([Buttons::NONE; 2], Draw::Skip);
        state = console.0.export();
        lines += 1;
    }
    if lines != LINES {
        return Err(format!("nestest.log has {lines} lines, expected {LINES}"));
    }
    match [state.ram[2], state.ram[3]] {
        [0, 0] => Ok(()),
        found => Err(format!("$0002 and $0003 are {found:02X?}, expected zeros")),
    }
}

/// The trace as text, to the letter. It ends before the first frame does.
fn trace_text(folder: &Path, console: &mut Console) -> Result<(), String> {
    let log = std::fs::read_to_string(folder.join(TRACE)).expect("nestest.log can be read");
    console.0.jump(AUTOMATION);
    let mut found = Vec::new();
    console.0.trace_frame([Buttons::NONE; 2], &mut |line| found.push(line));
    for (number, (expected, found)) in (1..).zip(log.lines().zip(&found)) {
        // The log has FF for every sound register; a peek gives the open bus.
        let register = expected.split_once("STA $40").and_then(|(_, rest)| rest.get(5..7));
        let found = register.map_or_else(|| found.clone(), |value| with_value(found, value));
        if found != expected.trim_end() {
            return Err(format!("trace line {number}: {found:?}, expected {expected:?}"));
        }
    }
    if found.len() < LINES {
        return Err(format!("the first frame has {} instructions, expected {LINES} at least", found.len()));
    }
    Ok(())
}

fn with_value(line: &str, value: &str) -> String {
    format!("{}= {value}{}", &line[..26], &line[30..])
}

fn menu(console: &mut Console) -> Result<(), String> {
    console.run(60, Buttons::NONE);
    for page in ["official opcodes", "unofficial opcodes"] {
        console.run(4, Buttons::START);
        console.run(400, Buttons::NONE);
        let screen = console.screen();
        let ran = screen.split("Run all tests").next().is_some_and(|before| before.trim_end().ends_with("OK"));
        if !ran || console.byte(0) != 0 {
            return Err(format!("{page}: result {:02X}, the screen says {}", console.byte(0), screen.trim()));
        }
        console.run(4, Buttons::SELECT);
        console.run(60, Buttons::NONE);
    }
    Ok(())
}
