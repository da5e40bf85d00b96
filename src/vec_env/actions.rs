//! What an action is, and which buttons it presses.
//!
//! ```text
//! mode            a lane's action                    buttons
//! discrete        0..36                              one choice of each group, the first group varying fastest
//! multi_discrete  one number a group                 the same groups
//! filtered        nine flags                         flags that are no combination of their group are dropped
//! all             nine flags                         every button as flagged
//! right_only, simple, complex, a table               the row of that number
//! ```
//!
//! Groups and flags are Stable Retro's, with its numbers; the named tables are those that people know from
//! gym-super-mario-bros. A second player has the same choice: his number is the higher digit, his flags and groups
//! follow the first player's.

use super::config::ConfigError;
use crate::emulator::nes::Buttons;
use serde_json::Value;

/// What both pads press.
pub(super) type Pads = [Buttons; 2];

/// The order of the flags; the second one is no button of this console.
const FLAGS: [Option<Buttons>; 9] = [
    Some(Buttons::B),
    None,
    Some(Buttons::SELECT),
    Some(Buttons::START),
    Some(Buttons::UP),
    Some(Buttons::DOWN),
    Some(Buttons::LEFT),
    Some(Buttons::RIGHT),
    Some(Buttons::A),
];

const GROUPS: [&[&[&str]]; 3] =
    [&[&[], &["UP"], &["DOWN"]], &[&[], &["LEFT"], &["RIGHT"]], &[&[], &["A"], &["B"], &["A", "B"]]];

const COMPLEX: [&[&str]; 12] = [
    &[],
    &["RIGHT"],
    &["RIGHT", "A"],
    &["RIGHT", "B"],
    &["RIGHT", "A", "B"],
    &["A"],
    &["LEFT"],
    &["LEFT", "A"],
    &["LEFT", "B"],
    &["LEFT", "A", "B"],
    &["DOWN"],
    &["UP"],
];
/// Each named table is a beginning of the longest one.
const TABLES: [(&str, usize); 3] = [("right_only", 5), ("simple", 7), ("complex", 12)];

/// The console's groups of button combinations, where the game has none of its own.
pub(super) fn console_groups() -> Vec<Vec<Vec<String>>> {
    let names = |combination: &&[&str]| combination.iter().map(ToString::to_string).collect();
    GROUPS.iter().map(|group| group.iter().map(names).collect()).collect()
}

/// The actions of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionSpace {
    /// One number: a row.
    Discrete(Vec<Pads>),
    /// One number a group, player after player.
    Groups { groups: Vec<Vec<Buttons>>, players: usize },
    /// Nine flags a player; `filter` has the groups that flags must be a combination of.
    Flags { filter: Option<Vec<Vec<Buttons>>>, players: usize },
}

impl ActionSpace {
    /// Reads the option `actions`: a mode's name, or a table of masks and lists of button names.
    pub fn read(option: Option<Value>, groups: &[Vec<Vec<String>>], players: usize) -> Result<Self, ConfigError> {
        let masks = || masks_of_groups(groups);
        let table = match option {
            None => return Ok(Self::Discrete(product(&masks()?, players))),
            Some(Value::Array(rows)) if rows.is_empty() => {
                return Err(ConfigError::new("actions", "a table of at least one action", "an empty one"));
            }
            Some(Value::Array(rows)) => rows.iter().enumerate().map(row).collect::<Result<Vec<_>, _>>()?,
            Some(Value::String(name)) => match name.as_str() {
                "discrete" => return Ok(Self::Discrete(product(&masks()?, players))),
                "multi_discrete" => return Ok(Self::Groups { groups: masks()?, players }),
                "filtered" => return Ok(Self::Flags { filter: Some(masks()?), players }),
                "all" => return Ok(Self::Flags { filter: None, players }),
                _ => {
                    let Some(&(_, length)) = TABLES.iter().find(|(known, _)| *known == name) else {
                        return Err(unknown(&format!("{name:?}")));
                    };
                    COMPLEX[..length].iter().map(|names| pressed(names.iter().copied())).collect::<Result<_, _>>()?
                }
            },
            Some(other) => return Err(unknown(&other.to_string())),
        };
        Ok(Self::Discrete(product(&[table], players)))
    }

    /// Numbers that make one lane's action.
    pub fn width(&self) -> usize {
        match self {
            Self::Discrete(_) => 1,
            Self::Groups { groups, players } => groups.len() * players,
            Self::Flags { players, .. } => FLAGS.len() * players,
        }
    }

    /// The name of Gymnasium's space and its sizes: `Discrete` n, `MultiDiscrete` one a number, `MultiBinary` n.
    pub fn describe(&self) -> (&'static str, Vec<usize>) {
        match self {
            Self::Discrete(rows) => ("Discrete", vec![rows.len()]),
            Self::Groups { groups, players } => {
                ("MultiDiscrete", groups.iter().map(Vec::len).cycle().take(groups.len() * players).collect())
            }
            Self::Flags { .. } => ("MultiBinary", vec![self.width()]),
        }
    }

