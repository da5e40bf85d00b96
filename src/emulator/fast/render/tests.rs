//! Lines that are drawn afterwards, from their notes, against lines that are drawn as the beam passes.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::Fast;
use super::super::probe::Silent;
use super::super::tests::{PRG_BYTES, busy_prg, cartridge};
use super::{BEFORE, Canvas, ColumnPart, Lines, NO_COLUMNS, PARTS, Strip, TileSums};
use crate::emulator::cart::Cartridge;
use crate::emulator::engine::{Draw, Engine, EngineOptions, FRAME_HEIGHT, FRAME_WIDTH, Frame};
use crate::emulator::nes::{Buttons, ConsoleState};

/// What a console's memories hold, and how it scrolls.
#[derive(Debug, Clone)]
struct Video {
    patterns: Vec<u8>,
    names: Vec<u8>,
    oam: Vec<u8>,
    palette: Vec<u8>,
    /// $2000 without its NMI bit, $2001, t and fine X.
    ctrl: u8,
    mask: u8,
    t: u16,
    fine_x: u8,
    vertical: bool,
}

fn videos() -> impl Strategy<Value = Video> {
    let bytes = |count| prop::collection::vec(any::<u8>(), count);
    // Crowds of sprites: eight a line are soon exceeded, and they hide each other.
    let sprite = (0_u8..=250, any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>()).prop_map(
        |(y, tile, attributes, x, near)| {
            if near { [y / 16, tile, attributes, x / 8] } else { [y, tile, attributes, x] }
        },
    );
    let sprites = prop::collection::vec(sprite, 64).prop_map(|sprites| sprites.concat());
    // Some sparse patterns, so that pixels are often transparent.
    let pattern = prop_oneof![any::<u8>(), Just(0_u8), Just(0x18)];
    let patterns = prop::collection::vec(pattern, 0x2000);
    let mask = prop_oneof![3 => any::<u8>().prop_map(|mask| mask | 0x18), 1 => any::<u8>()];
    ((patterns, bytes(2048), sprites, bytes(32)), (any::<u8>(), mask, 0_u16..0x8000, 0_u8..8, any::<bool>())).prop_map(
        |((patterns, names, oam, palette), (ctrl, mask, t, fine_x, vertical))| Video {
            patterns,
            names,
            oam,
            palette,
            ctrl: ctrl & 0x7F,
            mask,
            t,
            fine_x,
            vertical,
        },
    )
}

/// A write to a register of the PPU.
type Write = (u8, u8, u8);

/// A program that waits and writes, over and over: what comes between two writes is its third number of NOPs.
fn program(writes: &[Write]) -> Vec<u8> {
    let mut prg = Vec::new();
    for &(register, value, wait) in writes {
        prg.extend([0xA9, value, 0x8D, register, 0x20]);
        prg.extend(std::iter::repeat_n(0xEA, usize::from(wait)));
    }
    prg.extend([0x4C, 0x00, 0x80]);
    prg.truncate(PRG_BYTES);
    prg
}

fn cart_of(video: &Video, prg: Vec<u8>) -> Arc<Cartridge> {
    if video.vertical {
        // The same file with the other mirroring.
        let mut file = b"NES\x1A\x02\x00\x01\x00\0\0\0\0\0\0\0\0".to_vec();
        file[6] = 0x01;
        file.extend(cartridge(prg).prg());
        return Arc::new(Cartridge::parse(&file).expect("the file is in order"));
    }
    cartridge(prg)
}

/// A console with all tricks of drawing, or with none.
fn console(cart: &Arc<Cartridge>, quick: bool) -> Fast {
    let options = EngineOptions { line_log: quick, beam_jumps: quick, simd: quick, ..EngineOptions::default() };
    Fast::new(Arc::clone(cart), &options).expect("NROM is supported")
}

