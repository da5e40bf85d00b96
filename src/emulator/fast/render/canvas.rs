//! What a frame leaves behind of its picture.

use super::{Memories, Strip};
use crate::emulator::engine::{FRAME_HEIGHT, FRAME_WIDTH, Frame};

/// The registers of a line that the beam has passed without a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Note {
    /// The address of the first tile, as in `v`.
    pub v: u16,
    pub fine_x: u8,
    pub ctrl: u8,
    pub mask: u8,
    /// $2000 when the line's sprites were fetched; `None` if there are none.
    pub sprites: Option<u8>,
}

impl Note {
    /// All of it in one number, the address lowest.
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        let sprites = self.sprites.map_or(0, |ctrl| 0x100 | u64::from(ctrl));
        let [fine_x, ctrl, mask] = [self.fine_x, self.ctrl, self.mask].map(u64::from);
        u64::from(self.v) | fine_x << 16 | ctrl << 24 | mask << 32 | sprites << 40
    }
}

/// Where a line's pixels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Line {
    /// In the canvas's frame.
    Drawn,
    /// Nowhere yet.
    Noted(Note),
}

/// A frame's lines: drawn, or as notes.
pub struct Canvas {
    pub(in super::super) frame: Frame,
    pub(super) lines: [Line; FRAME_HEIGHT],
    /// The first line that anybody looks at.
    pub(in super::super) seen_from: usize,
    /// Lines at the top that were neither drawn nor noted, since nobody looks at them.
    passed_over: usize,
    /// Some line before this one may be only noted.
    noted_before: usize,
    /// Lines that are only noted.
    noted: usize,
}

impl Default for Canvas {
    fn default() -> Self {
        Self {
            frame: Frame::blank(),
            lines: [Line::Drawn; FRAME_HEIGHT],
            seen_from: 0,
            passed_over: 0,
            noted_before: 0,
            noted: 0,
        }
    }
}

impl Canvas {
    /// A new frame begins, of which the lines from `first` on are wanted; `whole` says that all of them will pass. Else those that
    /// do not are blank.
    pub(in super::super) fn begin(&mut self, whole: bool, first: usize) {
        self.passed_over = first;
        self.lines = [Line::Drawn; FRAME_HEIGHT];
        self.noted_before = 0;
        self.noted = 0;
        if !whole {
            self.frame.pixels.fill(0);
            self.frame.emphasis = [0; FRAME_HEIGHT];
        }
    }

    pub(in super::super) fn note(&mut self, line: usize, note: Note) {
        self.lines[line] = Line::Noted(note);
        self.noted_before = line + 1;
        self.noted += 1;
    }

    /// Lines that had to be drawn while the frame ran, of 240.
    pub fn lines_drawn_at_once(&self) -> usize {
        FRAME_HEIGHT - self.passed_over - self.noted
    }

    /// The lines that are drawn.
    pub(in super::super) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The pixels of a line that is drawn at once.
    pub(in super::super) fn row(&mut self, line: usize) -> &mut [u8] {
        &mut self.frame.pixels[line * FRAME_WIDTH..][..FRAME_WIDTH]
    }

    /// Draws the lines that are only noted.
    pub(in super::super) fn draw_noted(&mut self, memories: Memories) {
        let end = std::mem::take(&mut self.noted_before);
        if end == 0 {
            // Asked at every write to a memory: most find nothing, and a strip is some KiB to make.
            return;
        }
        self.noted = 0;
        let mut strip = Strip::default();
        let mut line = 0;
        while line < end {
            if self.lines[line] == Line::Drawn {
                line += 1;
                continue;
            }
            strip.draw(self, memories, line, end);
            for at in 0..strip.lines() {
                let row = &mut self.frame.pixels[(line + at) * FRAME_WIDTH..][..FRAME_WIDTH];
                row.iter_mut().zip(strip.row(at)).for_each(|(out, &pixel)| *out = strip.colour(pixel));
                self.frame.emphasis[line + at] = strip.emphasis();
                self.lines[line + at] = Line::Drawn;
            }
            line += strip.lines();
        }
    }
}
