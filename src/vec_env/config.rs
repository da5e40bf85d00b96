//! What a vector environment is asked to be, checked before anything is made.
//!
//! Defaults and limits of every option stand here once; Python passes its arguments through. Paths, games and
//! states are Python's business, the meaning of actions is `actions`'.

mod fields;

pub use fields::ConfigError;
pub(crate) use fields::Fields;

use super::actions::{ActionSpace, console_groups};
use super::observe::{Algorithm, Crop, ImageSpec, Layout, WINDOW_HEIGHT, WINDOW_WIDTH};
use crate::emulator::engine::{EngineOptions, SWITCHES};
use crate::emulator::game::Scenario;
use serde_json::Value;

/// What happens to a lane whose episode has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autoreset {
    /// The next step resets it; that step's action is ignored and its reward is 0.
    NextStep,
    /// The step that ends it also resets it; the last observation is handed out apart.
    SameStep,
    /// The caller resets it.
    Disabled,
}

/// Which observations there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    pub image: bool,
    pub ram: bool,
}

const OBSERVED: [(&str, Observed); 3] = [
    ("image", Observed { image: true, ram: false }),
    ("ram", Observed { image: false, ram: true }),
    ("dict", Observed { image: true, ram: true }),
];
const AUTORESET: [(&str, Autoreset); 3] =
    [("NextStep", Autoreset::NextStep), ("SameStep", Autoreset::SameStep), ("Disabled", Autoreset::Disabled)];
/// Whether the places of a stack before an episode's first observation are black.
const STACK_STARTS: [(&str, bool); 2] = [("repeat", false), ("zero", true)];
const CROP_MODES: [(&str, bool); 2] = [("mask", false), ("cut", true)];
const ALGORITHMS: [(&str, Algorithm); 3] =
    [("area", Algorithm::Area), ("nearest", Algorithm::Nearest), ("bilinear", Algorithm::Bilinear)];
const LAYOUTS: [(&str, Layout); 2] = [("chw", Layout::Chw), ("hwc", Layout::Hwc)];

/// More lanes than this do not fit into a sensible machine; it catches a mistyped number.
const MOST_LANES: u64 = 1 << 16;
const MOST_THREADS: u64 = 1024;
/// The default crop hides the status bar that most games show in the top rows.
const DEFAULT_CROP: [usize; 4] = [32, 0, 0, 0];
const DEFAULT_SIZE: [usize; 2] = [84, 84];

#[derive(Debug, Clone)]
pub struct Config {
    pub num_envs: usize,
    pub engine: EngineOptions,
    pub frame_skip: u32,
    pub observed: Observed,
    pub image: ImageSpec,
    pub actions: ActionSpace,
    /// Pads that are played, 1 or 2.
    pub players: usize,
    /// Each lane's limit.
    pub max_episode_steps: Vec<Option<u64>>,
    pub autoreset: Autoreset,
    pub noop_reset_max: u32,
    pub sticky_action_prob: f64,
    pub reward_clip: bool,
    /// The game's variable that ends an episode when it gets less.
    pub episodic_life: Option<String>,
    /// The first observation of an episode does not fill the stack: what comes before it is black.
    pub black_start: bool,
    /// `None`: every key.
    pub info_keys: Option<Vec<String>>,
    /// `None`: the processors that this process may use.
    pub num_threads: Option<usize>,
}

impl Config {
    /// Reads the options of `rollcart.NesVectorEnv`. A game may have its own groups of button combinations and crop.
    ///
    /// # Errors
    /// The first option that is not what it has to be.
    pub fn read(options: Value, game: Option<&Scenario>) -> Result<Self, ConfigError> {
        let mut fields = Fields::new("NesVectorEnv", options)?;
        let engine = engine_options(&mut fields)?;
        let frame_skip = fields.integer("frame_skip", 4, 1..=60)? as u32;
        let image = image(&mut fields, game.and_then(|game| game.crops[0]).unwrap_or_default())?;
        let players = fields.integer("players", 1, 1..=2)? as usize;
        let groups = game.and_then(|game| game.actions.clone()).unwrap_or_else(console_groups);
        let num_envs = fields.integer("num_envs", 1, 1..=MOST_LANES)? as usize;
        let config = Self {
            num_envs,
            engine,
            frame_skip,
            observed: fields.choice("obs", &OBSERVED)?,
            image,
            actions: ActionSpace::read(fields.take("actions"), &groups, players)?,
            players,
            max_episode_steps: fields.integer_per_lane("max_episode_steps", num_envs, 1..=u64::from(u32::MAX))?,
            autoreset: fields.choice("autoreset_mode", &AUTORESET)?,
            noop_reset_max: fields.integer("noop_reset_max", 0, 0..=100_000)? as u32,
            sticky_action_prob: fields.probability("sticky_action_prob")?,
            reward_clip: fields.flag("reward_clip", false)?,
            episodic_life: episodic_life(fields.take("episodic_life"))?,
            black_start: fields.choice("stack_start", &STACK_STARTS)?,
            info_keys: info_keys(fields.take("info_keys"))?,
            num_threads: fields.optional_integer("num_threads", 1..=MOST_THREADS)?.map(|n| n as usize),
        };
        fields.finish()?;
        Ok(config)
    }
}

