//! One function a kind of recipe: runs the ROM and finds its verdict.

use std::fmt;
use std::path::Path;

use rollcart::emulator::nes::Buttons;

use crate::console::Console;
use crate::nestest;
use crate::recipes::{PassValue, Recipe};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail(String),
    Unsupported(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("passes"),
            Self::Fail(reason) | Self::Unsupported(reason) => f.write_str(reason),
        }
    }
}

pub(crate) fn run(folder: &Path, recipe: &Recipe) -> Verdict {
    let ram_fill = if recipe.kind == "nestest" { 0 } else { 0xFF };
    let mut console = match Console::start(&folder.join(&recipe.rom), ram_fill) {
        Ok(console) => console,
        Err(reason) => return Verdict::Unsupported(reason),
    };
    let result = match recipe.kind.as_str() {
        "status6000" => status6000(&mut console, recipe),
        "zp_result" => zp_result(&mut console, recipe),
        "screen_text" => screen_text(&mut console, recipe),
        "screen_crc" => screen_crc(&mut console, recipe),
        "nestest" => nestest::run(folder, &mut console),
        other => panic!("recipes.json has a kind that this test does not know: {other}"),
    };
    result.map_or_else(Verdict::Fail, |()| Verdict::Pass)
}

fn expected_byte(recipe: &Recipe) -> u8 {
    match recipe.pass_value {
        Some(PassValue::Byte(byte)) => byte,
        _ => panic!("{}: pass_value should be a byte", recipe.rom),
    }
}

/// blargg's protocol: $6000 is $80 while running, $81 when it wants the reset button, else the result; $6001-$6003 say
/// that the protocol is spoken, $6004 begins the text.
fn status6000(console: &mut Console, recipe: &Recipe) -> Result<(), String> {
    const WANTS_RESET: u8 = 0x81;
    const FRAMES_BEFORE_RESET: u32 = 12;
    let mut waited = 0;
    for _ in 0..recipe.frames {
        console.run(1, Buttons::NONE);
        if [0x6001, 0x6002, 0x6003].map(|addr| console.byte(addr)) != [0xDE, 0xB0, 0x61] {
            continue;
        }
        match console.byte(recipe.result_addr) {
            WANTS_RESET => {
                waited += 1;
                if waited % FRAMES_BEFORE_RESET == 0 {
                    console.press_reset();
                }
            }
            0x80.. => {}
            status if status == expected_byte(recipe) => return Ok(()),
            status => return Err(format!("status {status}: {}", console.text_at(recipe.result_addr + 4))),
        }
    }
    Err(format!("no verdict in {} frames: {}", recipe.frames, console.text_at(recipe.result_addr + 4)))
}

/// A byte in page zero, which also counts sub-tests while they run: it counts once the screen says so.
fn zp_result(console: &mut Console, recipe: &Recipe) -> Result<(), String> {
    let confirm = recipe.confirm_text.as_ref().expect("a zp_result recipe has confirm_text");
    for _ in 0..recipe.frames {
        console.run(1, Buttons::NONE);
        let passed = console.byte(recipe.result_addr) == expected_byte(recipe);
        if passed && console.shows_at(confirm.nametable, &confirm.ascii) {
            return Ok(());
        }
    }
    Err(format!("result {} after {} frames", console.byte(recipe.result_addr), recipe.frames))
}

/// The recipe's text may say in brackets which word must be absent: `Passed (and no "Error:")`.
fn screen_text(console: &mut Console, recipe: &Recipe) -> Result<(), String> {
    let text = recipe.pass_text.as_ref().expect("a screen_text recipe has pass_text");
    let (wanted, rest) = text.split_once(" (").unwrap_or((text, ""));
    let unwanted = rest.split('"').nth(1);
    for _ in 0..recipe.frames {
        console.run(1, Buttons::NONE);
        let screen = console.screen();
        if screen.contains(wanted) && !unwanted.is_some_and(|word| screen.contains(word)) {
            return Ok(());
        }
    }
    Err(format!("{wanted:?} is not on the screen after {} frames: {}", recipe.frames, words(console)))
}

fn screen_crc(console: &mut Console, recipe: &Recipe) -> Result<(), String> {
    let Some(PassValue::Words(wanted)) = &recipe.pass_value else {
        panic!("{}: pass_value should be a list of words", recipe.rom)
    };
    console.run(recipe.frames, Buttons::NONE);
    let screen = console.screen();
    let is_crc = |word: &&str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match screen.split_whitespace().rfind(is_crc) {
        Some(word) if wanted.iter().any(|one| one == word) => Ok(()),
        found => Err(format!("the last checksum on the screen is {found:?}, expected one of {wanted:?}")),
    }
}

fn words(console: &Console) -> String {
    console.screen().split_whitespace().collect::<Vec<_>>().join(" ")
}
