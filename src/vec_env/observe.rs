//! From a console's picture to a lane's observation, to the byte of SPECS.md V3.
//!
//! ```text
//! plain      window -> planes of grey or RGB -> resize          anything
//! bins       lines summed up by columns (`simd` too)            grey, area, not larger than the window
//! periods    the same for 240 columns in 84 outputs
//! stack      a lane's last observations in the asked layout
//! ```
//! `window` cuts Stable Retro's 224 x 240 picture out of the frame, masks or cuts the crop and turns palette indices
//! into grey or RGB planes; `resize` brings a plane to its output size; `stack` keeps a lane's last observations and
//! writes them in the asked layout. `bins` is tested equal to the plain path.
//!
//! Left to others: when a frame is drawn (`lane`), RAM observations (`lane`), the meaning of a palette index (`nes`).

mod bins;
mod periods;
mod resize;
mod simd;
mod stack;
mod window;

use bins::Bins;
pub(super) use resize::Algorithm;
pub(crate) use resize::Resizer;
pub(crate) use stack::Stack;
pub(crate) use window::{Crop, Window, rgb_window};
pub use window::{WINDOW_HEIGHT, WINDOW_WIDTH};

use super::Machine;
use crate::emulator::engine::EngineOptions;
use crate::emulator::fast::probe::Probe;
use crate::emulator::fast::{Canvas, Strip, TileSums};

/// Where the channels of an image lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Channels, rows, columns.
    Chw,
    /// Rows, columns, channels.
    Hwc,
}

/// What an image observation is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSpec {
    pub grayscale: bool,
    pub crop: Crop,
    /// Removes the cropped rows and columns; otherwise they stay, black.
    pub cut: bool,
    /// Height and width; `None` keeps the window's.
    pub size: Option<(usize, usize)>,
    pub algorithm: Algorithm,
    pub layout: Layout,
    pub frame_stack: usize,
    pub maxpool: bool,
}

/// Memory that a thread lends to the lanes that it draws.
#[derive(Default)]
pub(super) struct Scratch {
    /// What the frame being seen leaves behind of its picture.
    pub canvas: Option<Box<Canvas>>,
    strip: Strip,
    /// Sums of tiles, which lanes have in common.
    tiles: Option<TileSums>,
    /// The frame before the last one as RGB planes, for `maxpool`.
    held: Vec<u8>,
    planes: Vec<u8>,
    sums: Vec<u16>,
}

/// A frame that is observed has been run on the canvas.
const SEEN: &str = "the lane has run a frame on the canvas";

/// Draws images of one [`ImageSpec`].
#[derive(Debug, Clone)]
pub(super) struct Observer {
    spec: ImageSpec,
    window: Window,
    resizer: Resizer,
    bins: Option<Bins>,
}

impl Observer {
    /// # Panics
    /// If the crop leaves nothing or the size is 0; `config` has refused such a specification.
    pub(super) fn new(spec: ImageSpec, switches: EngineOptions) -> Self {
        let window = Window::new(spec.crop, spec.cut);
        let source = (window.height(), window.width());
        let output = spec.size.unwrap_or(source);
        let resizer = Resizer::new(source, output, spec.algorithm);
        let summed = switches.direct_bins && spec.grayscale && spec.algorithm == Algorithm::Area;
        let bins = summed.then(|| Bins::new(source, output, switches)).flatten();
        Self { spec, window, resizer, bins }
    }

    /// The first line of a frame that is observed.
    pub(super) fn first_line(&self) -> usize {
        self.window.seen().0.start
    }

    /// Bytes of one observation without its stack.
    pub(super) fn frame_bytes(&self) -> usize {
        let (height, width) = self.resizer.output();
        self.channels() * height * width
    }

    /// Channels of one observation without its stack: 1 or 3.
    pub(super) fn channels(&self) -> usize {
        if self.spec.grayscale { 1 } else { 3 }
    }

    /// Shape of a stacked observation.
    pub(super) fn shape(&self) -> [usize; 3] {
        let (height, width) = self.resizer.output();
        let channels = self.channels() * self.spec.frame_stack;
        match self.spec.layout {
            Layout::Chw => [channels, height, width],
            Layout::Hwc => [height, width, channels],
        }
    }

    /// Keeps the frame before the last one: `draw` takes the pixelwise maximum with it.
    pub(super) fn hold<P: Probe>(&self, machine: &Machine, scratch: &mut Scratch) {
        let Scratch { canvas, strip, held, .. } = scratch;
        self.window.rgb_planes(&machine.scene::<P>(canvas.as_deref().expect(SEEN)), strip, held);
    }

    /// Draws one observation of the frame that the machine has run on the canvas, channel planes one after the other.
    /// `pooled` says that `hold` was called for the frame before this one.
    pub(super) fn draw<P: Probe>(&self, machine: &Machine, pooled: bool, scratch: &mut Scratch, out: &mut [u8]) {
        let Scratch { canvas, strip, tiles, held, planes, sums } = scratch;
        let scene = machine.scene::<P>(canvas.as_deref().expect(SEEN));
        if let Some(bins) = self.bins.as_ref().filter(|_| !pooled) {
            bins.draw(&self.window, &scene, strip, tiles, out);
            return;
        }
        if pooled {
            self.window.rgb_planes(&scene, strip, planes);
            planes.iter_mut().zip(held.iter()).for_each(|(now, &before)| *now = before.max(*now));
            if self.spec.grayscale {
                Window::grey_of_rgb(planes);
            }
        } else if self.spec.grayscale {
            self.window.grey_plane(&scene, strip, planes);
        } else {
            self.window.rgb_planes(&scene, strip, planes);
        }
        let source = self.window.height() * self.window.width();
        let target = out.len() / self.channels();
        for (plane, out) in planes.chunks_exact(source).zip(out.chunks_exact_mut(target)) {
            self.resizer.resize(plane, sums, out);
        }
    }
}
