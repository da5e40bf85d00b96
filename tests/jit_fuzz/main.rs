//! Random programs: translated and interpreted they have to do the same, in every frame, with every pass on or off.
//!
//! A failing program is printed with its seed and shrunk by proptest; what it found is kept in
//! `proptest-regressions/` and tried first from then on. ROLLCART_FUZZ_CASES sets how many programs there are.

mod program;

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use program::Program;
use rollcart::emulator::engine::{Draw, Engine, EngineOptions, JitOptions};
use rollcart::emulator::fast::Fast;
use rollcart::emulator::nes::Buttons;

/// Programs where nobody asks for more.
const CASES: u32 = 48;
const FRAMES: u8 = 5;

fn config() -> ProptestConfig {
    let asked = std::env::var("ROLLCART_FUZZ_CASES").ok();
    ProptestConfig {
        cases: asked.map_or(CASES, |text| text.parse().expect("ROLLCART_FUZZ_CASES is a number of programs")),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/jit_fuzz/regressions.txt"
        )))),
        ..ProptestConfig::default()
    }
}

fn options(on: bool, links: bool, dead_flags: bool, calls: bool, idle_skip: bool) -> EngineOptions {
    let jit = JitOptions {
        on,
        links,
        dead_flags,
        polls: links,
        registers: calls,
        returns: calls,
        layout_seed: u64::from(links),
    };
    EngineOptions { idle_skip, poll_skip: idle_skip, kept_deadlines: on, jit, ..EngineOptions::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_program_does_the_same_translated(
        program in program::programs(),
        links: bool,
        dead_flags: bool,
        calls: bool,
        idle_skip: bool,
        reload: bool,
    ) {
        let cart = Arc::new(program.cartridge());
        let make = |options| Fast::new(Arc::clone(&cart), &options).expect("NROM is supported");
        let translating = options(true, links, dead_flags, calls, idle_skip);
        let mut plain = make(options(false, links, dead_flags, calls, false));
        let mut translated = make(translating);
        for frame in 0..FRAMES {
            let pads = [Buttons(frame.wrapping_mul(37)), Buttons(frame)];
            plain.run_frame(pads, Draw::Skip);
            translated.run_frame(pads, Draw::Skip);
            let found = plain.export().first_difference(&translated.export());
            prop_assert_eq!(found, None, "frame {} (interpreted != translated)", frame);
            translated.settle();
            if reload {
                let state = translated.export();
                translated = make(translating);
                translated.import(&state).expect("the state is of this cartridge");
                translated.settle();
            }
        }
    }
}

#[test]
fn programs_run_translated_at_all() {
    // INX, INC $10, JMP back.
    let cart = Arc::new(Program::of(&[0xE8, 0xE6, 0x10, 0x4C, 0x00, 0x80]).cartridge());
    let mut console = Fast::new(cart, &options(true, true, true, true, true)).expect("NROM is supported");
    console.run_frame([Buttons::NONE; 2], Draw::Skip);
    console.settle();
    let before = console.translated().expect("the translator is on").interpreted;
    console.run_frame([Buttons::NONE; 2], Draw::Skip);
    let after = console.translated().expect("the translator is on");
    assert_eq!(after.instructions, 3);
    assert!(after.interpreted - before < 100, "{} instructions were interpreted", after.interpreted - before);
}
