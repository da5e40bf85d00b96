//! A kept lane as bytes: `RCLN`, the layout's version, the ROM's SHA-1, then the plain data of `LaneState`. For any
//! process of the same ROM and image options.

use super::MachineState;
use super::kept::Kept;
use super::lane::{Outcome, Rules};
use super::observe::Stack;
use super::rng::LaneRng;
use crate::emulator::game::{PLAYERS, ScriptError};
use crate::emulator::nes::codec::hex;
use crate::emulator::nes::plain::{Plain, PlainError, Reader, plain_data};
use crate::emulator::nes::{Buttons, ConsoleState};
use std::sync::Arc;

const MAGIC: &[u8; 4] = b"RCLN";
/// Goes up whenever the plain data of `LaneState` or of a console's state changes.
const VERSION: u16 = 3;

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
    #[error("it belongs to a board with other memories, though the ROM is the same; use one header for both")]
    OtherBoard,
    #[error("it is of another scenario: it lacks what this one's scripts keep; take it where that scenario is played")]
    OtherScripts,
    #[error(transparent)]
    Script(#[from] ScriptError),
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
        pub life_lost: bool,
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
        pub player_rewards: [u64; PLAYERS],
        /// Four bytes each: frame, address (low byte first), byte.
        pub pokes: Vec<u8>,
        pub episode: Vec<u8>,
    }
}

impl LaneState {
    fn of(kept: &Kept) -> Self {
        Self {
            start: kept.start.as_bytes().to_vec(),
            image: kept.image.as_bytes().to_vec(),
            rng: kept.rng.0,
            ended: kept.ended,
            life_lost: kept.life_lost,
            terminated: kept.outcome.terminated,
            truncated: kept.outcome.truncated,
            reward: kept.outcome.reward.to_bits(),
            raw_reward: kept.raw_reward.to_bits(),
            episode_return: kept.episode_return.to_bits(),
            elapsed: kept.elapsed,
            held: kept.held.map(|pad| pad.0),
            stack: kept.stack.as_ref().map_or_else(Vec::new, Stack::bytes),
            console: kept.console.export(),
            checkpoint: kept.checkpoint.export(),
            replay: kept.replay.iter().flatten().map(|pad| pad.0).collect(),
            player_rewards: kept.player_rewards.map(f64::to_bits),
            pokes: kept
                .pokes
                .iter()
                .flat_map(|&(frame, at, byte)| [frame as u8, at as u8, (at >> 8) as u8, byte])
                .collect(),
            episode: kept.episode.clone(),
        }
    }
}

/// The lane as bytes.
pub(super) fn save(kept: &Kept) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * 1024);
    out.extend_from_slice(MAGIC);
    VERSION.put(&mut out);
    out.extend_from_slice(&kept.rom);
    LaneState::of(kept).put(&mut out);
    out
}

/// Reads and checks a snapshot; `blank` is any state of a console with the cartridge.
///
/// # Errors
/// When the bytes are no snapshot, damaged, or of another ROM or image.
pub(super) fn parse(bytes: &[u8], rules: &Rules, blank: &MachineState) -> Result<Kept, SnapshotError> {
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
    let expected = &rules.image_words;
    if state.image != expected.as_bytes() {
        let found = String::from_utf8_lossy(&state.image).into_owned();
        return Err(SnapshotError::OtherImage { found, expected: expected.to_string() });
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
    let poke = |poke: &[u8]| (usize::from(poke[0]), u16::from_le_bytes([poke[1], poke[2]]), poke[3]);
    let pokes: Vec<_> = state.pokes.chunks_exact(4).map(poke).collect();
    if state.pokes.len() % 4 != 0 || !pokes.iter().all(|&(_, at, _)| matches!(at, 0..0x800 | 0x6000..0x8000)) {
        return Err(inconsistent("what scripts wrote lies outside memory".into()));
    }
    let read = |console: &ConsoleState| {
        let mut read = blank.clone();
        read.import(console).map_err(|reason| inconsistent(reason.to_string())).map(|()| read)
    };
    Ok(Kept {
        rom: rules.rom,
        image: Arc::clone(&rules.image_words),
        start: String::from_utf8_lossy(&state.start).into(),
        rng: LaneRng(state.rng),
        ended: state.ended,
        life_lost: state.life_lost,
        outcome: Outcome {
            reward: f64::from_bits(state.reward),
            terminated: state.terminated,
            truncated: state.truncated,
        },
        raw_reward: f64::from_bits(state.raw_reward),
        episode_return: f64::from_bits(state.episode_return),
        elapsed: state.elapsed,
        held: state.held.map(Buttons),
        stack: rules.config.observed.image.then(|| Stack::from_bytes(&state.stack, rules.config.image.frame_stack)),
        console: read(&state.console)?,
        checkpoint: read(&state.checkpoint)?,
        replay: state.replay.chunks_exact(2).map(|pads| [Buttons(pads[0]), Buttons(pads[1])]).collect(),
        player_rewards: state.player_rewards.map(f64::from_bits),
        pokes,
        episode: state.episode,
    })
}

/// Frames from a checkpoint to the present: at most the largest frame skip.
const MOST_REPLAYED: usize = 60;
