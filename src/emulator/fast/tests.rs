//! The fast engine against facts, against itself with switches off, and against bytes that no programmer wrote.

use std::sync::Arc;

use proptest::prelude::*;

use super::Fast;
use crate::emulator::cart::Cartridge;
use crate::emulator::engine::{Draw, Engine, EngineError, EngineOptions, ResetKind};
use crate::emulator::nes::opcodes::{Mnemonic, Mode, OPCODES};
use crate::emulator::nes::{Buttons, codec};

pub(super) const PRG_BYTES: usize = 0x8000;
/// Where programs start.
const START: u16 = 0x8000;

/// A cartridge with CHR-RAM and this PRG-ROM, its reset vector at `START`.
pub(super) fn cartridge(mut prg: Vec<u8>) -> Arc<Cartridge> {
    prg.resize(PRG_BYTES, 0xEA);
    prg[PRG_BYTES - 4..PRG_BYTES - 2].copy_from_slice(&START.to_le_bytes());
    let mut file = b"NES\x1A\x02\x00\x01\x00\0\0\0\0\0\0\0\0".to_vec();
    file.extend(prg);
    Arc::new(Cartridge::parse(&file).expect("the file is in order"))
}

fn console(program: &[u8]) -> Fast {
    Fast::new(cartridge(program.to_vec()), &EngineOptions::default()).expect("NROM is supported")
}

fn frames(fast: &mut Fast, count: u32, draw: Draw) {
    for frame in 0..count {
        fast.run_frame([Buttons(frame as u8), Buttons::NONE], draw);
    }
}

#[test]
fn every_opcode_takes_the_cycles_of_the_data_sheet() {
    for (code, row) in (0..=255).zip(OPCODES) {
        // Operands in page zero, indices 0: no page is crossed.
        let mut fast = console(&[code, 0x10, 0x00]);
        let mut state = fast.export();
        (state.cpu.x, state.cpu.y) = (0, 0);
        // No branch is taken, none of N V Z C alike.
        state.cpu.p = match row.mnemonic {
            Mnemonic::Bpl | Mnemonic::Bvc | Mnemonic::Bcc | Mnemonic::Bne => 0xE7,
            _ => 0x24,
        };
        state.ram[0x10..0x12].copy_from_slice(&[0x00, 0x03]);
        fast.import(&state).expect("the state came from here");
        let before = fast.cpu();
        fast.step_instruction();
        let cycles = fast.cpu().cycles - before.cycles;
        assert_eq!(cycles, u64::from(row.cycles), "opcode ${code:02X} {row:?}");
        let flows = matches!(
            row.mnemonic,
            Mnemonic::Brk | Mnemonic::Jsr | Mnemonic::Jmp | Mnemonic::Rts | Mnemonic::Rti | Mnemonic::Jam
        );
        if !flows {
            assert_eq!(fast.cpu().pc - before.pc, u16::from(row.mode.bytes()), "opcode ${code:02X} {row:?}");
        }
    }
}

#[test]
fn an_index_that_crosses_a_page_costs_reads_one_cycle() {
    for (code, row) in (0..=255).zip(OPCODES) {
        if !matches!(row.mode, Mode::Abx | Mode::Aby | Mode::Izy) {
            continue;
        }
        let mut fast = console(&[code, 0xFF, 0x00]);
        let mut state = fast.export();
        (state.cpu.x, state.cpu.y) = (1, 1);
        // (FF),Y: the pointer is $03FF.
        (state.ram[0xFF], state.ram[0x00]) = (0xFF, 0x03);
        fast.import(&state).expect("the state came from here");
        let before = fast.cpu().cycles;
        fast.step_instruction();
        let cycles = fast.cpu().cycles - before;
        assert_eq!(cycles, u64::from(row.cycles + row.page_cycles), "opcode ${code:02X} {row:?}");
    }
}

#[test]
fn a_taken_branch_costs_one_cycle_and_one_more_across_a_page() {
    let costs = |distance: u8| {
        // BNE with Z clear.
        let mut fast = console(&[0xD0, distance]);
        let before = fast.cpu().cycles;
        fast.step_instruction();
        (fast.cpu().cycles - before, fast.cpu().pc)
    };
    assert_eq!(costs(0x10), (3, 0x8012));
    assert_eq!(costs(0xF0), (4, 0x7FF2));
}

#[test]
fn power_on_is_as_the_design_says() {
    let mut fast = console(&[0x4C, 0x00, 0x80]);
    let cpu = fast.cpu();
    assert_eq!((cpu.pc, cpu.a, cpu.x, cpu.y, cpu.s, cpu.p, cpu.cycles), (START, 0, 0, 0, 0xFD, 0x24, 7));
    assert!(fast.ram().iter().all(|&byte| byte == 0xFF));
    assert!(fast.work_ram().expect("old headers mean work RAM").iter().all(|&byte| byte == 0xFF));
    assert_eq!((fast.export().ppu.line, fast.export().ppu.dot), (0, 21));
    frames(&mut fast, 3, Draw::Picture);
    assert_eq!(fast.frame_count(), 3);
    let after = fast.export();
    assert_eq!(after.ppu.line, 240);
    assert!(after.ppu.dot < 3 * 8, "the frame ends at the first boundary in line 240: {}", after.ppu.dot);
    fast.reset(ResetKind::Hard);
    let fresh = console(&[0x4C, 0x00, 0x80]);
    assert_eq!(fast.export().first_difference(&fresh.export()), None);
    assert_eq!(fast.frame(), fresh.frame());
}

