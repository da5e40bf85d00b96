//! Many consoles played at once: the vectorised environment behind `rollcart.NesVectorEnv`.
//!
//! ```text
//! config   options, checked           actions   numbers -> buttons        observe   picture -> observation
//! lane     one console's episodes     batch     all lanes on threads      snapshot  a lane as bytes
//! rng      a lane's random numbers    starts    where episodes begin          infos     what steps tell
//! threads  how many, and their pool    log       what was pressed in a lane
//! ```
//!
//! A lane depends on its seed, its start state and its actions alone: never on other lanes, their number, or threads.
//! Spaces, infos as dictionaries and files belong to Python; what memory means to `emulator::game`.

mod actions;
mod batch;
mod config;
mod infos;
mod lane;
mod log;
mod observe;
mod rng;
mod snapshot;
mod starts;
mod threads;

pub use actions::ActionSpace;
pub use batch::{Batch, BatchError, Buffers, MakeError, Profile};
pub use config::{Autoreset, Config, ConfigError, Observed};
pub use infos::Infos;
pub use lane::{Outcome, Tally, Work};
pub use log::Inputs;
pub use observe::{WINDOW_HEIGHT, WINDOW_WIDTH};
pub use snapshot::{SnapshotError, start_name};
pub use starts::{Start, StartError};

/// The engine that lanes run.
pub type Machine = crate::emulator::fast::Fast;
pub use crate::emulator::fast::Translated;
