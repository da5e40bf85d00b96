//! All lanes of an environment, run on threads into disjoint slots of the caller's buffers.
//!
//! Every call checks everything before the first lane moves. Then the threads (`crew`; the caller's is one of them) are
//! dealt lanes (`deal`), and each lane writes its own slot. A step takes no lock and allocates nothing.
//!
//! To add an info key: (1) a row in `infos::BUILT_IN`, (2) its arm in `Infos::integer` or `::real`.

use super::actions::Pads;
use super::config::{Autoreset, Config, ConfigError};
use super::crew::Crew;
use super::deal::{self, Buffers, Deal, Dealt, Ending, Share, Slot};
use super::faults::{BatchError, MakeError, length};
use super::infos::Infos;
use super::kept::Kept;
use super::lane::{Lane, Outcome, Phase, Rules, Tally, Work};
use super::log::{Inputs, Log};
use super::observe::{Observer, Scratch, WINDOW_HEIGHT, WINDOW_WIDTH};
use super::snapshot;
use super::starts::{Start, StartError};
use super::threads;
use super::{Machine, MachineState, Translated};
use crate::emulator::cart::Cartridge;
use crate::emulator::engine::Engine;
use crate::emulator::fast::probe::{self, Clocked, Part, Probe, Silent};
use crate::emulator::game::Game;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two questions whether the call is to be broken off.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);

/// Where the time of a batch went. Sums over lanes, so threads add up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Profile {
    pub work: Work,
    /// Wall time inside `step`.
    pub stepping: Duration,
    pub calls: u64,
    /// `None` where nothing is translated.
    pub translated: Option<Translated>,
    /// Bytes of memory of the lane that has the most, its observations aside; neither the cartridge nor translated code.
    pub lane_bytes: usize,
}

pub struct Batch {
    rules: Rules,
    infos: Infos,
    lanes: Vec<Lane>,
    pads: Vec<Pads>,
    /// One for each thread.
    scratch: Vec<Scratch>,
    crew: Crew,
    /// One for each thread.
    shares: Vec<Share>,
    process: u32,
    /// Takes states of unknown origin first, so that no lane gets a bad one.
    trial: Machine,
    /// A state to read snapshots into.
    blank: MachineState,
    /// What ended episodes showed last, where the same step resets them.
    endings: Vec<Ending>,
    stepping: Duration,
    calls: u64,
}

impl Batch {
    /// Makes the lanes. Lane i begins at start i modulo their number, until a reset chooses another.
    ///
    /// # Errors
    /// When the engine refuses the cartridge or a start, an info key is unknown, or threads cannot be started.
    pub fn new(cart: &Arc<Cartridge>, config: Config, game: Game, starts: Vec<Start>) -> Result<Self, MakeError> {
        let infos = Infos::new(&game, &config)?;
        let machine = || Machine::new(Arc::clone(cart), &config.engine);
        if starts.is_empty() {
            return Err(ConfigError::new("state_catalog", "at least one state", "none").into());
        }
        let mut trial = machine()?;
        for start in &starts {
            if let Some(state) = &start.state {
                trial.import(state).map_err(|reason| StartError::Refused { name: start.name.to_string(), reason })?;
            }
        }
        let life = config.episodic_life.as_ref().map(|wanted| life(&game, wanted)).transpose()?;
        let threads = threads::count(config.num_threads, config.num_envs);
        let machines = (0..config.num_envs).map(|_| machine()).collect::<Result<Vec<_>, _>>()?;
        let memory = if cart.has_work_ram() { 2048 + 8192 } else { 2048 };
        let rules = Rules {
            rom: *cart.payload_digest(),
            image_words: image_words(&config).into(),
            ram_bytes: if config.observed.ram { memory } else { 0 },
            observer: Observer::new(config.image, config.engine),
            game,
            starts,
            life,
            look: None,
            config,
        };
        let starts = rules.starts.len();
        let limits = &rules.config.max_episode_steps;
        let lane = |(i, machine): (usize, Machine)| Lane::new(machine, &rules, i % starts, limits[i]);
        let lanes: Vec<_> = machines.into_iter().enumerate().map(lane).collect();
        let count = lanes.len();
        let endings = if rules.config.autoreset == Autoreset::SameStep { count } else { 0 };
        Ok(Self {
            infos,
            pads: vec![Pads::default(); count],
            lanes,
            scratch: (0..threads).map(|_| Scratch::default()).collect(),
            crew: threads::crew(threads)?,
            shares: deal::shares(count, threads),
            process: std::process::id(),
            blank: trial.saved(),
            trial,
            endings: (0..endings).map(|_| Ending::default()).collect(),
            stepping: Duration::ZERO,
            calls: 0,
            rules,
        })
    }

