//! Many consoles played at once: the vectorised environment behind `rollcart.NesVectorEnv`.
//!
//! ```text
//! config   options, checked           actions   numbers -> buttons        observe   picture -> observation
//! lane     one console's episodes     batch     all lanes on threads      kept      a lane as it was
//! rng      a lane's random numbers    starts    where episodes begin      snapshot  a kept lane as bytes
//! infos    what steps tell            threads   how many                      crew      the threads themselves
//! deal     who runs which lane        log       what was pressed in a lane    faults    what can be wrong
//! ```
//!
//! A lane depends on its seed, its start state and its actions alone: never on other lanes, their number, or threads.
//! Spaces, infos as dictionaries and files belong to Python; what memory means to `emulator::game`.

mod actions;
mod batch;
mod config;
mod crew;
mod deal;
mod faults;
mod infos;
mod kept;
mod lane;
mod log;
mod observe;
mod rng;
mod snapshot;
mod starts;
mod threads;

pub use actions::ActionSpace;
pub use batch::{Batch, Profile};
pub use config::{Autoreset, Config, ConfigError, Observed};
pub use deal::Buffers;
pub use faults::{BatchError, MakeError};
pub use infos::Infos;
pub use kept::Kept;
pub use lane::{Outcome, Tally, Work};
pub use log::Inputs;
pub use observe::{WINDOW_HEIGHT, WINDOW_WIDTH};
pub use snapshot::SnapshotError;
pub use starts::{Start, StartError};

/// The engine that lanes run.
pub type Machine = crate::emulator::fast::Fast;
/// What a machine was, to come back to.
pub type MachineState = crate::emulator::fast::Saved;
pub use crate::emulator::fast::Translated;