fn engine_options(fields: &mut Fields) -> Result<EngineOptions, ConfigError> {
    match fields.take("engine") {
        None => {}
        Some(Value::String(name)) if name == "fast" => {}
        Some(Value::String(name)) if name == "reference" => {
            return Err(ConfigError(
                "engine: the reference engine is not part of this version; use engine=\"fast\"".into(),
            ));
        }
        Some(other) => return Err(ConfigError::new("engine", "\"fast\"", other)),
    }
    let mut options = EngineOptions::from_environment().map_err(|error| ConfigError(error.to_string()))?;
    if let Some(value) = fields.take("engine_options") {
        let mut fields = Fields::new("engine_options", value)?;
        options.ram_fill = fields.integer("ram_fill", u64::from(options.ram_fill), 0..=255)? as u8;
        for (name, at) in SWITCHES {
            let switch = at(&mut options);
            *switch = fields.flag(name, *switch)?;
        }
        options.jit.layout_seed = fields.integer("layout_seed", options.jit.layout_seed, 0..=u64::MAX)?;
        fields.finish_among(SWITCHES.iter().map(|(name, _)| *name).chain(["layout_seed", "ram_fill"]))?;
    }
    Ok(options)
}

/// `window` is what the game's scenario shows: x, y, width, height.
fn image(fields: &mut Fields, window: [usize; 4]) -> Result<ImageSpec, ConfigError> {
    const CROP: &str = "(top, right, bottom, left)";
    let [top, right, bottom, left] = match fields.take("crop") {
        None => DEFAULT_CROP,
        Some(Value::String(word)) if word == "scenario" => margins(window),
        Some(Value::String(word)) => {
            return Err(ConfigError::new("crop", format_args!("{CROP} or \"scenario\""), format_args!("{word:?}")));
        }
        Some(value) => {
            let object = Value::Object([("crop".to_owned(), value)].into_iter().collect());
            Fields::new("crop", object)?.integers("crop", CROP, 0..=240)?.unwrap_or(DEFAULT_CROP)
        }
    };
    if top + bottom >= WINDOW_HEIGHT || left + right >= WINDOW_WIDTH {
        return Err(ConfigError::new(
            "crop",
            format_args!(
                "(top, right, bottom, left) that leave some of {WINDOW_HEIGHT} rows and {WINDOW_WIDTH} columns"
            ),
            format_args!("({top}, {right}, {bottom}, {left})"),
        ));
    }
    // False, which Python's None becomes, asks for no resizing: an absent option has its default.
    let size = match fields.take("resize") {
        Some(Value::Bool(false)) => None,
        None => Some(DEFAULT_SIZE),
        Some(value) => {
            let object = Value::Object([("resize".to_owned(), value)].into_iter().collect());
            Fields::new("resize", object)?.integers("resize", "(height, width), or None for none", 1..=1024)?
        }
    };
    Ok(ImageSpec {
        grayscale: fields.flag("grayscale", true)?,
        crop: Crop { top, right, bottom, left },
        cut: fields.choice("crop_mode", &CROP_MODES)?,
        size: size.map(|[height, width]: [usize; 2]| (height, width)),
        algorithm: fields.choice("resize_algorithm", &ALGORITHMS)?,
        layout: fields.choice("layout", &LAYOUTS)?,
        frame_stack: fields.integer("frame_stack", 4, 1..=64)? as usize,
        maxpool: fields.flag("maxpool", false)?,
    })
}

/// The pixels that a window leaves out on each side; a width or height of 0 or too much reaches to the edge.
fn margins([x, y, width, height]: [usize; 4]) -> [usize; 4] {
    let beyond = |from: usize, length: usize, most: usize| match from + length {
        end if length > 0 && end <= most => most - end,
        _ => 0,
    };
    [y, beyond(x, width, WINDOW_WIDTH), beyond(y, height, WINDOW_HEIGHT), x]
}

