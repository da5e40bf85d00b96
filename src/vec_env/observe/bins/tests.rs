//! Observations summed up from lines, against planes that are made and resized.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Algorithm, Crop, ImageSpec, Layout, Observer, Scratch};
use super::short_reciprocal;
use crate::emulator::cart::Cartridge;
use crate::emulator::engine::{Draw, Engine, EngineOptions};
use crate::emulator::fast::probe::Silent;
use crate::emulator::nes::Buttons;
use crate::vec_env::Machine;

/// Patterns of which some are empty: three of four, or one of 256, as the first byte says.
fn patterns(memories: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = memories.iter().copied().cycle().take(0x2000).collect();
    let few = bytes[0] & 1 == 0;
    let empty = |tile: &[u8]| if few { tile[0] == 0 } else { tile[0] & 3 != 0 };
    bytes.chunks_exact_mut(16).filter(|tile| empty(tile)).for_each(|tile| tile.fill(0));
    bytes
}

/// A console whose program writes these values to registers of the PPU over and over, with random memories; patterns may be
/// in ROM.
fn console(writes: &[(u8, u8, u8)], memories: &[u8], rom: bool, mask: u8, scroll: u16, fine_x: u8) -> Machine {
    let mut prg: Vec<u8> = writes
        .iter()
        .flat_map(|&(register, value, wait)| {
            [0xA9, value, 0x8D, register, 0x20].into_iter().chain(std::iter::repeat_n(0xEA, usize::from(wait)))
        })
        .collect();
    prg.extend([0x4C, 0x00, 0x80]);
    prg.resize(0x8000, 0xEA);
    prg[0x7FFC..0x7FFE].copy_from_slice(&[0x00, 0x80]);
    let mut file = b"NES\x1A\x02\x00\x01\x00\0\0\0\0\0\0\0\0".to_vec();
    file.extend(prg);
    if rom {
        file[5] = 1;
        file.extend(patterns(memories));
    }
    let cart = Arc::new(Cartridge::parse(&file).expect("the file is in order"));
    let mut machine = Machine::new(cart, &EngineOptions::default()).expect("NROM is supported");
    machine.run_frame([Buttons::NONE; 2], Draw::Skip);
    let mut state = machine.export();
    let mut bytes = memories.iter().copied().cycle();
    let mut fill = |memory: &mut [u8]| memory.iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = from);
    fill(&mut state.ppu.oam);
    fill(&mut state.ppu.palette);
    fill(&mut state.ppu.vram);
    state.chr_ram.iter_mut().zip(patterns(memories)).for_each(|(to, from)| *to = from);
    state.ppu.warming_up = false;
    (state.ppu.mask, state.ppu.t, state.ppu.v, state.ppu.fine_x) = (mask, scroll, scroll, fine_x);
    machine.import(&state).expect("the state came from this cartridge");
    machine
}

fn specs() -> impl Strategy<Value = ImageSpec> {
    let size = prop_oneof![
        3 => Just(Some((84, 84))),
        1 => (1_usize..=224, Just(84_usize)).prop_map(Some),
        2 => (1_usize..=224, 1_usize..=240).prop_map(Some),
        1 => (1_usize..=300, 1_usize..=300).prop_map(Some),
        1 => Just(None),
    ];
    let crop = prop_oneof![
        Just([32, 0, 0, 0]),
        Just([0, 0, 0, 0]),
        (0_usize..100, 0_usize..100, 0_usize..100, 0_usize..100)
            .prop_map(|(top, right, bottom, left)| [top, right, bottom, left]),
    ];
    (size, crop, any::<bool>()).prop_map(|(size, [top, right, bottom, left], cut)| ImageSpec {
        grayscale: true,
        crop: Crop { top, right, bottom, left },
        cut,
        size,
        algorithm: Algorithm::Area,
        layout: Layout::Chw,
        frame_stack: 1,
        maxpool: false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_observation_is_the_same_with_each_switch_off(
        spec in specs(),
        writes in prop::collection::vec((0_u8..8, any::<u8>(), any::<u8>()), 0..40),
        memories in prop::collection::vec(any::<u8>(), 8191),
        mask in prop_oneof![3 => any::<u8>().prop_map(|mask| mask | 0x18), 1 => any::<u8>()],
        scroll in 0_u16..0x8000,
        fine_x in 0_u8..8,
        rom: bool,
    ) {
        // One with all lines, one without those that the window does not show.
        let mut consoles = [0, Observer::new(spec, EngineOptions::default()).first_line()].map(|seen_from| {
            let mut machine = console(&writes, &memories, rom, mask, scroll, fine_x);
            let mut scratch = Scratch::default();
            machine.run_frame_on::<Silent>([Buttons::NONE; 2], &mut scratch.canvas, seen_from);
            (machine, scratch)
        });
        let mut observe = |direct_bins: bool, tile_sums: bool, joined_sums: bool, simd: bool| {
            let (machine, scratch) = &mut consoles[usize::from(direct_bins)];
            let switches = EngineOptions { direct_bins, tile_sums, joined_sums, simd, ..EngineOptions::default() };
            let observer = Observer::new(spec, switches);
            // Not zeros: black has to be written.
            let mut out = vec![0xA5; observer.frame_bytes()];
            observer.draw::<Silent>(machine, false, scratch, &mut out);
            out
        };
        let plain = observe(false, false, false, false);
        // The last ones find the sums of tiles that those before left.
        for (tiles, joined, simd) in [
            (false, false, false),
            (false, false, true),
            (true, false, false),
            (true, false, true),
            (true, true, false),
            (true, true, true),
            (true, true, true),
        ] {
            let found = observe(true, tiles, joined, simd);
            let differs = plain.iter().zip(&found).position(|(plain, found)| plain != found);
            let on = (tiles, joined, simd);
            prop_assert_eq!(differs, None, "byte {:?}, tiles, joined, simd {:?} of {:?}", differs, on, spec);
        }
    }
}

#[test]
fn short_reciprocals_divide_every_sum_exactly() {
    for count in (1..=8).flat_map(|lines| [2 * lines, 3 * lines]) {
        for sum in 0..=255 * count as u32 {
            let product = sum * u32::from(short_reciprocal(count));
            assert_eq!(product >> 16, sum / count as u32, "{sum} / {count}");
        }
    }
}