    pub fn config(&self) -> &Config {
        &self.rules.config
    }

    pub fn game(&self) -> &Game {
        &self.rules.game
    }

    pub fn infos(&self) -> &Infos {
        &self.infos
    }

    pub fn start_names(&self) -> impl Iterator<Item = &str> {
        self.rules.starts.iter().map(|start| &*start.name)
    }

    /// Threads that run lanes, the caller's included.
    pub fn threads(&self) -> usize {
        self.scratch.len()
    }

    /// Shape of one lane's stacked image, if there is one.
    pub fn image_shape(&self) -> Option<[usize; 3]> {
        self.rules.config.observed.image.then(|| self.rules.observer.shape())
    }

    /// Bytes of one lane's RAM observation, 0 for none.
    pub fn ram_bytes(&self) -> usize {
        self.rules.ram_bytes
    }

    fn image_bytes(&self) -> usize {
        self.image_shape().map_or(0, |shape| shape.iter().product())
    }

    /// Adds a start; gives its index. It takes the place of `forgotten`, unless lanes begin there.
    ///
    /// # Errors
    /// When a console of this cartridge cannot go on from it.
    pub fn add_start(&mut self, start: Start, forgotten: Option<usize>) -> Result<usize, StartError> {
        if let Some(state) = &start.state {
            let refused = |reason| StartError::Refused { name: start.name.to_string(), reason };
            self.trial.import(state).map_err(refused)?;
        }
        let free = |&place: &usize| place < self.rules.starts.len() && self.starts().all(|used| used != place);
        if let Some(place) = forgotten.filter(free) {
            self.rules.starts[place] = start;
            return Ok(place);
        }
        self.rules.starts.push(start);
        Ok(self.rules.starts.len() - 1)
    }

