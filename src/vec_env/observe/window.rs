//! The part of a frame that is observed, as planes of grey or RGB.
//!
//! ```text
//! frame   256 x 240 palette indices, emphasis bits a line
//! window  rows 8-231, columns 8-247: what Stable Retro shows, 224 rows of 240 columns
//! crop    top, right, bottom, left pixels of the window: black, or cut off
//! grey    (77 R + 150 G + 29 B + 128) >> 8
//! ```

use crate::emulator::engine::FRAME_WIDTH;
use crate::emulator::fast::probe::Probe;
use crate::emulator::fast::{Scene, Strip};
use crate::emulator::nes::palette;
use std::ops::Range;

pub const WINDOW_HEIGHT: usize = 224;
pub const WINDOW_WIDTH: usize = 240;
const TOP: usize = 8;
pub(super) const LEFT: usize = 8;

/// Pixels of the window that are not observed, from each edge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    pub(crate) fn grey_plane(&self, scene: &Scene<impl Probe>, strip: &mut Strip, out: &mut Vec<u8>) {
        self.planes(scene, strip, &[&self.grey], out);
    }

    /// Planes of red, green and blue.
    pub(crate) fn rgb_planes(&self, scene: &Scene<impl Probe>, strip: &mut Strip, out: &mut Vec<u8>) {
        self.planes(scene, strip, &self.rgb.each_ref(), out);
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

    /// The frame's lines, and the window's columns, that the crop leaves.
    pub(super) fn seen(&self) -> (Range<usize>, Range<usize>) {
        let Crop { top, right, bottom, left } = self.crop;
        (TOP + top..TOP + WINDOW_HEIGHT - bottom, left..WINDOW_WIDTH - right)
    }

    /// Row and column of a plane where the first pixel that is seen lies.
    pub(super) fn corner(&self) -> (usize, usize) {
        if self.cut { (0, 0) } else { (self.crop.top, self.crop.left) }
    }

    /// The grey value of each pixel of a strip, by its lower six bits.
    pub(super) fn grey_values(&self, strip: &Strip) -> [u8; 64] {
        values(&self.grey, strip)
    }

    /// The grey values of colours.
    pub(super) fn shades(&self, colours: &[u8; 32], emphasis: u8) -> [u8; 32] {
        let shades = &self.grey[usize::from(emphasis & 7)];
        colours.map(|colour| shades[usize::from(colour & 0x3F)])
    }

    /// Fills `out` with one plane a table, black where the crop leaves nothing.
    fn planes(&self, scene: &Scene<impl Probe>, strip: &mut Strip, tables: &[&Table], out: &mut Vec<u8>) {
        let (lines, columns) = self.seen();
        let (row, column) = self.corner();
        let (width, size) = (self.width(), self.height() * self.width());
        out.clear();
        out.resize(tables.len() * size, 0);
        scene.each_strip(lines.start, lines.end, strip, |line, strip| {
            for (table, plane) in tables.iter().zip(out.chunks_exact_mut(size)) {
                let values = values(table, strip);
                for at in 0..strip.lines() {
                    let out = &mut plane[(row + line + at - lines.start) * width + column..][..columns.len()];
                    let pixels = &strip.row(at)[LEFT + columns.start..LEFT + columns.end];
                    out.iter_mut().zip(pixels).for_each(|(out, &pixel)| *out = values[usize::from(pixel & 0x3F)]);
                }
            }
        });
    }
}

/// What a table says of each pixel of a strip, by its lower six bits.
fn values(table: &Table, strip: &Strip) -> [u8; 64] {
    let shades = &table[usize::from(strip.emphasis() & 7)];
    strip.colours().map(|colour| shades[usize::from(colour & 0x3F)])
}

/// The whole window as rows of RGB triples, for people.
pub(crate) fn rgb_window(scene: &Scene<impl Probe>, out: &mut [u8]) {
    scene.each_strip(TOP, TOP + WINDOW_HEIGHT, &mut Strip::default(), |line, strip| {
        let colours = strip.colours().map(|colour| palette::rgb(colour, strip.emphasis()));
        for at in 0..strip.lines() {
            let row = &mut out[(line + at - TOP) * 3 * WINDOW_WIDTH..][..3 * WINDOW_WIDTH];
            let pixels = &strip.row(at)[LEFT..FRAME_WIDTH];
            for (rgb, &pixel) in row.chunks_exact_mut(3).zip(pixels) {
                rgb.copy_from_slice(&colours[usize::from(pixel & 0x3F)]);
            }
        }
    });
}
