//! What lanes share, and what happens where nothing can be translated.

use std::sync::Arc;

use super::code::host;
use super::shared::Shared;
use super::{Image, Jit, Passes};
use crate::emulator::cart::Cartridge;
use crate::emulator::engine::{Draw, Engine, EngineOptions};
use crate::emulator::fast::Fast;
use crate::emulator::nes::Buttons;

const ALL: Passes = Passes {
    idle_skip: true,
    poll_skip: true,
    links: true,
    dead_flags: true,
    polls: true,
    registers: true,
    returns: true,
    layout_seed: 0,
};
/// INX, INC $10, JMP back.
const COUNTING: [u8; 6] = [0xE8, 0xE6, 0x10, 0x4C, 0x00, 0x80];

fn cartridge(program: &[u8]) -> Arc<Cartridge> {
    let mut prg = program.to_vec();
    prg.resize(0x8000, 0xEA);
    prg[0x7FFC..0x7FFE].copy_from_slice(&[0x00, 0x80]);
    let mut file = b"NES\x1A\x02\x00\x01\x00\0\0\0\0\0\0\0\0".to_vec();
    file.extend(prg);
    Arc::new(Cartridge::parse(&file).expect("the file is in order"))
}

fn console(cart: &Arc<Cartridge>, jit: Option<Jit>) -> Fast {
    let mut console = Fast::new(Arc::clone(cart), &EngineOptions::default()).expect("NROM is supported");
    console.jit = jit;
    console
}

fn frames(console: &mut Fast, count: u32) {
    for _ in 0..count {
        console.run_frame([Buttons::NONE; 2], Draw::Skip);
    }
}

/// A console and one that interprets, after so many frames each.
fn equal_after(cart: &Arc<Cartridge>, translating: &mut Fast, count: u32) {
    let mut plain = console(cart, None);
    frames(&mut plain, count);
    frames(translating, count);
    assert_eq!(plain.export().first_difference(&translating.export()), None);
}

#[test]
fn a_host_that_refuses_runs_the_interpreter() {
    let cart = cartridge(&COUNTING);
    let shared = Shared::new(Image::new(&cart), ALL, || Err("memory may not be executable (made up by a test)".into()));
    let mut refused = console(&cart, Some(Jit::new(Arc::new(shared))));
    frames(&mut refused, 2);
    refused.settle();
    frames(&mut refused, 2);
    refused.settle();
    assert_eq!(refused.translated().map(|stats| (stats.generation, stats.instructions)), Some((0, 0)));
    refused.reset(crate::emulator::engine::ResetKind::Hard);
    equal_after(&cart, &mut refused, 5);
}

#[test]
fn settling_twice_translates_once() {
    let cart = cartridge(&COUNTING);
    let mut settled = console(&cart, Some(Jit::new(Arc::new(Shared::new(Image::new(&cart), ALL, host)))));
    frames(&mut settled, 1);
    settled.settle();
    settled.settle();
    frames(&mut settled, 3);
    settled.settle();
    let stats = settled.translated().expect("it translates");
    assert_eq!((stats.generation, stats.instructions), (1, 3));
}

#[test]
fn a_program_that_reaches_everything_loses_its_translation_and_begins_anew() {
    // 32 KiB of NOPs: more instructions than are kept.
    let cart = cartridge(&[]);
    // A thread of its own might come to the end of it before the frames do, and what they reach then is few enough.
    let shared = Shared::new(Image::new(&cart), ALL, host).settled_only();
    let mut hostile = console(&cart, Some(Jit::new(Arc::new(shared))));
    frames(&mut hostile, 3);
    hostile.settle();
    assert!(hostile.translated().is_some_and(|stats| stats.generation == 1 && stats.instructions == 0));
    hostile.reset(crate::emulator::engine::ResetKind::Hard);
    equal_after(&cart, &mut hostile, 3);
}

#[test]
fn code_comes_by_itself_where_it_is_missed() {
    let cart = cartridge(&COUNTING);
    let shared = Arc::new(Shared::new(Image::new(&cart), ALL, host));
    let mut lane = console(&cart, Some(Jit::new(Arc::clone(&shared))));
    // Some thousand instructions a frame: the threshold is passed, and a thread begins.
    frames(&mut lane, 5);
    // Waits for that thread and finds little or nothing left to do.
    lane.settle();
    assert!(lane.translated().is_some_and(|stats| stats.generation >= 1 && stats.instructions == 3));
}

#[test]
fn lanes_share_what_is_the_same_and_nothing_else() {
    let (one, other) = (cartridge(&COUNTING), cartridge(&[0xCA, 0x4C, 0x00, 0x80]));
    let first = Shared::open(Image::new(&one), ALL);
    assert!(Arc::ptr_eq(&first, &Shared::open(Image::new(&one), ALL)));
    assert!(!Arc::ptr_eq(&first, &Shared::open(Image::new(&other), ALL)));
    assert!(!Arc::ptr_eq(&first, &Shared::open(Image::new(&one), Passes { layout_seed: 1, ..ALL })));
}

#[test]
fn lanes_on_many_threads_do_what_one_does() {
    let cart = cartridge(&COUNTING);
    let shared = Arc::new(Shared::new(Image::new(&cart), ALL, host));
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let (cart, shared) = (&cart, &shared);
            scope.spawn(move || {
                let mut console = console(cart, Some(Jit::new(Arc::clone(shared))));
                equal_after(cart, &mut console, 20 + lane);
            });
        }
    });
}