/// True stands for the name that most data files use.
fn episodic_life(value: Option<Value>) -> Result<Option<String>, ConfigError> {
    match value {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some("lives".into())),
        Some(Value::String(name)) => Ok(Some(name)),
        Some(other) => Err(ConfigError::new("episodic_life", "True, False or the name of a variable", other)),
    }
}

fn info_keys(value: Option<Value>) -> Result<Option<Vec<String>>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    serde_json::from_value(value.clone()).map(Some).map_err(|_| ConfigError::new("info_keys", "a list of names", value))
}

#[cfg(test)]
mod tests {
    use super::{Autoreset, Config, Crop, Scenario};
    use serde_json::json;

    #[test]
    fn no_options_give_the_documented_defaults() {
        let config = Config::read(json!({}), None).unwrap();
        assert_eq!((config.num_envs, config.frame_skip, config.image.frame_stack), (1, 4, 4));
        assert_eq!((config.image.crop.top, config.image.size), (32, Some((84, 84))));
        assert_eq!(config.autoreset, Autoreset::NextStep);
        assert!(config.observed.image && !config.observed.ram && config.image.grayscale && !config.image.cut);
    }

    #[test]
    fn a_scenarios_window_is_cropped_to_by_name() {
        for (window, margins) in
            [([0, 0, 0, 0], [0, 0, 0, 0]), ([8, 16, 200, 100], [16, 32, 108, 8]), ([40, 0, 300, 224], [0, 0, 0, 40])]
        {
            let mut scenario = Scenario::default();
            scenario.crops[0] = Some(window);
            let crop = Config::read(json!({"crop": "scenario"}), Some(&scenario)).unwrap().image.crop;
            assert_eq!([crop.top, crop.right, crop.bottom, crop.left], margins, "{window:?}");
        }
        assert_eq!(Config::read(json!({"crop": "scenario"}), None).unwrap().image.crop, Crop::default());
    }

    #[test]
    fn a_bad_option_is_named_with_what_was_expected_and_found() {
        for (options, words) in [
            (json!({"num_envs": 0}), ["num_envs", "1 to 65536", "0"]),
            (json!({"frame_skip": -1}), ["frame_skip", "1 to 60", "-1"]),
            (json!({"frame_skip": 2.5}), ["frame_skip", "integer", "2.5"]),
            (json!({"obs": "pixels"}), ["obs", "\"image\", \"ram\", \"dict\"", "pixels"]),
            (json!({"crop": [1, 2, 3]}), ["crop", "4 integers", "[1,2,3]"]),
            (json!({"crop": [200, 0, 24, 0]}), ["crop", "224 rows", "(200, 0, 24, 0)"]),
            (json!({"resize": [0, 84]}), ["resize", "1 to 1024", "[0,84]"]),
            (json!({"sticky_action_prob": 1.5}), ["sticky_action_prob", "0 to 1", "1.5"]),
            (json!({"autoreset_mode": "Later"}), ["autoreset_mode", "NextStep", "Later"]),
            (json!({"engine": "reference"}), ["engine", "reference", "fast"]),
            (json!({"engine_options": {"turbo": true}}), ["engine_options", "turbo", "jit, "]),
            (json!({"engine_options": {"jit": 1}}), ["jit", "True or False", "1"]),
            (json!({"engine_options": {"layout_seed": -1}}), ["layout_seed", "0 to", "-1"]),
            (json!({"frameskip": 4}), ["NesVectorEnv", "no option", "frameskip"]),
            (json!({"max_episode_steps": [5, 6]}), ["max_episode_steps", "1 of them", "[5,6]"]),
            (json!({"max_episode_steps": [0]}), ["max_episode_steps", "from 1", "[0]"]),
            (json!({"stack_start": 0}), ["stack_start", "\"repeat\", \"zero\"", "0"]),
            (json!({"episodic_life": 3}), ["episodic_life", "name of a variable", "3"]),
            (json!({"maxpool": 1}), ["maxpool", "True or False", "1"]),
            (json!({"info_keys": "lives"}), ["info_keys", "list of names", "lives"]),
        ] {
            let error = Config::read(options.clone(), None).unwrap_err().0;
            assert!(words.iter().all(|word| error.contains(word)), "{options}: {error}");
        }
    }
}