    /// The buttons of one lane's action, or which number is out of its range and what the range is.
    pub fn decode(&self, action: &[i64]) -> Result<Pads, (i64, usize)> {
        let pick =
            |number: i64, count: usize| usize::try_from(number).ok().filter(|&n| n < count).ok_or((number, count));
        match self {
            Self::Discrete(rows) => Ok(rows[pick(action[0], rows.len())?]),
            Self::Groups { groups, .. } => {
                let mut pads = Pads::default();
                for (pad, numbers) in pads.iter_mut().zip(action.chunks(groups.len().max(1))) {
                    for (group, &number) in groups.iter().zip(numbers) {
                        *pad = *pad | group[pick(number, group.len())?];
                    }
                }
                Ok(pads)
            }
            Self::Flags { filter, .. } => {
                let mut pads = Pads::default();
                for (pad, flags) in pads.iter_mut().zip(action.chunks(FLAGS.len())) {
                    for (button, &flag) in FLAGS.iter().zip(flags) {
                        if pick(flag, 2)? == 1 {
                            *pad = *pad | button.unwrap_or_default();
                        }
                    }
                    if let Some(groups) = filter {
                        *pad = filtered(*pad, groups);
                    }
                }
                Ok(pads)
            }
        }
    }

    /// What each number of a one-number action presses, for people.
    pub fn rows(&self) -> Option<&[Pads]> {
        match self {
            Self::Discrete(rows) => Some(rows),
            _ => None,
        }
    }
}

/// Keeps the part of each group that is one of its combinations.
fn filtered(pad: Buttons, groups: &[Vec<Buttons>]) -> Buttons {
    groups.iter().fold(Buttons::NONE, |kept, group| {
        let all = group.iter().fold(0, |bits, combination| bits | combination.0);
        let part = Buttons(pad.0 & all);
        if group.contains(&part) { kept | part } else { kept }
    })
}

/// Every choice of one entry a group for every player, the first group of the first player varying fastest.
fn product(groups: &[Vec<Buttons>], players: usize) -> Vec<Pads> {
    let mut rows = vec![Pads::default()];
    for player in 0..players {
        for group in groups {
            let with = |&choice: &Buttons| {
                rows.iter().map(move |row| {
                    let mut row = *row;
                    row[player] = row[player] | choice;
                    row
                })
            };
            rows = group.iter().flat_map(with).collect();
        }
    }
    rows
}

/// Groups in Stable Retro's order, whatever that of the file: choices by their flags as a number, groups by all their
/// flags. A choice that stands twice counts once.
fn masks_of_groups(groups: &[Vec<Vec<String>>]) -> Result<Vec<Vec<Buttons>>, ConfigError> {
    let masks = |group: &Vec<Vec<String>>| {
        let choices = group.iter().map(|names| pressed(names.iter().map(String::as_str)));
        let mut choices: Vec<Buttons> = choices.collect::<Result<_, _>>()?;
        choices.sort_by_key(|&choice| flags_of(choice));
        choices.dedup();
        Ok(choices)
    };
    let mut groups: Vec<Vec<Buttons>> = groups.iter().map(masks).collect::<Result<_, ConfigError>>()?;
    groups.sort_by_key(|group| group.iter().fold(0, |all, &choice| all | flags_of(choice)));
    Ok(groups)
}

/// The flags that a pad's buttons are, the first flag as the lowest bit.
fn flags_of(pad: Buttons) -> u16 {
    let held = |button: &Option<Buttons>| button.is_some_and(|button| pad.contains(button));
    FLAGS.iter().rev().fold(0, |flags, button| flags << 1 | u16::from(held(button)))
}

fn pressed<'a>(names: impl Iterator<Item = &'a str>) -> Result<Buttons, ConfigError> {
    names.filter(|name| !name.eq_ignore_ascii_case("NOOP")).try_fold(Buttons::NONE, |mask, name| {
        let known = || Buttons::NAMES.map(|(name, _)| name).join(", ");
        let button = Buttons::named(name);
        button.map(|button| mask | button).ok_or_else(|| {
            ConfigError::new("actions", format_args!("buttons of {}", known()), format_args!("{name:?}"))
        })
    })
}

fn row((index, entry): (usize, &Value)) -> Result<Buttons, ConfigError> {
    let bad =
        || ConfigError::new(&format!("actions[{index}]"), "a mask from 0 to 255 or a list of button names", entry);
    match entry {
        Value::Array(names) => {
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            pressed(names.ok_or_else(bad)?.into_iter())
        }
        other => other.as_u64().and_then(|mask| u8::try_from(mask).ok()).map(Buttons).ok_or_else(bad),
    }
}

