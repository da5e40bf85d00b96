//! What RAM means: a game's Stable Retro files compiled to readers and rules.
//!
//! `data.json` names places in memory (`decode` reads one place, `variables` the whole file); `scenario.json`
//! turns their values into reward and "done" (`measure` has the operators, `scenario` the file). The semantics are
//! those of stable-retro 1.0.1's code, not of its prose, wherever the two differ.
//!
//! Left to others: which file of which folder is read (Python), when a frame is evaluated (`vec_env`), the
//! machine itself: this room sees bytes of memory and no engine type.
//!
//! To add a value format: (1) a row in `decode::FORMATS`, (2) its arm in `ValueType::decode`, (3) a row in the
//! decode table test. To add an operator: (1) a row in `measure::OPERATORS`, (2) its arm in `Operator::apply`.

mod decode;
mod measure;
mod scenario;
mod variables;

pub use decode::ValueType;
pub use measure::{Measurement, Operator};
pub use scenario::{Condition, Rule, Scenario, Verdict};
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
        "scenario.json: {place} names the script {script:?}; Lua scripts are not supported here, \
         give the condition as variables or pass another scenario"
    )]
    Script { place: String, script: String },
}

/// Everything that a lane needs to know about a game.
#[derive(Debug, Clone)]
pub struct Game {
    pub variables: Variables,
    pub scenario: Scenario,
    /// Places where the files mean something else than their documentation says, for the user to read once.
    pub warnings: Vec<String>,
}

impl Game {
    /// Compiles both files. `work_ram` is the size of the cartridge's work RAM in bytes: variables outside memory
    /// are left out, as Stable Retro does, and a scenario that uses one is an error here, not at the first step.
    ///
    /// # Errors
    /// A [`GameError`] that names the file, the place in it and what was expected.
    pub fn compile(data: &str, scenario: &str, work_ram: usize) -> Result<Self, GameError> {
        let parse = |file, text| {
            serde_json::from_str::<serde_json::Value>(text)
                .map_err(|e| GameError::NotJson { file, reason: e.to_string() })
        };
        let mut warnings = Vec::new();
        let variables = Variables::compile(&parse("data.json", data)?, work_ram, &mut warnings)?;
        let scenario = Scenario::compile(&parse("scenario.json", scenario)?, &variables, &mut warnings)?;
        Ok(Self { variables, scenario, warnings })
    }
}