    pub fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        self.lanes.iter().map(|lane| lane.outcome)
    }

    /// Index of the start from which each lane's episodes begin.
    pub fn starts(&self) -> impl Iterator<Item = usize> {
        self.lanes.iter().map(|lane| lane.start)
    }

    pub fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.lanes.iter().map(|lane| &lane.tally)
    }

    /// What the last step's ended episodes showed last: lane, image, RAM, infos.
    pub fn endings(&self) -> impl Iterator<Item = (usize, &[u8], &[u8], &Tally)> {
        let present = self.endings.iter().enumerate().filter(|(_, ending)| ending.present);
        present.map(|(lane, ending)| (lane, ending.image.as_slice(), ending.ram.as_slice(), &ending.tally))
    }

    /// Begins an episode in the lanes of `mask` (all without one); writes the observations of all lanes. A lane whose
    /// episode ended with a life alone goes on in its game, unless it gets a seed or `anew` says that it must not.
    ///
    /// # Errors
    /// When a length is wrong, a lane outside the mask was never reset, or `interrupted` said yes.
    pub fn reset(
        &mut self,
        mask: Option<&[bool]>,
        seeds: &[Option<u64>],
        starts: Option<&[usize]>,
        anew: bool,
        buffers: Buffers,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), BatchError> {
        let count = self.lanes.len();
        let chosen = |lane: usize| mask.is_none_or(|mask| mask[lane]);
        length("mask entries", mask.map_or(count, <[_]>::len), count)?;
        length("seeds", seeds.len(), count)?;
        length("start states", starts.map_or(count, <[_]>::len), count)?;
        self.check_buffers(&buffers)?;
        if let Some(lane) = (0..count).find(|&lane| !chosen(lane) && self.lanes[lane].phase == Phase::New) {
            return Err(BatchError::NotReset { lane });
        }
        self.run(buffers, interrupted, |Dealt { index, lane, mut slot, .. }, rules, scratch| {
            if chosen(index) {
                if let Some(starts) = starts {
                    lane.set_start(starts[index]);
                }
                if let Some(seed) = seeds[index] {
                    lane.seed(seed);
                }
                lane.reset::<Silent>(rules, scratch, anew || seeds[index].is_some());
            }
            slot.fill(lane, rules);
        })
    }

    /// Plays one action a lane and writes the observations. Lanes outside `mask` neither move nor write; their actions
    /// have to be in range all the same.
    ///
    /// # Errors
    /// When an action is out of range, a lane cannot be stepped, or `interrupted` said yes.
    pub fn step(
        &mut self,
        mask: Option<&[bool]>,
        actions: &[i64],
        buffers: Buffers,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), BatchError> {
        let clock = Instant::now();
        let space = &self.rules.config.actions;
        let chosen = |lane: usize| mask.is_none_or(|mask| mask[lane]);
        length("mask entries", mask.map_or(self.lanes.len(), <[_]>::len), self.lanes.len())?;
        length("action numbers", actions.len(), self.lanes.len() * space.width())?;
        self.check_buffers(&buffers)?;
        for (lane, (pads, action)) in self.pads.iter_mut().zip(actions.chunks_exact(space.width())).enumerate() {
            *pads =
                space.decode(action).map_err(|(number, count)| BatchError::Action { lane, number, most: count - 1 })?;
        }
        (0..self.lanes.len()).filter(|&lane| chosen(lane)).try_for_each(|lane| self.steppable(lane))?;
        let pads = std::mem::take(&mut self.pads);
        let ran = self.run(buffers, interrupted, |mut dealt, rules, scratch| {
            let index = dealt.index;
            if chosen(index) {
                match rules.look {
                    None => play::<Silent>(dealt, pads[index], rules, scratch),
                    Some(_) => play::<Clocked>(dealt, pads[index], rules, scratch),
                }
            } else if let Some(ending) = &mut dealt.ending {
                ending.present = false;
            }
        });
        self.pads = pads;
        self.stepping += clock.elapsed();
        self.calls += 1;
        ran
    }

    /// Writes the observations as they are.
    ///
    /// # Errors
    /// When a buffer has the wrong length.
    pub fn observe(&mut self, buffers: Buffers) -> Result<(), BatchError> {
        self.check_buffers(&buffers)?;
        self.run(buffers, &mut || false, |Dealt { lane, mut slot, .. }, rules, _| slot.fill(lane, rules))
    }

    /// Whether a step would move the lane: it was reset, and its episode has not ended or is reset by the step.
    ///
    /// # Errors
    /// Why not.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn steppable(&self, lane: usize) -> Result<(), BatchError> {
        match self.lanes[lane].phase {
            Phase::New => Err(BatchError::NotReset { lane }),
            Phase::Ended if self.rules.config.autoreset == Autoreset::Disabled => Err(BatchError::Ended { lane }),
            Phase::Running | Phase::Ended => Ok(()),
        }
    }

    fn check_buffers(&self, buffers: &Buffers) -> Result<(), BatchError> {
        if std::process::id() != self.process {
            return Err(BatchError::OtherProcess);
        }
        length("image bytes", buffers.image.len(), self.lanes.len() * self.image_bytes())?;
        length("RAM bytes", buffers.ram.len(), self.lanes.len() * self.rules.ram_bytes)
    }

    /// Lets the threads take lanes, with their slots, until none is left. The calling thread asks `interrupted` now and
    /// then; after a yes every lane has to be reset, since some have moved and some have not.
    fn run(
        &mut self,
        buffers: Buffers,
        interrupted: &mut dyn FnMut() -> bool,
        job: impl Fn(Dealt, &Rules, &mut Scratch) + Sync,
    ) -> Result<(), BatchError> {
        let bytes = (self.image_bytes(), self.rules.ram_bytes);
        let deal = Deal::new(&mut self.shares, &mut self.lanes, buffers, bytes, &mut self.endings);
        let rules = &self.rules;
        let stop = AtomicBool::new(false);
        let work = |thread: usize, scratch: &mut Scratch, stops: &mut dyn FnMut() -> bool| {
            while !stop.load(Ordering::Relaxed) {
                let Some(dealt) = deal.next(thread) else { break };
                job(dealt, rules, scratch);
                if stops() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        };
        let mut asked = Instant::now();
        let mut stops = || {
            asked.elapsed() >= BETWEEN_QUESTIONS && {
                asked = Instant::now();
                interrupted()
            }
        };
        self.crew.run(
            &mut self.scratch,
            |scratch| work(0, scratch, &mut stops),
            |thread, scratch| work(thread, scratch, &mut || false),
        );
        let mut faults = self.lanes.iter_mut().enumerate().filter(|_| self.rules.game.program.is_some());
        let fault = faults.find_map(|(lane, found)| Some((lane, found.fault.take()?)));
        let broken_off = match fault {
            Some((lane, reason)) => BatchError::Script { lane, reason },
            None if stop.into_inner() => BatchError::Interrupted,
            None => return Ok(()),
        };
        for lane in &mut self.lanes {
            lane.phase = Phase::New;
            lane.fault = None;
        }
        Err(broken_off)
    }

    /// The lane as it is, for lanes of the same cartridge and image in this process.
    ///
    /// # Errors
    /// When there is no such lane, it was never reset, or its scenario's scripts keep values that cannot be carried over.
    pub fn keep(&self, lane: usize) -> Result<Kept, BatchError> {
        let kept = Kept::of(self.ready(lane)?, &self.rules);
        kept.map_err(|reason| BatchError::Snapshot { lane, reason: reason.into() })
    }

    /// Takes over kept lanes, `None` leaves a lane alone. Nothing changes unless all of them fit.
    ///
    /// # Errors
    /// The first one that does not fit, and why.
    pub fn recall(&mut self, kept: &[Option<&Kept>]) -> Result<(), BatchError> {
        length("kept lanes", kept.len(), self.lanes.len())?;
        for (lane, kept) in kept.iter().enumerate() {
            let checked = kept.map_or(Ok(()), |kept| kept.check(&self.rules, &self.trial));
            checked.map_err(|reason| BatchError::Snapshot { lane, reason })?;
        }
        for (lane, kept) in self.lanes.iter_mut().zip(kept) {
            if let Some(kept) = kept {
                kept.load(lane, &self.rules);
            }
        }
        Ok(())
    }

    /// Reads what `Kept::to_bytes` gave, perhaps in another process, for lane `lane`.
    ///
    /// # Errors
    /// When the bytes are no snapshot of this cartridge and image.
    pub fn read(&self, lane: usize, bytes: &[u8]) -> Result<Kept, BatchError> {
        let read = snapshot::parse(bytes, &self.rules, &self.blank);
        read.map_err(|reason| BatchError::Snapshot { lane, reason })
    }

    /// Puts the state of lane `source` into the lanes of `mask`.
    ///
    /// # Errors
    /// When there is no such lane, it was never reset, or the mask's length is wrong.
    pub fn fork(&mut self, source: usize, mask: &[bool]) -> Result<(), BatchError> {
        length("mask entries", mask.len(), self.lanes.len())?;
        let kept = self.keep(source)?;
        for (lane, _) in self.lanes.iter_mut().zip(mask).filter(|(_, chosen)| **chosen) {
            kept.load(lane, &self.rules);
        }
        Ok(())
    }

    /// Writes down what is pressed from now on in the lanes of `mask`, and no longer in the others.
    ///
    /// # Errors
    /// When the mask's length is wrong.
    pub fn log_inputs(&mut self, mask: &[bool]) -> Result<(), BatchError> {
        length("mask entries", mask.len(), self.lanes.len())?;
        for (lane, &chosen) in self.lanes.iter_mut().zip(mask) {
            lane.log = chosen.then(|| Box::new(Log::new(lane.engine.export())));
        }
        Ok(())
    }

    /// What was pressed in a lane since its last reset, restore or `log_inputs`; with `before` in the episode before.
    /// `None` where nothing was written down.
    ///
    /// # Errors
    /// When there is no such lane.
    pub fn inputs(&self, lane: usize, before: bool) -> Result<Option<&Inputs>, BatchError> {
        let found = self.lanes.get(lane).ok_or(BatchError::NoLane { lane, most: self.lanes.len() - 1 })?;
        Ok(found.log.as_ref().and_then(|log| if before { log.before.as_ref() } else { Some(&log.now) }))
    }

    /// SHA-1 of the ROM's payload.
    pub fn rom(&self) -> &[u8; 20] {
        &self.rules.rom
    }

    fn ready(&self, lane: usize) -> Result<&Lane, BatchError> {
        match self.lanes.get(lane) {
            None => Err(BatchError::NoLane { lane, most: self.lanes.len() - 1 }),
            Some(found) if found.phase == Phase::New => Err(BatchError::NotReset { lane }),
            Some(found) => Ok(found),
        }
    }

    /// Writes the lane's last picture as 224 rows of 240 RGB pixels.
    ///
    /// # Errors
    /// When there is no such lane or it was never reset.
    pub fn render(&mut self, lane: usize, out: &mut [u8]) -> Result<(), BatchError> {
        self.ready(lane)?;
        length("picture bytes", out.len(), 3 * WINDOW_HEIGHT * WINDOW_WIDTH)?;
        self.lanes[lane].render(&self.rules, &mut self.scratch[0], out);
        Ok(())
    }

    /// Writes every lane's RAM as its processor sees it, 2,048 bytes a lane.
    pub fn ram(&self, out: &mut [u8]) {
        for (lane, out) in self.lanes.iter().zip(out.chunks_exact_mut(2048)) {
            out.copy_from_slice(lane.engine.ram());
        }
    }

    /// Starts or stops the clocks inside lanes; without them only whole steps are timed.
    pub fn time_lanes(&mut self, on: bool) {
        self.rules.look = on.then(probe::cost_of_a_look);
    }

    /// Waits until the code that was reached so far is translated, so that no translation runs inside a measurement.
    pub fn settle(&mut self) {
        // All lanes share one translation; each takes it over before its next frame.
        if let Some(lane) = self.lanes.first_mut() {
            lane.engine.settle();
        }
    }

    pub fn profile(&self) -> Profile {
        let work = self.lanes.iter().map(|lane| lane.work).sum();
        let lanes = self.lanes.iter().filter_map(|lane| lane.engine.translated());
        // Of the newest generation; what lanes interpreted adds up.
        let translated = lanes.reduce(|a, b| {
            let interpreted = a.interpreted + b.interpreted;
            Translated { interpreted, ..if b.generation > a.generation { b } else { a } }
        });
        let lane_bytes = self.lanes.iter().map(Lane::bytes).max().unwrap_or_default();
        Profile { work, stepping: self.stepping, calls: self.calls, translated, lane_bytes }
    }
}