#[test]
fn a_jammed_console_goes_on_showing_frames_until_reset() {
    let mut fast = console(&[0x02]);
    frames(&mut fast, 2, Draw::Picture);
    let jammed = fast.export();
    assert!(jammed.cpu.jammed);
    assert_eq!((jammed.ppu.line, fast.frame_count()), (240, 2));
    fast.reset(ResetKind::Soft);
    assert!(!fast.export().cpu.jammed);
    assert_eq!(fast.cpu().pc, START);
}

#[test]
fn pokes_reach_ram_and_work_ram_only() {
    let mut fast = console(&[]);
    fast.poke(0x0012, 7).unwrap();
    fast.poke(0x7FFF, 8).unwrap();
    assert_eq!((fast.peek(0x0812), fast.peek(0x7FFF), fast.peek(0x8000)), (7, 8, 0xEA));
    for addr in [0x0800, 0x2000, 0x4014, 0x5FFF, 0x8000] {
        assert_eq!(fast.poke(addr, 1), Err(EngineError::NotWritable { addr }));
    }
}

#[test]
fn a_state_of_other_sizes_is_refused_and_changes_nothing() {
    let mut fast = console(&[]);
    let before = fast.export();
    let mut state = before.clone();
    state.ppu.vram.push(0);
    assert!(matches!(fast.import(&state), Err(EngineError::BadState { field: "the length of ppu.vram", .. })));
    state = before.clone();
    state.ppu.line = 262;
    assert!(matches!(fast.import(&state), Err(EngineError::BadState { field: "ppu.line", .. })));
    assert_eq!(fast.export().first_difference(&before), None);
}

#[test]
fn a_state_survives_its_bytes() {
    let mut fast = console(&[0xE6, 0x10, 0x8D, 0x00, 0x60, 0x4C, 0x00, 0x80]);
    frames(&mut fast, 5, Draw::Skip);
    let digest = *cartridge(vec![]).payload_digest();
    let bytes = codec::encode(&fast.export(), &digest);
    assert_eq!(codec::decode(&bytes, &digest), Ok(fast.export()));
    for cut in [3, 5, 20, 400, bytes.len() - 1] {
        assert!(codec::decode(&bytes[..cut], &digest).is_err(), "cut at {cut}");
    }
    assert!(codec::decode(&bytes, &[0; 20]).is_err());
    let long = [&bytes[..], &[0]].concat();
    assert_eq!(codec::decode(&long, &digest), Err(codec::CodecError::TooLong { extra: 1 }));
}

/// A program whose NMI counts in $10 and which waits for it in this loop, counting its rounds in $20.
fn waiting_game(wait: &[u8]) -> Arc<Cartridge> {
    // Two vblanks: the PPU is deaf until the end of the first.
    let mut program = [0xAD, 0x02, 0x20, 0x10, 0xFB].repeat(2);
    program.extend([0xA9, 0x80, 0x8D, 0x00, 0x20]);
    let [low, high] = (START + program.len() as u16).to_le_bytes();
    program.extend([0xE6, 0x20, 0xA5, 0x10]);
    program.extend(wait);
    program.extend([0x4C, low, high]);
    program.resize(0x100, 0xEA);
    // NMI: INC $10, LDX $10, DEX, BNE back, RTI: of another length each time, so that it comes at any point of the loop.
    program.extend([0xE6, 0x10, 0xA6, 0x10, 0xCA, 0xD0, 0xFD, 0x40]);
    program.resize(PRG_BYTES, 0xEA);
    program[PRG_BYTES - 6..PRG_BYTES - 4].copy_from_slice(&(START + 0x100).to_le_bytes());
    cartridge(program)
}

