//! One episode, frame by frame: values, what a frame was worth, whether it was the last.
//!
//! After each frame: memory is read, "done" is decided, then each player is rewarded, then the values are what infos tell.
//! A change is that between two readings, whatever a script wrote in between. The frame of a reset is judged too, for
//! the sake of scripts that count, but nobody sees its verdict.

use super::script::Scripts;
use super::{Game, Memory, ScriptError, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default)]
pub struct Episode {
    /// The readings after the frame before the last and after the last.
    before: Vec<i64>,
    now: Vec<i64>,
    /// With scripts: the values as they left them.
    live: Vec<i64>,
    scripts: Option<Scripts>,
    written: Vec<(u16, u8)>,
}

/// What a snapshot needs beside memory, of a game with scripts.
#[derive(Serialize, Deserialize)]
struct Saved {
    now: Vec<i64>,
    scripts: Vec<u8>,
}

impl Saved {
    fn read(game: &Game, bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(bytes).ok().filter(|saved| saved.now.len() == game.width())
    }
}

impl Episode {
    #[must_use]
    pub fn new(game: &Game) -> Self {
        let values = vec![0; game.width()];
        let live = if game.program.is_some() { values.clone() } else { Vec::new() };
        Self { before: values.clone(), now: values, live, scripts: None, written: Vec::new() }
    }

    /// Begins with the memory after the first frame: no change is counted from what was before it.
    ///
    /// # Errors
    /// When a script fails.
    pub fn begin(&mut self, game: &Game, memory: Memory) -> Result<(), ScriptError> {
        self.scripts = None;
        self.resume(game, memory);
        if let Some(program) = &game.program {
            self.scripts = Some(Scripts::start(program, &game.variables, memory)?);
            self.judge(game, memory)?;
        }
        Ok(())
    }

    /// Goes on with the memory after the next frame.
    ///
    /// # Errors
    /// When a script fails.
    pub fn frame(&mut self, game: &Game, memory: Memory) -> Result<Verdict, ScriptError> {
        std::mem::swap(&mut self.before, &mut self.now);
        game.variables.read_all(memory, &mut self.now);
        self.judge(game, memory)
    }

    fn judge(&mut self, game: &Game, memory: Memory) -> Result<Verdict, ScriptError> {
        self.written.clear();
        let (Some(scripts), Some(program)) = (&mut self.scripts, &game.program) else {
            return Ok(game.scenario.judge(&self.before, &self.now));
        };
        scripts.show(memory);
        let (before, now, live) = (&self.before, &self.now, &mut self.live);
        let verdict = game.scenario.judge_with(before, now, live, |function, live| -> Result<f64, ScriptError> {
            let result = function.map(|function| scripts.call(function)).transpose()?;
            scripts.read(&game.variables, &program.added, live);
            Ok(result.unwrap_or_default())
        })?;
        scripts.next_frame();
        scripts.written(&mut self.written);
        Ok(verdict)
    }

    /// The values after the last frame, in the order of [`Game::names`].
    #[must_use]
    pub fn values(&self) -> &[i64] {
        if self.scripts.is_some() { &self.live } else { &self.now }
    }

    /// Bytes outside of this structure, those of scripts aside.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        (self.before.capacity() + self.now.capacity() + self.live.capacity()) * size_of::<i64>()
            + self.written.capacity() * size_of::<(u16, u8)>()
    }

    /// What scripts wrote after the last frame: addresses and bytes, to be put into memory before the next one.
    #[must_use]
    pub fn written(&self) -> &[(u16, u8)] {
        &self.written
    }

    /// Takes memory over as it is: no change is counted across it.
    fn resume(&mut self, game: &Game, memory: Memory) {
        game.variables.read_all(memory, &mut self.now);
        self.before.copy_from_slice(&self.now);
    }

    /// What a snapshot must hold beside memory; empty for a game without scripts.
    ///
    /// # Errors
    /// When a script keeps values that cannot be carried over.
    pub fn save(&self, game: &Game) -> Result<Vec<u8>, ScriptError> {
        let (Some(scripts), Some(program)) = (&self.scripts, &game.program) else { return Ok(Vec::new()) };
        let saved = Saved { now: self.now.clone(), scripts: scripts.save(program)? };
        Ok(serde_json::to_vec(&saved).expect("numbers and bytes are JSON"))
    }

    /// Whether [`Episode::save`] gave these bytes of an episode of this game.
    #[must_use]
    pub fn fits(game: &Game, saved: &[u8]) -> bool {
        game.program.is_none() || Saved::read(game, saved).is_some()
    }

    /// The episode that [`Episode::save`] was asked for, in its memory.
    ///
    /// # Errors
    /// When the scripts cannot be loaded again.
    ///
    /// # Panics
    /// When the bytes do not fit.
    pub fn restored(game: &Game, memory: Memory, saved: &[u8]) -> Result<Self, ScriptError> {
        let mut episode = Self::new(game);
        episode.resume(game, memory);
        if let Some(program) = &game.program {
            let saved = Saved::read(game, saved).expect("it was asked whether they fit");
            let scripts = Scripts::restored(program, &game.variables, memory, &saved.scripts)?;
            scripts.read(&game.variables, &program.added, &mut episode.live);
            (episode.now, episode.scripts) = (saved.now, Some(scripts));
        }
        Ok(episode)
    }
}
