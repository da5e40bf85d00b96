//! Games: the bundled one, homebrew ones, test ROMs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use rollcart::emulator::cart::Cartridge;
use rollcart::emulator::engine::Draw;
use rollcart::emulator::nes::{Buttons, ConsoleState};

use super::pair::Pair;
use super::{frames, translated, variants};

/// Frames between two waits for the translator: what was reached meanwhile is interpreted, as in a real run.
const SETTLE_EVERY: u64 = 50;
/// Frames between two pictures that are drawn and compared.
const DRAW_EVERY: u64 = 16;
const LEVELS: [u32; 4] = [1, 2, 3, 4];
const NAMES: [(&str, u8); 8] =
    [("A", 1), ("B", 2), ("SELECT", 4), ("START", 8), ("UP", 16), ("DOWN", 32), ("LEFT", 64), ("RIGHT", 128)];

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn bundled() -> Arc<Cartridge> {
    let rom = in_repository("python/rollcart/data/stable/CartRunner-Nes-v0/rom.nes");
    Arc::new(Cartridge::parse(&read(&rom)).expect("the bundled game is a cartridge"))
}

fn level(cart: &Cartridge, number: u32) -> ConsoleState {
    let path = format!("python/rollcart/data/stable/CartRunner-Nes-v0/Level{number}.state");
    cart.read_state(&read(&in_repository(&path))).expect("the level is a state of the bundled game")
}

/// The buttons of every frame of a movie; its format is in games/cart_runner/movies/README.md.
fn movie(number: u32) -> Vec<u8> {
    let text = read(&in_repository(&format!("games/cart_runner/movies/level{number}.txt")));
    let text = String::from_utf8(text).expect("a movie is text");
    let mask = |names: &str| {
        let bit = |name| NAMES.iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("no button {name}")).1;
        if names == "-" { 0 } else { names.split('+').map(bit).sum::<u8>() }
    };
    let runs = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    runs.flat_map(|(count, names)| vec![mask(names.trim()); count.parse().expect("a run has a length")]).collect()
}

/// Random buttons, held for some frames each (xorshift).
struct Player(u64);

impl Player {
    fn buttons(&mut self, frame: u64) -> [Buttons; 2] {
        if frame % 6 == 0 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
        }
        [Buttons(self.0 as u8 & 0xF7), Buttons((self.0 >> 8) as u8)]
    }
}

/// Plays on, comparing after every frame; with `reload`, through a new console each time.
fn play(pair: &mut Pair, pads: impl Iterator<Item = [Buttons; 2]>, reload: bool, what: &str) {
    for (frame, pads) in (0_u64..).zip(pads) {
        if frame % SETTLE_EVERY == 0 {
            pair.translated.settle();
        }
        let draw = if frame % DRAW_EVERY == 0 { Draw::Picture } else { Draw::Skip };
        pair.frame(pads, draw, what);
        if reload {
            pair.reload();
        }
    }
}

fn at_random(seed: u64) -> impl Iterator<Item = [Buttons; 2]> {
    let mut player = Player(seed | 1);
    (0..frames()).map(move |frame| player.buttons(frame))
}

#[test]
fn the_bundled_game_is_the_same_in_its_movies() {
    let cart = bundled();
    for number in LEVELS {
        let mut pair = Pair::new(&cart, translated());
        pair.load(&level(&cart, number));
        let pads = movie(number).into_iter().map(|buttons| [Buttons(buttons), Buttons::NONE]);
        play(&mut pair, pads, false, &format!("movie of level {number}"));
    }
}

#[test]
fn the_bundled_game_is_the_same_with_every_pass_off_and_random_buttons() {
    let cart = bundled();
    let runs: Vec<_> = variants().into_iter().flat_map(|variant| LEVELS.map(|number| (variant, number))).collect();
    runs.par_iter().for_each(|&((name, options), number)| {
        let mut pair = Pair::new(&cart, options);
        pair.load(&level(&cart, number));
        play(&mut pair, at_random(0x9E37 * u64::from(number)), false, &format!("level {number}, {name}"));
    });
}

#[test]
fn the_bundled_game_is_the_same_with_a_reload_after_every_frame() {
    let cart = bundled();
    for number in LEVELS {
        let mut pair = Pair::new(&cart, translated());
        pair.load(&level(&cart, number));
        play(&mut pair, at_random(77 + u64::from(number)), true, &format!("level {number}, reloaded"));
    }
}

#[test]
fn nearly_all_of_the_bundled_game_runs_translated() {
    let cart = bundled();
    let mut pair = Pair::new(&cart, translated());
    pair.load(&level(&cart, 1));
    play(&mut pair, at_random(5), false, "level 1");
    pair.translated.settle();
    let before = pair.translated.translated().expect("the translator is on").interpreted;
    let (began, count) = (pair.state().frame_count, 600);
    play(&mut pair, at_random(6).take(count), false, "level 1, settled");
    let frames = pair.state().frame_count - began;
    let interpreted = pair.translated.translated().expect("the translator is on").interpreted - before;
    let each = interpreted as f64 / frames as f64;
    println!("interpreted instructions a frame: {each:.1}");
    assert!(each < 45.0, "{each:.1} instructions of some 4,500 in a frame were interpreted");
}

/// Every ROM below a folder, by name.
fn roms_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            roms_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "nes") {
            found.push(path);
        }
    }
}

fn test_roms() -> Vec<PathBuf> {
    let folder = std::env::var_os("ROLLCART_TEST_ROMS").map_or_else(|| in_repository("../shared/roms"), PathBuf::from);
    let mut found = Vec::new();
    if folder.is_dir() {
        roms_below(&folder, &mut found);
    }
    if found.is_empty() {
        println!("skipped all test ROMs: none in {}; set ROLLCART_TEST_ROMS", folder.display());
        let required = std::env::var("ROLLCART_REQUIRE_TEST_ROMS").is_ok_and(|value| value == "1");
        assert!(!required, "ROLLCART_REQUIRE_TEST_ROMS=1 and there are no test ROMs in {}", folder.display());
    }
    found.sort();
    found
}

#[test]
fn test_roms_and_homebrew_games_are_the_same() {
    test_roms().par_iter().for_each(|path| {
        // Boards that are not supported are nobody's difference.
        let Ok(cart) = Cartridge::parse(&read(path)) else { return };
        let mut pair = Pair::new(&Arc::new(cart), translated());
        let seed = path.to_string_lossy().bytes().fold(1, |seed: u64, byte| seed * 31 % 0xFFFF_FFFB + u64::from(byte));
        // START now and then: games wait for it on their title.
        let pads = at_random(seed)
            .enumerate()
            .map(|(frame, [one, two])| [Buttons(one.0 | if frame % 64 < 4 { 8 } else { 0 }), two]);
        play(&mut pair, pads.take(frames() as usize / 4), false, &path.display().to_string());
    });
}
