//! What can be wrong with a batch and with calls of it, in words for the caller.

use super::config::ConfigError;
use super::snapshot::SnapshotError;
use super::starts::StartError;
use crate::emulator::engine::EngineError;
use crate::emulator::game::ScriptError;

/// Why a batch cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What is wrong with a call; no lane has moved.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    #[error("action {number} of lane {lane} is out of range, expected 0 to {most}")]
    Action { lane: usize, number: i64, most: usize },
    #[error("expected {expected} {what}, found {found}")]
    Length { what: &'static str, expected: usize, found: usize },
    #[error("lane {lane} was never reset; call reset() before this")]
    NotReset { lane: usize },
    #[error("lane {lane}'s episode has ended; reset it with reset(options={{\"reset_mask\": mask}})")]
    Ended { lane: usize },
    #[error("there is no lane {lane}, expected 0 to {most}")]
    NoLane { lane: usize, most: usize },
    #[error("this environment was made in another process (its threads are not here); make one in this process")]
    OtherProcess,
    #[error("interrupted: some lanes have moved and some have not; reset all of them")]
    Interrupted,
    #[error("lane {lane}: {reason}; some lanes have moved and some have not; reset all of them")]
    Script { lane: usize, reason: ScriptError },
    #[error("snapshot for lane {lane}: {reason}")]
    Snapshot { lane: usize, reason: SnapshotError },
}

/// That something has as many entries as it must have.
pub(super) fn length(what: &'static str, found: usize, expected: usize) -> Result<(), BatchError> {
    if found == expected { Ok(()) } else { Err(BatchError::Length { what, expected, found }) }
}