#[test]
fn waiting_loops_of_every_kind_are_passed_over_in_phase() {
    let loops: [&[u8]; 10] = [
        // CMP $10, BEQ back
        &[0xC5, 0x10, 0xF0, 0xFC],
        // LDA $10, CMP #0, BEQ back, while the counter is 0
        &[0xA5, 0x10, 0xC9, 0x00, 0xF0, 0xFA],
        // LDX $0010, CPX $0010, BEQ back, which never ends but between the two
        &[0xAE, 0x10, 0x00, 0xEC, 0x10, 0x00, 0xF0, 0xF8],
        // LDA $10, AND #1, BEQ back
        &[0xA5, 0x10, 0x29, 0x01, 0xF0, 0xFA],
        // LDA $2002, BPL back; BMI back; AND #$E0, BEQ back; BIT $3FFA, BVC back
        &[0xAD, 0x02, 0x20, 0x30, 0xFB],
        &[0xAD, 0x02, 0x20, 0x29, 0xE0, 0xF0, 0xF9],
        &[0x2C, 0xFA, 0x3F, 0x50, 0xFB],
        // LDX $2002, LDA $2002, BPL back: the second read sees what the first left
        &[0xAE, 0x02, 0x20, 0xAD, 0x02, 0x20, 0x10, 0xF8],
        &[0xAD, 0x02, 0x20, 0x10, 0xFB],
        // BIT $2002, CMP $10, BEQ back
        &[0x2C, 0x02, 0x20, 0xC5, 0x10, 0xF0, 0xF9],
    ];
    for wait in loops {
        let cart = waiting_game(wait);
        let (mut plain, mut quick) = (engine(&cart, false), engine(&cart, true));
        for frame in 0..300 {
            frames(&mut plain, 1, Draw::Skip);
            frames(&mut quick, 1, Draw::Skip);
            let found = plain.export().first_difference(&quick.export());
            assert_eq!(found, None, "loop {wait:02X?}, frame {frame}");
        }
        assert_ne!(plain.ram()[0x10], EngineOptions::default().ram_fill, "loop {wait:02X?}: NMIs came");
    }
}

/// PRG-ROM that does something: random bytes, but opcodes that jam are rare and operands often name registers.
pub(super) fn busy_prg() -> impl Strategy<Value = Vec<u8>> {
    let register = prop_oneof![0x2000_u16..0x2008, 0x4000_u16..0x4018, 0x0000_u16..0x0300];
    let unit = prop_oneof![
        4 => (any::<u8>(), register).prop_map(|(code, at)| {
            let absolute = [0xAD, 0x8D, 0xAE, 0x8E, 0xEE, 0x2C, 0xBD, 0x9D, 0x0F, 0xCE];
            let [low, high] = at.to_le_bytes();
            vec![absolute[usize::from(code) % absolute.len()], low, high]
        }),
        3 => any::<u8>().prop_map(|value| vec![0xA9, value]),
        4 => any::<u8>().prop_map(|code| vec![if code & 0x1F == 0x12 || code & 0x9F == 2 { 0xEA } else { code }]),
        1 => any::<i8>().prop_map(|distance| vec![0xD0, distance as u8]),
    ];
    prop::collection::vec(unit, 100..3000).prop_map(|units| {
        let mut prg: Vec<u8> = units.concat();
        prg.truncate(PRG_BYTES - 6);
        let length = prg.len().max(1);
        let filled: Vec<u8> = prg.iter().copied().cycle().take(PRG_BYTES).collect();
        let mut prg = filled;
        // NMI and IRQ land somewhere in the program.
        for vector in [PRG_BYTES - 6, PRG_BYTES - 2] {
            let at = START + (vector * 7919 % length) as u16;
            prg[vector..vector + 2].copy_from_slice(&at.to_le_bytes());
        }
        prg
    })
}

fn engine(cart: &Arc<Cartridge>, skip: bool) -> Fast {
    let options = EngineOptions { idle_skip: skip, poll_skip: skip, ..EngineOptions::default() };
    Fast::new(Arc::clone(cart), &options).expect("NROM is supported")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_program_runs_the_same_with_and_without_drawing_idle_skip_and_reloading(prg in busy_prg()) {
        let cart = cartridge(prg);
        let mut plain = engine(&cart, false);
        let mut quick = engine(&cart, true);
        let mut reloaded = engine(&cart, true);
        let mut copied = engine(&cart, true);
        let mut kept = copied.saved();
        for frame in 0..6 {
            let pads = [Buttons(frame * 37), Buttons(frame)];
            plain.run_frame(pads, Draw::Picture);
            quick.run_frame(pads, Draw::Skip);
            reloaded.run_frame(pads, Draw::Picture);
            prop_assert_eq!(plain.export().first_difference(&quick.export()), None, "drawing or skipping, frame {}", frame);
            prop_assert_eq!(plain.export().first_difference(&reloaded.export()), None, "reloaded, frame {}", frame);
            copied.run_frame(pads, Draw::Skip);
            prop_assert_eq!(plain.export().first_difference(&copied.export()), None, "copied, frame {}", frame);
            copied.save_over(&mut kept);
            prop_assert_eq!(plain.export().first_difference(&kept.export()), None, "what was kept, frame {}", frame);
            copied = engine(&cart, true);
            copied.load(&kept);
            prop_assert!(plain.frame() == reloaded.frame(), "the picture of frame {}", frame);
            let saved = reloaded.export();
            reloaded = engine(&cart, true);
            reloaded.import(&saved).expect("the state came from this cartridge");
            prop_assert_eq!(saved.first_difference(&reloaded.export()), None, "what was loaded, frame {}", frame);
        }
    }

    #[test]
    fn any_bytes_run_without_a_panic(prg in prop::collection::vec(any::<u8>(), PRG_BYTES), soft: bool) {
        let mut fast = engine(&cartridge(prg), true);
        frames(&mut fast, 3, Draw::Picture);
        if soft {
            fast.reset(ResetKind::Soft);
            frames(&mut fast, 2, Draw::Skip);
        }
        prop_assert_eq!(fast.export().ppu.line, 240);
    }
}
