//! The part of a frame that is observed, as planes of grey or RGB.
//!
//! ```text
//! frame   256 x 240 palette indices, emphasis bits a line
//! window  rows 8-231, columns 8-247: what Stable Retro shows, 224 rows of 240 columns
//! crop    top, right, bottom, left pixels of the window: black, or cut off
//! grey    (77 R + 150 G + 29 B + 128) >> 8
//! ```

use crate::emulator::engine::Frame;
use crate::emulator::nes::palette;

pub const WINDOW_HEIGHT: usize = 224;
pub const WINDOW_WIDTH: usize = 240;
const TOP: usize = 8;
const LEFT: usize = 8;

/// Pixels of the window that are not observed, from each edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    pub top: usize,
    pub right: usize,
    pub bottom: usize,
    pub left: usize,
}

/// One byte for each of 8 emphases x 64 indices.
type Table = [[u8; 64]; 8];

/// The window after its crop.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    crop: Crop,
    cut: bool,
    grey: Table,
    rgb: [Table; 3],
}

fn grey([r, g, b]: [u8; 3]) -> u8 {
    ((77 * u32::from(r) + 150 * u32::from(g) + 29 * u32::from(b) + 128) >> 8) as u8
}

fn table(value: impl Fn([u8; 3]) -> u8) -> Table {
    palette::RGB.map(|row| row.map(&value))
}

impl Window {
    /// # Panics
    /// If the crop leaves no pixel.
    pub(crate) fn new(crop: Crop, cut: bool) -> Self {
        assert!(
            crop.top + crop.bottom < WINDOW_HEIGHT && crop.left + crop.right < WINDOW_WIDTH,
            "the crop leaves nothing"
        );
        Self { crop, cut, grey: table(grey), rgb: std::array::from_fn(|channel| table(|rgb| rgb[channel])) }
    }

    pub(crate) fn height(&self) -> usize {
        if self.cut { WINDOW_HEIGHT - self.crop.top - self.crop.bottom } else { WINDOW_HEIGHT }
    }

    pub(crate) fn width(&self) -> usize {
        if self.cut { WINDOW_WIDTH - self.crop.left - self.crop.right } else { WINDOW_WIDTH }
    }

    /// One plane of grey values.
    pub(crate) fn grey_plane(&self, frame: &Frame, out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.height() * self.width(), 0);
        self.plane(frame, &self.grey, out);
    }

    /// Planes of red, green and blue.
    pub(crate) fn rgb_planes(&self, frame: &Frame, out: &mut Vec<u8>) {
        let size = self.height() * self.width();
        out.clear();
        out.resize(3 * size, 0);
        for (table, plane) in self.rgb.iter().zip(out.chunks_exact_mut(size)) {
            self.plane(frame, table, plane);
        }
    }

    /// Turns RGB planes into one grey plane, in place.
    pub(crate) fn grey_of_rgb(planes: &mut Vec<u8>) {
        let size = planes.len() / 3;
        let (red, rest) = planes.split_at_mut(size);
        let (green, blue) = rest.split_at(size);
        for ((r, &g), &b) in red.iter_mut().zip(green).zip(blue) {
            *r = grey([*r, g, b]);
        }
        planes.truncate(size);
    }

    /// Fills the pixels that the crop leaves; `out` is black before.
    fn plane(&self, frame: &Frame, table: &Table, out: &mut [u8]) {
        let Crop { top, right, bottom, left } = self.crop;
        let (skip_rows, skip_columns) = if self.cut { (0, 0) } else { (top, left) };
        let kept = WINDOW_WIDTH - left - right;
        for (line, row) in
            out.chunks_exact_mut(self.width()).skip(skip_rows).take(WINDOW_HEIGHT - top - bottom).enumerate()
        {
            let line = TOP + top + line;
            let values = &table[usize::from(frame.emphasis[line] & 7)];
            let source = &frame.row(line)[LEFT + left..][..kept];
            for (pixel, &index) in row[skip_columns..].iter_mut().zip(source) {
                *pixel = values[usize::from(index & 63)];
            }
        }
    }
}

/// The whole window as rows of RGB triples, for people.
pub(crate) fn rgb_window(frame: &Frame, out: &mut [u8]) {
    for (line, row) in out.chunks_exact_mut(3 * WINDOW_WIDTH).enumerate() {
        let line = TOP + line;
        for (pixel, &index) in row.chunks_exact_mut(3).zip(&frame.row(line)[LEFT..]) {
            pixel.copy_from_slice(&palette::rgb(index, frame.emphasis[line]));
        }
    }
}
