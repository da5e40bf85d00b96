//! Pictures without drawing them as the beam passes: each line's registers are written down, and whoever wants to see
//! lines draws them afterwards, up to eight at a time, from the memories as they are then.
//!
//! ```text
//! canvas  what a frame leaves behind: a note a line, and the pixels of lines that had to be drawn at once
//! strip   up to eight neighbouring lines of one tile row, drawn from their notes
//! columns lines of one tile row summed up by columns, without being drawn
//! joined  the same by outputs of the observation, for one width of it
//! simd    the strip's background with AVX2
//! ```
//! A line is drawn at once, by the beam, where a register changed within it; and all lines that were only written down are
//! drawn before a memory that they depend on changes. So notes always mean what the beam would have drawn, and nothing
//! has to be told apart later. A canvas is lent to a console for a frame: lanes of a thread share one.
//!
//! Leaves the meaning of a colour to `nes::palette`, and what becomes of the lines to `vec_env::observe`.

mod canvas;
mod columns;
mod joined;
mod simd;
mod strip;

use super::ppu::{PaletteRam, VideoMemory};
use super::probe::{Part, Probe};
pub use canvas::Canvas;
pub(super) use canvas::Note;
pub use columns::{BEFORE, Columns, NO_COLUMNS, PARTS, Part as ColumnPart, Run, TileSums};
pub use joined::{Joined, OUTPUTS, PERIOD, PERIOD_OUTPUTS, first_column};
pub use simd::Avx2;
use std::marker::PhantomData;
pub use strip::Strip;

/// The memories that a picture is made of.
#[derive(Clone, Copy)]
pub(super) struct Memories<'a> {
    pub video: &'a VideoMemory,
    pub oam: &'a [u8; 256],
    pub palette: &'a PaletteRam,
    /// Wide instructions to draw with.
    pub avx2: Option<Avx2>,
}

/// The picture of a console's last frame, to be drawn line by line; `P` is told of it.
pub struct Scene<'a, P> {
    canvas: &'a Canvas,
    memories: Memories<'a>,
    probe: PhantomData<P>,
}

impl<'a, P: Probe> Scene<'a, P> {
    pub(super) fn new(canvas: &'a Canvas, memories: Memories<'a>) -> Self {
        Self { canvas, memories, probe: PhantomData }
    }

    /// Draws the lines from `first` on and before `end`, and calls `each` with every strip and the number of its first line.
    ///
    /// # Panics
    /// If some of these lines are none of a picture's.
    pub fn each_strip(&self, first: usize, end: usize, strip: &mut Strip, mut each: impl FnMut(usize, &Strip)) {
        let mut line = first;
        while line < end {
            P::span(Part::Draw, || strip.draw(self.canvas, self.memories, line, end));
            each(line, strip);
            line += strip.lines();
        }
    }

    /// Calls `noted` with every run of the lines from `first` on and before `end`, and `drawn` with a strip of each line that
    /// is drawn, both with the number of the first line.
    ///
    /// # Panics
    /// If some of these lines are none of a picture's.
    pub fn each_run(
        &self,
        (first, end): (usize, usize),
        strip: &mut Strip,
        kept: &mut TileSums,
        mut each: impl FnMut(usize, Lines, &mut TileSums),
    ) {
        kept.begin(self.memories);
        let mut line = first;
        while line < end {
            line += if let Some(run) = Run::at(&self.canvas.lines[line..end], line, self.memories) {
                let lines = run.lines();
                each(line, Lines::Noted(&run), kept);
                lines
            } else {
                P::span(Part::Draw, || strip.draw(self.canvas, self.memories, line, line + 1));
                each(line, Lines::Drawn(strip), kept);
                1
            };
        }
    }
}

/// Lines of a scene: to be summed up, or one that is drawn.
pub enum Lines<'a> {
    Noted(&'a Run<'a>),
    Drawn(&'a Strip),
}

#[cfg(test)]
mod tests;