/// The console at a frame's start with these memories.
fn placed(mut state: ConsoleState, video: &Video) -> ConsoleState {
    state.ppu.warming_up = false;
    (state.ppu.ctrl, state.ppu.mask, state.ppu.fine_x) = (video.ctrl, video.mask, video.fine_x);
    (state.ppu.t, state.ppu.v) = (video.t, video.t);
    state.ppu.oam.copy_from_slice(&video.oam);
    state.ppu.palette.copy_from_slice(&video.palette);
    state.ppu.vram.copy_from_slice(&video.names);
    state.chr_ram.copy_from_slice(&video.patterns);
    state
}

/// The first line in which two pictures differ, with what it has there.
fn first_line(plain: &Frame, other: &Frame) -> Option<String> {
    (0..FRAME_HEIGHT).find_map(|line| {
        let column = (0..FRAME_WIDTH).find(|&x| plain.row(line)[x] != other.row(line)[x]);
        let emphasis = (plain.emphasis[line] != other.emphasis[line]).then_some(FRAME_WIDTH);
        let column = column.or(emphasis)?;
        Some(format!("line {line}, column {column}: {:?} != {:?}", plain.row(line), other.row(line)))
    })
}

fn shown(fast: &Fast, canvas: &Canvas) -> Frame {
    let mut frame = Frame::blank();
    fast.scene::<Silent>(canvas).each_strip(0, FRAME_HEIGHT, &mut Strip::default(), |first, strip| {
        for at in 0..strip.lines() {
            let line = first + at;
            frame.emphasis[line] = strip.emphasis();
            for (out, &pixel) in frame.pixels[line * FRAME_WIDTH..][..FRAME_WIDTH].iter_mut().zip(strip.row(at)) {
                *out = strip.colour(pixel);
            }
        }
    });
    frame
}

/// A shade for a colour, any.
fn shade(colour: u8, emphasis: u8) -> u16 {
    u16::from(colour * 3 + emphasis)
}

/// Lines and columns that a window shows.
const LINES: std::ops::Range<usize> = 8..232;
const COLUMNS: std::ops::Range<usize> = 8..248;

/// The sums of a picture's columns over each `height` lines, 3 at least, from its pixels.
fn sums_of_pixels(frame: &Frame, height: usize) -> Vec<Vec<u16>> {
    let lines: Vec<_> = LINES.collect();
    let sum = |lines: &[usize], x: usize| lines.iter().map(|&y| shade(frame.row(y)[x], frame.emphasis[y])).sum();
    lines.chunks(height).map(|lines| COLUMNS.map(|x| sum(lines, x)).collect()).collect()
}

/// The same from runs of its lines.
fn sums_of_runs(fast: &Fast, canvas: &Canvas, height: usize, kept: &mut TileSums) -> Vec<Vec<u16>> {
    let mut slots = [NO_COLUMNS.map(|_| 0xA5A5); PARTS];
    let mut rows = vec![Vec::new(); LINES.len().div_ceil(height)];
    let scene = fast.scene::<Silent>(canvas);
    scene.each_run((LINES.start, LINES.end), &mut Strip::default(), kept, |line, lines, kept| {
        let y = line - LINES.start;
        let count = match &lines {
            Lines::Noted(run) => run.lines(),
            Lines::Drawn(_) => 1,
        };
        let mut parts = Vec::<ColumnPart>::new();
        for at in 0..count {
            let fresh = (y + at) % height == 0;
            if let Some(part) = parts.last_mut().filter(|_| !fresh) {
                part.end = at + 1;
            } else {
                parts.push(ColumnPart { slot: (y + at) / height % PARTS, first: at, end: at + 1, fresh });
            }
        }
        match lines {
            Lines::Noted(run) => {
                let shades = run.colours().map(|colour| shade(colour, run.emphasis()) as u8);
                run.add(&shades, &parts, &mut slots, kept);
            }
            Lines::Drawn(strip) => {
                for x in COLUMNS {
                    let sum = if parts[0].fresh { 0 } else { slots[parts[0].slot][BEFORE + x] };
                    let shade = shade(strip.colour(strip.row(0)[x]), strip.emphasis());
                    slots[parts[0].slot][BEFORE + x] = sum + shade;
                }
            }
        }
        // What is not whole yet is written again.
        (y / height..=(y + count - 1) / height)
            .for_each(|row| rows[row] = slots[row % PARTS][BEFORE..][COLUMNS].to_vec());
    });
    rows
}

