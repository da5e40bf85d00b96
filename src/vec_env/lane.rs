//! One console and its episodes.
//!
//! A step holds the action's buttons for `frame_skip` frames and sums what each of them was worth; the frame that ends
//! the episode ends the step. Only the picture that is observed is drawn: the last frame's, with `maxpool` the last
//! two. Where an episode ends earlier than that, the step is run again from its checkpoint, now drawing.
//!
//! A reset loads the lane's start, runs one frame without buttons and then a random number of further ones. After an
//! episode that ended with a life alone it loads nothing: the game goes on.
//! When lanes run, and in which slot they write, is `batch`'s business.

use super::actions::Pads;
use super::config::Config;
use super::log::Log;
use super::observe::{Observer, Scratch, Stack, rgb_window};
use super::rng::LaneRng;
use super::starts::Start;
use super::{Machine, MachineState};
use crate::emulator::engine::{Engine, ResetKind};
use crate::emulator::fast::probe::{Part, Probe, Silent, Spent};
use crate::emulator::game::{Episode, Game, Memory, PLAYERS, ScriptError, Verdict};
use std::sync::Arc;
use std::time::Duration;

/// What all lanes of a batch share.
#[derive(Debug)]
pub(super) struct Rules {
    pub config: Config,
    pub game: Game,
    pub observer: Observer,
    pub starts: Vec<Start>,
    /// SHA-1 of the ROM's payload.
    pub rom: [u8; 20],
    /// The image options in words, as kept lanes carry them.
    pub image_words: Arc<str>,
    /// Bytes of a RAM observation.
    pub ram_bytes: usize,
    /// Which of the game's values counts lives, where a lost one ends the episode.
    pub life: Option<usize>,
    /// What a look at the clock costs, while clocks run in lanes.
    pub look: Option<Duration>,
}

/// Where a lane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Never reset.
    New,
    Running,
    /// The episode has ended; nothing was reset yet.
    Ended,
}

/// What the last step or reset was worth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    pub reward: f64,
    pub terminated: bool,
    pub truncated: bool,
}

impl Outcome {
    pub fn done(self) -> bool {
        self.terminated || self.truncated
    }
}

/// What the infos tell about a lane.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// The game's values after the last frame.
    pub values: Vec<i64>,
    /// Steps of this episode.
    pub elapsed: u64,
    /// Sum of this episode's rewards before clipping.
    pub episode_return: f64,
    /// The last reward before clipping.
    pub raw_reward: f64,
    /// The last rewards of the players, before clipping.
    pub player_rewards: [f64; PLAYERS],
}

impl Tally {
    /// Becomes equal to another one, in the memory that it has.
    pub(super) fn copy_from(&mut self, other: &Self) {
        let Self { values, elapsed, episode_return, raw_reward, player_rewards } = other;
        self.values.clone_from(values);
        self.elapsed = *elapsed;
        self.episode_return = *episode_return;
        self.raw_reward = *raw_reward;
        self.player_rewards = *player_rewards;
    }
}

/// What a lane has done since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    pub steps: u64,
    pub frames: u64,
    pub episodes: u64,
    pub resets: u64,
    /// Frames that were run again to draw the end of an episode.
    pub redrawn: u64,
    /// Lines of observed frames that had to be drawn while the frame ran.
    pub lines_drawn_at_once: u64,
    /// Where the time went, as far as clocks ran.
    pub spent: Spent,
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |a, b| Self {
            steps: a.steps + b.steps,
            frames: a.frames + b.frames,
            episodes: a.episodes + b.episodes,
            resets: a.resets + b.resets,
            redrawn: a.redrawn + b.redrawn,
            lines_drawn_at_once: a.lines_drawn_at_once + b.lines_drawn_at_once,
            spent: a.spent + b.spent,
        })
    }
}