/// One lane's part of a step.
fn play<P: Probe>(dealt: Dealt, pads: Pads, rules: &Rules, scratch: &mut Scratch) {
    let Dealt { lane, mut slot, ending, .. } = dealt;
    if lane.phase == Phase::Ended {
        lane.reset::<P>(rules, scratch, false);
    } else {
        lane.step::<P>(rules, pads, scratch);
    }
    if let Some(ending) = ending {
        ending.present = lane.phase == Phase::Ended;
        if ending.present {
            ending.image.resize(slot.image.len(), 0);
            ending.ram.resize(slot.ram.len(), 0);
            Slot { image: &mut ending.image, ram: &mut ending.ram }.fill(lane, rules);
            ending.tally.copy_from(&lane.tally);
            let outcome = lane.outcome;
            lane.reset::<P>(rules, scratch, false);
            lane.outcome = outcome;
        }
    }
    P::span(Part::Observe, || slot.fill(lane, rules));
    if let Some(look) = rules.look {
        lane.work.spent = lane.work.spent + probe::take(look);
    }
}

/// Which of the game's values counts lives.
fn life(game: &Game, wanted: &str) -> Result<usize, ConfigError> {
    game.names().position(|name| name == wanted).ok_or_else(|| {
        let names: Vec<_> = game.names().collect();
        let expected = format!("the name of a variable of data.json ({})", names.join(", "));
        ConfigError::new("episodic_life", expected, format_args!("{wanted:?}"))
    })
}

/// The image options, so that kept lanes of other ones are told apart.
fn image_words(config: &Config) -> String {
    if config.observed.image { format!("{:?}", config.image) } else { "none".into() }
}