/// Runs frames in five ways: drawn by the beam, drawn from notes at their end, only shown from notes, all of them or from some line
/// on, and unseen.
fn compare(cart: &Arc<Cartridge>, video: &Video, count: u8) -> Result<(), TestCaseError> {
    let mut plain = console(cart, false);
    plain.run_frame([Buttons::NONE; 2], Draw::Skip);
    let state = placed(plain.export(), video);
    let [mut noted, mut lent, mut late, mut unseen] = std::array::from_fn(|_| console(cart, true));
    let (mut canvas, mut later, mut kept) = (None, None, TileSums::default());
    for fast in [&mut plain, &mut noted, &mut lent, &mut late, &mut unseen] {
        fast.import(&state).expect("the state came from this cartridge");
    }
    for frame in 0..count {
        let pads = [Buttons(frame), Buttons::NONE];
        plain.run_frame(pads, Draw::Picture);
        noted.run_frame(pads, Draw::Picture);
        lent.run_frame_on::<Silent>(pads, &mut canvas, 0);
        let first = usize::from(frame + 1) * 47 % FRAME_HEIGHT;
        late.run_frame_on::<Silent>(pads, &mut later, first);
        unseen.run_frame(pads, Draw::Skip);
        prop_assert_eq!(first_line(plain.frame(), noted.frame()), None, "drawn at the end, frame {}", frame);
        let shown = shown(&lent, canvas.as_deref().expect("the frame ran on it"));
        prop_assert_eq!(first_line(plain.frame(), &shown), None, "shown, frame {}", frame);
        for height in [3 + usize::from(frame % 3), 8] {
            let found = sums_of_runs(&lent, canvas.as_deref().expect("it is there"), height, &mut kept);
            let row =
                sums_of_pixels(plain.frame(), height).iter().zip(&found).position(|(plain, found)| plain != found);
            prop_assert_eq!(row, None, "rows of {} lines, frame {}", height, frame);
        }
        let partly = self::shown(&late, later.as_deref().expect("the frame ran on it"));
        let line = (first..FRAME_HEIGHT).find(|&line| plain.frame().row(line) != partly.row(line));
        prop_assert_eq!(line, None, "shown from line {} on, frame {}", first, frame);
        for fast in [&noted, &lent, &late, &unseen] {
            prop_assert_eq!(plain.export().first_difference(&fast.export()), None, "frame {}", frame);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_picture_without_writes_is_the_same_from_notes(video in videos()) {
        compare(&cart_of(&video, vec![0x4C, 0x00, 0x80]), &video, 2)?;
    }

    #[test]
    fn a_picture_is_the_same_from_notes_whatever_is_written_when(
        video in videos(),
        writes in prop::collection::vec((0_u8..8, any::<u8>(), any::<u8>()), 1..120),
    ) {
        compare(&cart_of(&video, program(&writes)), &video, 3)?;
    }

    #[test]
    fn scrolls_and_masks_alone_change_between_lines_and_within(
        video in videos(),
        writes in prop::collection::vec(
            (prop_oneof![Just(0_u8), Just(1), Just(5), Just(6)], any::<u8>(), 20_u8..255), 1..60),
    ) {
        let writes: Vec<Write> = writes
            .into_iter()
            .map(|(register, value, wait)| (register, if register == 1 { value | 0x18 } else { value & 0x7F }, wait))
            .collect();
        compare(&cart_of(&video, program(&writes)), &video, 3)?;
    }

    #[test]
    fn any_programs_picture_is_the_same_from_notes(video in videos(), prg in busy_prg()) {
        compare(&cart_of(&video, prg), &video, 4)?;
    }
}
