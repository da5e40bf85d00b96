//! What RAM means: a game's Stable Retro files compiled to readers and rules.
//!
//! `data.json` names places in memory (`decode` reads one place, `variables` the whole file); `scenario.json`
//! turns their values into reward and "done" (`measure` has the operators, `scenario` the file), with Lua scripts where
//! it names some (`program` is what can be said of them before they run, `script` runs them). `episode` puts it all
//! together, frame by frame. `signals` is more to know of memory, in a file of ours. The semantics are those of stable-retro 1.0.1's code, not of its prose, wherever the two
//! differ.
//!
//! Left to others: which file of which folder is read (Python), when a frame is evaluated (`vec_env`), the
//! machine itself: this room sees bytes of memory and no engine type.
//!
//! To add a value format: (1) a row in `decode::FORMATS`, (2) its arm in `ValueType::decode`, (3) a row in the
//! decode table test. To add an operator: (1) a row in `measure::OPERATORS`, (2) its arm in `Operator::apply`.

mod decode;
mod episode;
mod measure;
mod program;
mod scenario;
#[cfg(feature = "lua")]
mod script;
#[cfg(not(feature = "lua"))]
#[path = "game/no_script.rs"]
mod script;
mod signals;
mod variables;

pub use decode::ValueType;
pub use episode::Episode;
pub use measure::{Measurement, Operator};
pub use program::{Program, Source};
pub use scenario::{Condition, PLAYERS, Rule, Scenario, Verdict};
pub use script::ScriptError;
pub use signals::Signals;
pub use variables::{Variable, Variables};

/// What the game's files may look at: work memory as the processor addresses it.
///
/// ```text
/// $0000-$07FF  ram        2 KiB in the console
/// $6000-$7FFF  work_ram   up to 8 KiB on the cartridge, empty where the board has none
/// ```
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    pub ram: &'a [u8],
    pub work_ram: &'a [u8],
}

impl Memory<'_> {
    /// The byte at an address, where there is memory.
    #[must_use]
    pub fn byte(&self, address: usize) -> Option<u8> {
        match address.checked_sub(0x6000) {
            None => self.ram.get(address).copied(),
            Some(offset) => self.work_ram.get(offset).copied(),
        }
    }
}

/// A fault in a game's files: what was expected, what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GameError {
    #[error("{file} is not valid JSON: {reason}")]
    NotJson { file: &'static str, reason: String },
    #[error("data.json: variable {name:?} has no {field:?}; Stable Retro needs both \"address\" and \"type\"")]
    MissingField { name: String, field: &'static str },
    #[error("data.json: expected an object \"info\" of variables, found none")]
    NoInfo,
    #[error(
        "scenario.json: {place} uses variable {name:?}, which data.json does not define inside this cartridge's memory; \
         known variables: {known}"
    )]
    UnknownVariable { place: String, name: String, known: String },
    #[error("scenario.json: {place}: expected {expected}, found {found}")]
    BadValue { place: String, expected: &'static str, found: String },
    #[error(
        "scenario.json: {place} names the script function {script:?}; expected \"lua:FUNCTION\" and the file that has it \
         under \"scripts\""
    )]
    Script { place: String, script: String },
    #[error("scenario.json: \"scripts\" names {file:?}, which is not there beside it")]
    NoSuchScript { file: String },
    #[error("signals.json: {place}: expected {expected}, found {found}")]
    BadSignal { place: String, expected: &'static str, found: String },
    #[error(transparent)]
    BadScript(#[from] ScriptError),
}

/// Everything that a lane needs to know about a game.
#[derive(Debug, Clone)]
pub struct Game {
    pub variables: Variables,
    pub scenario: Scenario,
    /// The scenario's scripts, if it has some.
    pub program: Option<Program>,
    /// Asked for, if any.
    pub signals: Signals,
    /// Places where the files mean something else than their documentation says, for the user to read once.
    pub warnings: Vec<String>,
}

impl Game {
    /// Compiles the files. `scripts` are those that the scenario names. `work_ram` is the size of the cartridge's work
    /// RAM in bytes: variables outside memory are left out, as Stable Retro does, and a scenario that uses one is an
    /// error here, not at the first step.
    ///
    /// # Errors
    /// A [`GameError`] that names the file, the place in it and what was expected.
    pub fn compile(data: &str, scenario: &str, scripts: &[Source], work_ram: usize) -> Result<Self, GameError> {
        let parse = |file, text| {
            serde_json::from_str::<serde_json::Value>(text)
                .map_err(|e| GameError::NotJson { file, reason: e.to_string() })
        };
        let mut warnings = Vec::new();
        let variables = Variables::compile(&parse("data.json", data)?, work_ram, &mut warnings)?;
        let file = parse("scenario.json", scenario)?;
        let program = Program::compile(&file, scripts, &variables, &mut warnings)?;
        let scenario = Scenario::compile(&file, &variables, program.as_ref(), &mut warnings)?;
        Ok(Self { variables, scenario, program, signals: Signals::default(), warnings })
    }

    /// The names of what an episode's values are: the variables, then what the scripts add, each in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.names().chain(self.program.iter().flat_map(|program| program.added.iter().map(String::as_str)))
    }

    /// How many there are.
    #[must_use]
    pub fn width(&self) -> usize {
        self.variables.len() + self.program.as_ref().map_or(0, |program| program.added.len())
    }
}