fn unknown(found: &str) -> ConfigError {
    let modes =
        "\"discrete\", \"all\", \"filtered\", \"multi_discrete\", \"right_only\", \"simple\", \"complex\" or a table";
    ConfigError::new("actions", modes, found)
}

#[cfg(test)]
mod tests {
    use super::{ActionSpace, console_groups};
    use crate::emulator::nes::Buttons;
    use serde_json::{Value, json};

    fn space(option: Value, players: usize) -> ActionSpace {
        ActionSpace::read(Some(option), &console_groups(), players).unwrap()
    }

    fn first(space: &ActionSpace, action: &[i64]) -> u8 {
        space.decode(action).unwrap()[0].0
    }

    #[test]
    fn discrete_numbers_count_up_the_first_group_fastest() {
        let discrete = space(json!("discrete"), 1);
        assert_eq!(discrete.describe(), ("Discrete", vec![36]));
        for (number, buttons) in [
            (0, Buttons::NONE),
            (1, Buttons::UP),
            (2, Buttons::DOWN),
            (3, Buttons::LEFT),
            (6, Buttons::RIGHT),
            (9, Buttons::B),
            (18, Buttons::A),
            (27, Buttons::A | Buttons::B),
            (35, Buttons::DOWN | Buttons::RIGHT | Buttons::A | Buttons::B),
        ] {
            assert_eq!(first(&discrete, &[number]), buttons.0, "{number}");
        }
        assert_eq!(discrete.decode(&[36]), Err((36, 36)));
        assert_eq!(discrete.decode(&[-1]), Err((-1, 36)));
    }

    #[test]
    fn flags_are_in_stable_retros_order() {
        let all = space(json!("all"), 1);
        assert_eq!(all.describe(), ("MultiBinary", vec![9]));
        let order = [2, 0, 4, 8, 16, 32, 64, 128, 1];
        for (flag, mask) in order.into_iter().enumerate() {
            let mut action = [0; 9];
            action[flag] = 1;
            assert_eq!(first(&all, &action), mask, "{flag}");
        }
        assert_eq!(all.decode(&[0, 0, 0, 0, 2, 0, 0, 0, 0]), Err((2, 2)));
    }

    #[test]
    fn filtered_flags_drop_what_is_no_combination_and_start() {
        let filtered = space(json!("filtered"), 1);
        // UP and DOWN together, START: dropped; RIGHT and A, B: kept.
        assert_eq!(first(&filtered, &[1, 0, 0, 1, 1, 1, 0, 1, 1]), 128 | 1 | 2);
    }

    #[test]
    fn tables_take_masks_and_names_and_noop() {
        let table = space(json!([[], ["right", "A"], 0x81, ["NOOP"]]), 1);
        assert_eq!([0, 1, 2, 3].map(|number| first(&table, &[number])), [0, 0x81, 0x81, 0]);
        assert_eq!(space(json!("right_only"), 1).describe().1, [5]);
        assert_eq!(space(json!("simple"), 1).describe().1, [7]);
        assert_eq!(first(&space(json!("complex"), 1), &[11]), Buttons::UP.0);
        for bad in [json!([]), json!([256]), json!([["JUMP"]]), json!("fast"), json!(3), json!([[1]])] {
            let error = ActionSpace::read(Some(bad.clone()), &console_groups(), 1).unwrap_err().0;
            assert!(error.starts_with("actions"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_second_player_has_the_higher_digit_and_the_later_flags() {
        let discrete = space(json!("discrete"), 2);
        assert_eq!(discrete.describe().1, [1296]);
        assert_eq!(discrete.decode(&[1 + 36 * 6]).unwrap(), [Buttons::UP, Buttons::RIGHT]);
        let groups = space(json!("multi_discrete"), 2);
        assert_eq!(groups.describe(), ("MultiDiscrete", vec![3, 3, 4, 3, 3, 4]));
        assert_eq!(groups.decode(&[1, 0, 0, 0, 2, 1]).unwrap(), [Buttons::UP, Buttons::RIGHT | Buttons::B]);
        assert_eq!(space(json!("all"), 2).width(), 18);
    }

    #[test]
    fn a_games_groups_are_ordered_by_their_flags_as_in_stable_retro() {
        // What stable-retro 1.0.1 makes of it: [[0, 1, 8], [0, 128, 192, 256]].
        let file = json!([[["A"], [], ["RIGHT", "LEFT"], ["RIGHT"], ["A"]], [["START"], ["B"], []]]);
        let groups: Vec<Vec<Vec<String>>> = serde_json::from_value(file).unwrap();
        let discrete = ActionSpace::read(None, &groups, 1).unwrap();
        let rows: Vec<u8> = discrete.rows().unwrap().iter().map(|pads| pads[0].0).collect();
        assert_eq!(rows, [0, 2, 8, 128, 130, 136, 192, 194, 200, 1, 3, 9]);
    }
}
