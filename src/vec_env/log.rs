//! What was pressed in a lane, frame by frame: with the state before it, a movie of the lane.
//!
//! Off unless asked for. Holds the episode that runs and the one before, since an autoreset may begin the next one in
//! the step that ends it.

use super::actions::Pads;
use crate::emulator::nes::ConsoleState;

/// Where it began, and both pads in every frame since.
#[derive(Debug, Clone)]
pub struct Inputs {
    pub start: ConsoleState,
    pub pads: Vec<Pads>,
    /// Scripts wrote into memory meanwhile: the pads alone do not lead to what was.
    pub poked: bool,
}

/// A lane's log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) now: Inputs,
    pub(super) before: Option<Inputs>,
}

impl Log {
    pub(super) fn new(start: ConsoleState) -> Self {
        Self { now: Inputs { start, pads: Vec::new(), poked: false }, before: None }
    }

    /// An episode ends here, if there was one.
    pub(super) fn end_episode(&mut self) {
        if !self.now.pads.is_empty() {
            self.before = Some(self.now.clone());
        }
    }

    /// The console goes on from another state.
    pub(super) fn begin(&mut self, start: ConsoleState) {
        self.now = Inputs { start, pads: Vec::new(), poked: false };
    }
}