pub(super) struct Lane {
    pub(super) engine: Machine,
    pub(super) rng: LaneRng,
    pub(super) start: usize,
    /// Steps after which an episode is truncated: the lane's own, whatever state it takes over.
    limit: Option<u64>,
    pub(super) phase: Phase,
    /// The last episode ended with a life, and the game goes on.
    pub(super) life_lost: bool,
    pub(super) stack: Option<Stack>,
    pub(super) tally: Tally,
    pub(super) episode: Episode,
    /// What a script of the scenario died of, until it is told.
    pub(super) fault: Option<ScriptError>,
    /// What was pressed in the last frame.
    pub(super) held: Pads,
    pub(super) outcome: Outcome,
    /// The state from which `replay` leads to the present one.
    pub(super) checkpoint: MachineState,
    pub(super) replay: Vec<Pads>,
    /// What scripts wrote into memory after which frame of the replay: its number, address, byte.
    pub(super) pokes: Vec<(usize, u16, u8)>,
    pub(super) work: Work,
    /// What is pressed, for those who want a movie of it.
    pub(super) log: Option<Box<Log>>,
}

impl Lane {
    pub(super) fn new(engine: Machine, rules: &Rules, start: usize, limit: Option<u64>) -> Self {
        let values = vec![0; rules.game.width() + rules.game.signals.len()];
        let stack = rules
            .config
            .observed
            .image
            .then(|| Stack::new(rules.observer.frame_bytes(), rules.config.image.frame_stack));
        Self {
            checkpoint: engine.saved(),
            engine,
            rng: LaneRng::new(0),
            start,
            limit,
            phase: Phase::New,
            life_lost: false,
            stack,
            episode: Episode::new(&rules.game),
            fault: None,
            tally: Tally { values, ..Tally::default() },
            held: Pads::default(),
            outcome: Outcome::default(),
            replay: Vec::with_capacity(rules.config.frame_skip.max(2) as usize),
            pokes: Vec::new(),
            work: Work::default(),
            log: None,
        }
    }

    pub(super) fn seed(&mut self, seed: u64) {
        self.rng = LaneRng::new(seed);
    }

    pub(super) fn set_start(&mut self, start: usize) {
        self.start = start;
    }

    /// Begins an episode, `anew` at the lane's start in any case. The outcome is that of no step: no reward, no end.
    pub(super) fn reset<P: Probe>(&mut self, rules: &Rules, scratch: &mut Scratch, anew: bool) {
        if let Some(log) = &mut self.log {
            log.end_episode();
        }
        let noops = match rules.config.noop_reset_max {
            0 => 0,
            most => self.rng.up_to(most),
        };
        let goes_on = !anew && self.life_lost && self.phase == Phase::Ended;
        // Where the game ends in what goes on, it begins; where it ends while nobody plays, it begins without the wait.
        let begun =
            (goes_on && self.begin::<P>(rules, scratch, noops, false)) || self.begin::<P>(rules, scratch, noops, true);
        if !begun {
            self.begin::<P>(rules, scratch, 0, true);
        }
        if let Some(stack) = &mut self.stack {
            if rules.config.black_start {
                stack.blacken_older();
            } else {
                stack.repeat_newest();
            }
        }
        self.phase = Phase::Running;
        self.life_lost = false;
        self.tally.elapsed = 0;
        self.tally.episode_return = 0.0;
        self.tally.raw_reward = 0.0;
        self.tally.player_rewards = [0.0; PLAYERS];
        self.outcome = Outcome::default();
        self.work.resets += 1;
    }

    /// Runs the first frame and `noops` more, from the lane's start or from where the game is; false when the game ended
    /// meanwhile.
    fn begin<P: Probe>(&mut self, rules: &Rules, scratch: &mut Scratch, noops: u32, anew: bool) -> bool {
        match &rules.starts[self.start].state {
            _ if !anew => {}
            Some(state) => self.engine.import(state).expect("the batch has tried every start"),
            None => self.engine.reset(ResetKind::Hard),
        }
        self.log_from_here();
        self.held = Pads::default();
        let mut ended = false;
        for frame in 0..=noops {
            if frame == 0 || frame + 1 == noops {
                self.mark();
            } else if frame + 1 < noops {
                // Another mark follows: these frames are never run again.
                self.replay.clear();
                self.pokes.clear();
            }
            self.frame::<P>(rules, scratch, self.held, noops - frame);
            if frame == 0 && anew {
                let begun = self.episode.begin(&rules.game, memory_of(&self.engine));
                self.heed(begun.map(|()| Verdict::default()));
            } else {
                ended |= self.judge(rules).done;
            }
        }
        self.tally_values(rules);
        self.observe::<P>(rules, scratch);
        !ended
    }

