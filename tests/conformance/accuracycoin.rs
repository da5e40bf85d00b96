//! AccuracyCoin: 141 tests in one ROM, whose result bytes `accuracycoin_map.json` names.

use std::path::Path;

use rollcart::emulator::nes::Buttons;
use serde::Deserialize;

use crate::console::Console;
use crate::recipes::Recipe;
use crate::verdicts::Verdict;

/// Between the ROM's name and the test's.
pub(crate) const MARK: &str = ".nes: ";

/// $35: 1 while all tests run. $38: how many passed, once the table is drawn.
const RUNNING: u16 = 0x0035;

#[derive(Deserialize)]
struct Test {
    page: u8,
    name: String,
    addr: String,
    /// Its place in the tally; a few entries only draw something.
    tally: Option<u16>,
}

#[derive(Deserialize)]
struct Map {
    tests: Vec<Test>,
}

pub(crate) fn run(folder: &Path, recipe: &Recipe) -> Vec<(String, Verdict)> {
    let map = folder.join(recipe.map.as_ref().expect("an accuracycoin recipe has a map"));
    let map: Map = serde_json::from_str(&std::fs::read_to_string(map).expect("the map can be read"))
        .expect("the map has the form that this test knows");
    let mut console = Console::start(&folder.join(&recipe.rom), 0xFF).expect("AccuracyCoin is an NROM game");
    let finished = run_all_tests(&mut console, recipe.frames);
    if !finished {
        println!("AccuracyCoin did not finish in {} frames", recipe.frames);
    }
    (map.tests.iter().filter(|test| test.tally.is_some()))
        .map(|test| (format!("{}: page {} {}", recipe.rom, test.page, test.name), verdict(&console, test)))
        .collect()
}

/// Whether the run came to its end.
fn run_all_tests(console: &mut Console, frames: u32) -> bool {
    console.run(120, Buttons::NONE);
    console.run(4, Buttons::START);
    let mut started = false;
    for _ in 0..frames {
        console.run(1, Buttons::NONE);
        let running = console.byte(RUNNING) == 1;
        if started && !running {
            console.run(60, Buttons::NONE);
            return true;
        }
        started |= running;
    }
    false
}

/// A result byte is code * 4 + 1 for a pass, + 2 for a failure; 0 not run, 255 skipped.
fn verdict(console: &Console, test: &Test) -> Verdict {
    let addr = u16::from_str_radix(test.addr.trim_start_matches("0x"), 16).expect("an address in the map");
    match console.byte(addr) {
        0 => Verdict::Fail("not run".into()),
        0xFF => Verdict::Fail("skipped".into()),
        byte if byte & 3 == 1 => Verdict::Pass,
        byte => Verdict::Fail(format!("error {}", byte >> 2)),
    }
}
