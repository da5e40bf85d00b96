//! A lane as it was, for those who come back to it within the process: the console's structures copied, the observations
//! shared. `snapshot` is the same as bytes, for other processes and for files.
//!
//! Everything that decides what the lane does next, its random numbers included: a lane that takes it over goes on
//! exactly as the one that gave it. It fits any lane and environment of the same ROM and image options.

use super::lane::{Lane, Outcome, Phase, Rules};
use super::observe::Stack;
use super::rng::LaneRng;
use super::snapshot::{self, SnapshotError};
use super::{Machine, MachineState};
use crate::emulator::game::{Episode, PLAYERS, ScriptError};
use crate::emulator::nes::Buttons;
use crate::emulator::nes::codec::hex;
use std::sync::Arc;

/// One lane, kept.
#[derive(Clone)]
pub struct Kept {
    /// SHA-1 of the ROM's payload.
    pub(super) rom: [u8; 20],
    /// The image options in words: observations of other options mean something else.
    pub(super) image: Arc<str>,
    /// The name of the state where the lane's episodes begin.
    pub(super) start: Arc<str>,
    pub(super) rng: LaneRng,
    pub(super) ended: bool,
    pub(super) life_lost: bool,
    pub(super) outcome: Outcome,
    pub(super) raw_reward: f64,
    pub(super) episode_return: f64,
    pub(super) elapsed: u64,
    pub(super) held: [Buttons; 2],
    pub(super) stack: Option<Stack>,
    pub(super) console: MachineState,
    pub(super) checkpoint: MachineState,
    pub(super) replay: Vec<[Buttons; 2]>,
    pub(super) player_rewards: [f64; PLAYERS],
    /// What the scenario's scripts wrote during the replay: frame, address, byte.
    pub(super) pokes: Vec<(usize, u16, u8)>,
    /// What `Episode::save` gave.
    pub(super) episode: Vec<u8>,
}

impl Kept {
    /// # Errors
    /// When the scenario's scripts keep values that cannot be carried over.
    pub(super) fn of(lane: &Lane, rules: &Rules) -> Result<Self, ScriptError> {
        Ok(Self {
            rom: rules.rom,
            image: Arc::clone(&rules.image_words),
            start: Arc::clone(&rules.starts[lane.start].name),
            rng: lane.rng.clone(),
            ended: lane.phase == Phase::Ended,
            life_lost: lane.life_lost,
            outcome: lane.outcome,
            raw_reward: lane.tally.raw_reward,
            episode_return: lane.tally.episode_return,
            elapsed: lane.tally.elapsed,
            held: lane.held,
            stack: lane.stack.clone(),
            console: lane.engine.saved(),
            checkpoint: lane.checkpoint.clone(),
            replay: lane.replay.clone(),
            player_rewards: lane.tally.player_rewards,
            pokes: lane.pokes.clone(),
            episode: lane.episode.save(&rules.game)?,
        })
    }

    /// The lane as bytes, for other processes.
    pub fn to_bytes(&self) -> Vec<u8> {
        snapshot::save(self)
    }

    /// The name of the state where later episodes begin.
    pub fn start(&self) -> &str {
        &self.start
    }

    /// Whether a lane of these rules can take it over; `machine` is one of its consoles.
    pub(super) fn check(&self, rules: &Rules, machine: &Machine) -> Result<(), SnapshotError> {
        if self.rom != rules.rom {
            return Err(SnapshotError::OtherRom { found: hex(&self.rom), expected: hex(&rules.rom) });
        }
        if self.image != rules.image_words {
            let (found, expected) = (self.image.to_string(), rules.image_words.to_string());
            return Err(SnapshotError::OtherImage { found, expected });
        }
        if !machine.fits(&self.console) {
            return Err(SnapshotError::OtherBoard);
        }
        if !Episode::fits(&rules.game, &self.episode) {
            return Err(SnapshotError::OtherScripts);
        }
        Ok(())
    }

    /// Puts the state into a lane. A start of a name that this environment does not have is left as the lane's own.
    ///
    /// # Panics
    /// If `check` refused it.
    pub(super) fn load(&self, lane: &mut Lane, rules: &Rules) {
        lane.engine.load(&self.console);
        lane.rng = self.rng.clone();
        if let Some(start) = rules.starts.iter().position(|start| start.name == self.start) {
            lane.start = start;
        }
        lane.phase = if self.ended { Phase::Ended } else { Phase::Running };
        lane.life_lost = self.life_lost;
        lane.outcome = self.outcome;
        lane.tally.raw_reward = self.raw_reward;
        lane.tally.episode_return = self.episode_return;
        lane.tally.elapsed = self.elapsed;
        lane.held = self.held;
        if let (Some(stack), Some(kept)) = (&mut lane.stack, &self.stack) {
            stack.share(kept);
        }
        lane.checkpoint.copy_from(&self.checkpoint);
        lane.replay.clone_from(&self.replay);
        lane.pokes.clone_from(&self.pokes);
        lane.tally.player_rewards = self.player_rewards;
        lane.resume(rules, &self.episode);
    }
}