    /// Plays one action.
    pub(super) fn step<P: Probe>(&mut self, rules: &Rules, action: Pads, scratch: &mut Scratch) {
        let skip = rules.config.frame_skip;
        let (mut rewards, mut done) = ([0.0; PLAYERS], false);
        let lives = |episode: &Episode| rules.life.map(|at| episode.values()[at]);
        self.mark();
        for left in (0..skip).rev() {
            let sticks = rules.config.sticky_action_prob > 0.0 && self.rng.chance(rules.config.sticky_action_prob);
            let pads = if sticks { self.held } else { action };
            self.frame::<P>(rules, scratch, pads, left);
            let before = lives(&self.episode);
            let verdict = self.judge(rules);
            for (sum, reward) in rewards.iter_mut().zip(verdict.rewards) {
                *sum += f64::from(reward);
            }
            self.life_lost = !verdict.done && lives(&self.episode) < before;
            done = verdict.done || self.life_lost;
            if done {
                if left > 0 {
                    self.redraw::<P>(rules, scratch, rules.observer.first_line());
                }
                break;
            }
        }
        self.observe::<P>(rules, scratch);
        self.tally_values(rules);
        let reward = rewards[0];
        self.tally.player_rewards = rewards;
        self.tally.elapsed += 1;
        self.tally.episode_return += reward;
        self.tally.raw_reward = reward;
        // Above the limit too: a restored lane may come from an environment with a later one.
        let truncated = !done && self.limit.is_some_and(|most| self.tally.elapsed >= most);
        self.outcome = Outcome {
            reward: if rules.config.reward_clip { sign(reward) } else { reward },
            terminated: done,
            truncated,
        };
        self.work.steps += 1;
        if self.outcome.done() {
            self.phase = Phase::Ended;
            self.work.episodes += 1;
        }
    }

    /// Takes the present state as the one to run again from.
    fn mark(&mut self) {
        self.engine.save_over(&mut self.checkpoint);
        self.replay.clear();
        self.pokes.clear();
    }

    /// Judges the last frame. Where a script fails the episode is over, and the fault is kept.
    fn judge(&mut self, rules: &Rules) -> Verdict {
        let judged = self.episode.frame(&rules.game, memory_of(&self.engine));
        self.heed(judged)
    }

    /// Does what scripts said about memory.
    fn heed(&mut self, judged: Result<Verdict, ScriptError>) -> Verdict {
        for &(address, byte) in self.episode.written() {
            self.engine.poke(address, byte).expect("variables lie in memory");
            self.pokes.push((self.replay.len() - 1, address, byte));
            if let Some(log) = &mut self.log {
                log.now.poked = true;
            }
        }
        judged.unwrap_or_else(|fault| {
            self.fault = Some(fault);
            Verdict { done: true, ..Verdict::default() }
        })
    }

    fn tally_values(&mut self, rules: &Rules) {
        self.tally.values.clear();
        self.tally.values.extend_from_slice(self.episode.values());
        self.tally.values.extend(rules.game.signals.read(memory_of(&self.engine)));
    }

    /// Runs one frame of which `left` more follow at most.
    fn frame<P: Probe>(&mut self, rules: &Rules, scratch: &mut Scratch, pads: Pads, left: u32) {
        let seen = rules.config.observed.image && left <= u32::from(rules.config.image.maxpool);
        self.run_frame::<P>(pads, seen.then(|| rules.observer.first_line()), scratch);
        self.held = pads;
        self.replay.push(pads);
        if let Some(log) = &mut self.log {
            log.now.pads.push(pads);
        }
        self.work.frames += 1;
        if seen && left == 1 {
            P::span(Part::Observe, || rules.observer.hold::<P>(&self.engine, scratch));
        }
    }

