//! A lane as bytes: `RCLN`, the layout's version, the ROM's SHA-1, then the plain data of `LaneState`.
//!
//! Everything that decides what the lane does next, its random numbers included: a lane that takes a snapshot over goes
//! on exactly as the one that gave it. It fits any lane, environment or process of the same ROM and image options.

use super::Machine;
use super::lane::{Lane, Outcome, Phase, Rules};
use super::observe::Stack;
use super::rng::LaneRng;
use crate::emulator::engine::Engine;
use crate::emulator::nes::codec::hex;
use crate::emulator::nes::plain::{Plain, PlainError, Reader, plain_data};
use crate::emulator::nes::{Buttons, ConsoleState};

const MAGIC: &[u8; 4] = b"RCLN";
/// Goes up whenever the plain data of `LaneState` or of a console's state changes.
const VERSION: u16 = 1;
const DIGEST_BYTES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("expected bytes that snapshot() gave (they start with RCLN), found {found:02X?}")]
    NotASnapshot { found: Vec<u8> },
    #[error("it has layout version {found}, this build reads {VERSION}; take it again with this build")]
    OtherVersion { found: u16 },
    #[error("it belongs to the ROM with SHA-1 {found}, this environment plays {expected}")]
    OtherRom { found: String, expected: String },
    #[error("its image options are {found}, this environment has {expected}; make both with the same options")]
    OtherImage { found: String, expected: String },
    #[error(transparent)]
    Damaged(#[from] PlainError),
    #[error("it is damaged: {what}; take it again")]
    Inconsistent { what: String },
}

plain_data! {
    #[allow(unreachable_pub, reason = "the macro declares for other rooms")]
    pub struct LaneState {
        /// The name of the state where the lane's episodes begin.
        pub start: Vec<u8>,
        /// The image options in words: stacked bytes of other options mean something else.
        pub image: Vec<u8>,
        pub rng: [u64; 4],
        pub ended: bool,
        pub terminated: bool,
        pub truncated: bool,
        /// Rewards as the bits of 64-bit floats.
        pub reward: u64,
        pub raw_reward: u64,
        pub episode_return: u64,
        pub elapsed: u64,
        pub held: [u8; 2],
        pub stack: Vec<u8>,
        pub console: ConsoleState,
        pub checkpoint: ConsoleState,
        pub replay: Vec<u8>,
    }
}

impl LaneState {
    pub(super) fn of(lane: &Lane, rules: &Rules) -> Self {
        Self {
            image: image_words(rules),
            start: rules.starts[lane.start].name.clone().into_bytes(),
            rng: lane.rng.0,
            ended: lane.phase == Phase::Ended,
            terminated: lane.outcome.terminated,
            truncated: lane.outcome.truncated,
            reward: lane.outcome.reward.to_bits(),
            raw_reward: lane.tally.raw_reward.to_bits(),
            episode_return: lane.tally.episode_return.to_bits(),
            elapsed: lane.tally.elapsed,
            held: lane.held.map(|pad| pad.0),
            stack: lane.stack.as_ref().map_or_else(Vec::new, Stack::bytes),
            console: lane.engine.export(),
            checkpoint: lane.checkpoint.clone(),
            replay: lane.replay.iter().flatten().map(|pad| pad.0).collect(),
        }
    }

    /// Puts the state into a lane. A start of a name that this environment does not have is left as the lane's own.
    ///
    /// # Panics
    /// If the state was not checked by `parse` and is of another cartridge.
    pub(super) fn load(self, lane: &mut Lane, rules: &Rules) {
        lane.engine.import(&self.console).expect("the state was checked");
        lane.rng = LaneRng(self.rng);
        if let Some(start) = rules.starts.iter().position(|start| start.name.as_bytes() == self.start) {
            lane.start = start;
        }
        lane.phase = if self.ended { Phase::Ended } else { Phase::Running };
        lane.outcome =
            Outcome { reward: f64::from_bits(self.reward), terminated: self.terminated, truncated: self.truncated };
        lane.tally.raw_reward = f64::from_bits(self.raw_reward);
        lane.tally.episode_return = f64::from_bits(self.episode_return);
        lane.tally.elapsed = self.elapsed;
        lane.held = self.held.map(Buttons);
        if let Some(stack) = &mut lane.stack {
            stack.load(&self.stack);
        }
        lane.checkpoint = self.checkpoint;
        lane.replay.clear();
        lane.replay.extend(self.replay.chunks_exact(2).map(|pads| [Buttons(pads[0]), Buttons(pads[1])]));
        lane.reread(rules);
    }
}

fn image_words(rules: &Rules) -> Vec<u8> {
    if rules.config.observed.image { format!("{:?}", rules.config.image).into_bytes() } else { b"none".to_vec() }
}

/// The lane's state as bytes.
pub(super) fn save(lane: &Lane, rules: &Rules) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * 1024);
    out.extend_from_slice(MAGIC);
    VERSION.put(&mut out);
    out.extend_from_slice(&rules.rom);
    LaneState::of(lane, rules).put(&mut out);
    out
}

/// The name of the state where the snapshot's later episodes begin, without a look at the rest.
pub fn start_name(bytes: &[u8]) -> Option<String> {
    let mut reader = Reader::new(bytes.strip_prefix(MAGIC)?);
    let version = u16::get(&mut reader).ok()?;
    reader.take(DIGEST_BYTES).ok()?;
    String::from_utf8((version == VERSION).then(|| Vec::get(&mut reader).ok())??).ok()
}

/// Reads and checks a snapshot; `trial` is a console of the same cartridge, whose own state does not matter.
///
/// # Errors
/// When the bytes are no snapshot, damaged, or of another ROM or image.
pub(super) fn parse(bytes: &[u8], rules: &Rules, trial: &mut Machine) -> Result<LaneState, SnapshotError> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(SnapshotError::NotASnapshot { found: bytes[..bytes.len().min(MAGIC.len())].to_vec() });
    };
    let mut reader = Reader::new(rest);
    let found = u16::get(&mut reader)?;
    if found != VERSION {
        return Err(SnapshotError::OtherVersion { found });
    }
    let rom = reader.take(rules.rom.len())?;
    if rom != rules.rom {
        return Err(SnapshotError::OtherRom { found: hex(rom), expected: hex(&rules.rom) });
    }
    let state = LaneState::get(&mut reader)?;
    let expected = image_words(rules);
    if state.image != expected {
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        return Err(SnapshotError::OtherImage { found: words(&state.image), expected: words(&expected) });
    }
    let inconsistent = |what: String| SnapshotError::Inconsistent { what };
    let stack =
        if rules.config.observed.image { rules.observer.frame_bytes() * rules.config.image.frame_stack } else { 0 };
    if reader.left() > 0 {
        return Err(inconsistent(format!("{} bytes follow its end", reader.left())));
    }
    if state.stack.len() != stack {
        return Err(inconsistent(format!("its stack has {} bytes, expected {stack}", state.stack.len())));
    }
    if state.replay.is_empty() || state.replay.len() % 2 == 1 || state.replay.len() > 2 * MOST_REPLAYED {
        return Err(inconsistent(format!("it replays {} pads", state.replay.len())));
    }
    for console in [&state.console, &state.checkpoint] {
        trial.import(console).map_err(|reason| inconsistent(reason.to_string()))?;
    }
    Ok(state)
}

/// Frames from a checkpoint to the present: at most the largest frame skip.
const MOST_REPLAYED: usize = 60;
