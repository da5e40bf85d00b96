//! The translator against the interpreter: after every frame the whole state of two consoles, and in some passes
//! the picture, has to be the same. A difference names the game, the frame and the first field.
//!
//! The bundled game is played from each of its levels by its movies and by random buttons; test ROMs and homebrew
//! games lie in ROLLCART_TEST_ROMS (else ../shared/roms), and their absence is printed, or a failure under
//! ROLLCART_REQUIRE_TEST_ROMS=1. ROLLCART_SOAK_FRAMES sets how many frames each pass plays (`make soak`).

mod games;
mod landing;
mod pair;

use rollcart::emulator::engine::{EngineOptions, JitOptions};

/// Frames of a pass where nobody asks for more.
const FRAMES: u64 = 1250;

fn frames() -> u64 {
    let asked = std::env::var("ROLLCART_SOAK_FRAMES").ok();
    asked.map_or(FRAMES, |text| text.parse().expect("ROLLCART_SOAK_FRAMES is a number of frames"))
}

/// Everything translated as it is by default.
fn translated() -> EngineOptions {
    EngineOptions { jit: JitOptions { on: true, ..JitOptions::default() }, ..EngineOptions::default() }
}

/// Each pass of the translator without the others' help, and the code laid out otherwise.
fn variants() -> [(&'static str, EngineOptions); 11] {
    let all = translated();
    let with = |change: fn(&mut EngineOptions)| {
        let mut options = all;
        change(&mut options);
        options
    };
    [
        ("all passes", all),
        ("no links", with(|options| options.jit.links = false)),
        ("no polls", with(|options| options.jit.polls = false)),
        ("no kept deadlines", with(|options| options.kept_deadlines = false)),
        ("no registers", with(|options| options.jit.registers = false)),
        ("no returns", with(|options| options.jit.returns = false)),
        ("no dead flags", with(|options| options.jit.dead_flags = false)),
        ("no idle skip", with(|options| options.idle_skip = false)),
        ("no poll skip", with(|options| options.poll_skip = false)),
        (
            "no pass at all",
            with(|options| {
                (options.jit.links, options.jit.dead_flags) = (false, false);
                (options.jit.registers, options.jit.returns) = (false, false);
                (options.idle_skip, options.poll_skip, options.kept_deadlines) = (false, false, false);
            }),
        ),
        ("another layout", with(|options| options.jit.layout_seed = 7)),
    ]
}