    /// Runs a frame; with a picture of the lines from `seen` on, if it is seen.
    fn run_frame<P: Probe>(&mut self, pads: Pads, seen: Option<usize>, scratch: &mut Scratch) {
        if let Some(seen_from) = seen {
            P::span(Part::Cpu, || self.engine.run_frame_on::<P>(pads, &mut scratch.canvas, seen_from));
            let at_once = scratch.canvas.as_ref().map_or(0, |canvas| canvas.lines_drawn_at_once());
            self.work.lines_drawn_at_once += at_once as u64;
        } else {
            P::span(Part::Cpu, || self.engine.run_frame_unseen::<P>(pads));
        }
    }

    /// Comes to the present state again, this time drawing the lines from `seen_from` on.
    fn redraw<P: Probe>(&mut self, rules: &Rules, scratch: &mut Scratch, seen_from: usize) {
        self.engine.load(&self.checkpoint);
        for index in 0..self.replay.len() {
            let (pads, left) = (self.replay[index], self.replay.len() - 1 - index);
            let seen = left <= usize::from(rules.config.image.maxpool);
            self.run_frame::<P>(pads, seen.then_some(seen_from), scratch);
            if seen && left == 1 {
                P::span(Part::Observe, || rules.observer.hold::<P>(&self.engine, scratch));
            }
            for &(_, address, byte) in self.pokes.iter().filter(|poke| poke.0 == index) {
                self.engine.poke(address, byte).expect("it could be written before");
            }
            self.work.redrawn += 1;
        }
    }

    /// Adds the last frame to the stack.
    fn observe<P: Probe>(&mut self, rules: &Rules, scratch: &mut Scratch) {
        let Some(stack) = &mut self.stack else { return };
        let pooled = rules.config.image.maxpool && self.replay.len() >= 2;
        P::span(Part::Observe, || rules.observer.draw::<P>(&self.engine, pooled, scratch, stack.push()));
    }

    /// Writes the window of the last frame as RGB triples: the frame is run again, since the canvas is shared by lanes.
    pub(super) fn render(&mut self, rules: &Rules, scratch: &mut Scratch, out: &mut [u8]) {
        self.redraw::<Silent>(rules, scratch, 0);
        if let Some(canvas) = &scratch.canvas {
            rgb_window(&self.engine.scene::<Silent>(canvas), out);
        }
    }

    /// Bytes that the lane has to itself, its observations aside, and what scripts keep.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.engine.heap_bytes()
            + self.checkpoint.heap_bytes()
            + self.episode.heap_bytes()
            + self.tally.values.capacity() * size_of::<i64>()
            + self.replay.capacity() * size_of::<Pads>()
    }

    /// Goes on with an episode of which a snapshot told `saved`, in the memory that was taken over.
    pub(super) fn resume(&mut self, rules: &Rules, saved: &[u8]) {
        self.log_from_here();
        match Episode::restored(&rules.game, memory_of(&self.engine), saved) {
            Ok(episode) => self.episode = episode,
            Err(fault) => self.fault = Some(fault),
        }
        self.tally_values(rules);
    }

    fn log_from_here(&mut self) {
        if let Some(log) = &mut self.log {
            log.begin(self.engine.export());
        }
    }

    /// Writes the stacked image.
    pub(super) fn write_image(&self, rules: &Rules, out: &mut [u8]) {
        if let Some(stack) = &self.stack {
            stack.write(rules.config.image.layout, rules.observer.channels(), out);
        }
    }

    /// Writes RAM, then work RAM where the observation has it.
    pub(super) fn write_ram(&self, out: &mut [u8]) {
        let memory = memory_of(&self.engine);
        let (ram, work_ram) = out.split_at_mut(memory.ram.len().min(out.len()));
        ram.copy_from_slice(&memory.ram[..ram.len()]);
        let present = work_ram.len().min(memory.work_ram.len());
        work_ram[..present].copy_from_slice(&memory.work_ram[..present]);
    }
}

pub(super) fn memory_of(engine: &Machine) -> Memory<'_> {
    Memory { ram: engine.ram(), work_ram: engine.work_ram().unwrap_or_default() }
}

/// -1, 0 or 1.
fn sign(reward: f64) -> f64 {
    if reward == 0.0 { 0.0 } else { reward.signum() }
}
