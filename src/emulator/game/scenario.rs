//! `scenario.json`: reward and "done" from the values of `variables`.
//!
//! ```text
//! reward: {variables: {V: {measurement="delta", op, reference=0, reward=0, penalty=0}}, time: {reward}}
//! done:   {variables: {V: {measurement="absolute", op, reference=0}}, condition="any"|"all", nodes: {name: done}}
//! crop: [x, y, w, h]   actions: the groups of buttons that the game can use   rewards: one reward per player
//! ```
//!
//! A reward rule's result counts `reward` times when it is above 0 and `penalty` times when it is below, in 32-bit
//! floats. Scripts are refused by name. Crop and actions belong to the environment's configuration.

use super::measure::{Measurement, Operator};
use super::{GameError, Variables};
use serde_json::{Map, Value};

/// One variable's measure and operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    variable: usize,
    measurement: Measurement,
    /// Without one the measured value itself is the result.
    operator: Option<Operator>,
    reference: i64,
}

impl Rule {
    fn result(&self, before: &[i64], now: &[i64]) -> i64 {
        let value = now[self.variable];
        let measured = match self.measurement {
            Measurement::Absolute => value,
            Measurement::Delta => value.wrapping_sub(before[self.variable]),
        };
        self.operator.map_or(measured, |operator| operator.apply(measured, self.reference))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Worth {
    rule: Rule,
    reward: f32,
    penalty: f32,
}

/// A tree of rules: true when any (or all) of its rules and subtrees are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    all: bool,
    rules: Vec<Rule>,
    nodes: Vec<Condition>,
}

impl Condition {
    fn holds(&self, before: &[i64], now: &[i64]) -> bool {
        let mut rules = self.rules.iter().map(|rule| rule.result(before, now) > 0);
        let mut nodes = self.nodes.iter().map(|node| node.holds(before, now));
        if self.all {
            rules.all(|held| held) && nodes.all(|held| held)
        } else {
            rules.any(|held| held) || nodes.any(|held| held)
        }
    }
}

/// What a frame was worth, and whether it ended the episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    pub reward: f32,
    pub done: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scenario {
    rewards: Vec<Worth>,
    reward_per_frame: f32,
    done: Condition,
    /// Groups of button combinations, where the game overrides the console's: `groups[g][choice]` = button names.
    pub actions: Option<Vec<Vec<Vec<String>>>>,
}

impl Scenario {
    pub(super) fn compile(file: &Value, variables: &Variables, warnings: &mut Vec<String>) -> Result<Self, GameError> {
        let empty = Value::Object(Map::new());
        let section = |name| file.get(name).unwrap_or(&empty);
        let reward = match file.get("rewards").and_then(Value::as_array) {
            Some(players) => players.first().unwrap_or(&empty),
            None => section("reward"),
        };
        refuse_script("reward", reward)?;
        let mut rewards = Vec::new();
        for (name, entry) in object(reward, "variables") {
            let place = format!("reward variable {name:?}");
            rewards.push(Worth {
                rule: rule(&place, name, entry, Measurement::Delta, variables)?,
                reward: number(&place, entry, "reward")?,
                penalty: number(&place, entry, "penalty")?,
            });
        }
        let mut reward_per_frame = 0.0;
        if let Some(time) = reward.get("time") {
            reward_per_frame = number("reward.time", time, "reward")?;
            if number("reward.time", time, "penalty")? != 0.0 {
                warnings.push(
                    "scenario.json: reward.time.penalty has no effect: the measured time is 1 each frame, so only \
                     \"reward\" is added, as in stable-retro; for a cost per frame give a negative \"reward\""
                        .into(),
                );
            }
        }
        Ok(Self {
            rewards,
            reward_per_frame,
            done: condition("done", section("done"), variables)?,
            actions: actions(file)?,
        })
    }

    /// Judges one frame: the values after it against those after the frame before.
    #[must_use]
    pub fn judge(&self, before: &[i64], now: &[i64]) -> Verdict {
        let reward = self.rewards.iter().fold(self.reward_per_frame, |sum, worth| {
            let result = worth.rule.result(before, now);
            // stable-retro computes in 32-bit floats.
            #[allow(clippy::cast_precision_loss)]
            let measured = result as f32;
            match result {
                0 => sum,
                1.. => sum + measured * worth.reward,
                _ => sum + measured * worth.penalty,
            }
        });
        Verdict { reward, done: self.done.holds(before, now) }
    }
}

fn object<'a>(section: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    section.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn condition(place: &str, section: &Value, variables: &Variables) -> Result<Condition, GameError> {
    refuse_script(place, section)?;
    let mut tree =
        Condition { all: section.get("condition").and_then(Value::as_str) == Some("all"), ..Default::default() };
    for (name, entry) in object(section, "variables") {
        let place = format!("{place} variable {name:?}");
        tree.rules.push(rule(&place, name, entry, Measurement::Absolute, variables)?);
    }
    for (name, node) in object(section, "nodes") {
        tree.nodes.push(condition(&format!("{place} node {name:?}"), node, variables)?);
    }
    Ok(tree)
}

fn rule(
    place: &str,
    name: &str,
    entry: &Value,
    default: Measurement,
    variables: &Variables,
) -> Result<Rule, GameError> {
    let variable = variables.index(name).ok_or_else(|| GameError::UnknownVariable {
        place: place.into(),
        name: name.into(),
        known: variables.names().collect::<Vec<_>>().join(", "),
    })?;
    let measurement = match entry.get("measurement").and_then(Value::as_str) {
        Some("absolute") => Measurement::Absolute,
        Some("delta") => Measurement::Delta,
        _ => default,
    };
    let operator = entry.get("op").and_then(Value::as_str).and_then(Operator::parse);
    let reference = match entry.get("reference") {
        None => 0,
        // A reference is an integer to stable-retro: a fraction is cut off.
        #[allow(clippy::cast_possible_truncation)]
        Some(value) => {
            value.as_i64().or_else(|| value.as_f64().map(|f| f as i64)).ok_or_else(|| bad(place, "a number", value))?
        }
    };
    Ok(Rule { variable, measurement, operator, reference })
}

fn number(place: &str, entry: &Value, key: &str) -> Result<f32, GameError> {
    match entry.get(key) {
        None => Ok(0.0),
        #[allow(clippy::cast_possible_truncation)]
        Some(value) => {
            value.as_f64().map(|f| f as f32).ok_or_else(|| bad(&format!("{place}, {key:?}"), "a number", value))
        }
    }
}

fn actions(file: &Value) -> Result<Option<Vec<Vec<Vec<String>>>>, GameError> {
    file.get("actions")
        .map(|value| {
            serde_json::from_value(value.clone()).map_err(|_| bad("actions", "groups of lists of button names", value))
        })
        .transpose()
}

fn refuse_script(place: &str, section: &Value) -> Result<(), GameError> {
    match section.get("script").and_then(Value::as_str) {
        Some(script) => Err(GameError::Script { place: place.into(), script: script.into() }),
        None => Ok(()),
    }
}

fn bad(place: &str, expected: &'static str, found: &Value) -> GameError {
    GameError::BadValue { place: place.into(), expected, found: found.to_string() }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small whole numbers and binary fractions are exact")]
mod tests {
    use super::super::{Game, GameError};
    use super::Verdict;

    const DATA: &str = r#"{"info": {"lives": {"address": 0, "type": "|i1"}, "x": {"address": 1, "type": "|u1"}}}"#;

    fn judge(scenario: &str, before: [i64; 2], now: [i64; 2]) -> Verdict {
        Game::compile(DATA, scenario, 0).unwrap().scenario.judge(&before, &now)
    }

    #[test]
    fn rewards_count_the_change_and_penalties_multiply_a_negative_one() {
        let gain = r#"{"reward": {"variables": {"x": {"reward": 2, "penalty": 3}}}}"#;
        assert_eq!(judge(gain, [0, 2], [0, 5]).reward, 6.0);
        assert_eq!(judge(gain, [0, 5], [0, 2]).reward, -9.0);
        let turned = r#"{"reward": {"variables": {"x": {"penalty": -3}}}}"#;
        assert_eq!(judge(turned, [0, 5], [0, 2]).reward, 9.0);
        assert_eq!(judge(turned, [0, 2], [0, 5]).reward, 0.0);
    }

    #[test]
    fn an_absolute_reward_counts_the_value_and_an_operator_its_result() {
        let scenario = r#"{"reward": {"variables": {"x": {"measurement": "absolute", "reward": 0.5},
                           "lives": {"op": "negative", "reward": 10}}}}"#;
        assert_eq!(judge(scenario, [3, 0], [2, 8]).reward, 14.0);
    }

    #[test]
    fn time_adds_its_reward_each_frame_and_warns_about_the_penalty() {
        let scenario = r#"{"reward": {"time": {"reward": -0.25, "penalty": 1}}}"#;
        assert_eq!(judge(scenario, [0, 0], [0, 0]).reward, -0.25);
        assert_eq!(Game::compile(DATA, scenario, 0).unwrap().warnings.len(), 1);
    }

    #[test]
    fn done_is_any_rule_by_default_and_all_on_request_with_nested_nodes() {
        let any = r#"{"done": {"variables": {"lives": {"op": "negative"}, "x": {"op": "equal", "reference": 9}}}}"#;
        assert!(judge(any, [0, 0], [-1, 0]).done);
        assert!(judge(any, [0, 0], [0, 9]).done);
        assert!(!judge(any, [0, 0], [0, 8]).done);
        let all = any.replace(r#""done": {"#, r#""done": {"condition": "all", "#);
        assert!(!judge(&all, [0, 0], [-1, 0]).done);
        assert!(judge(&all, [0, 0], [-1, 9]).done);
        let nested = r#"{"done": {"condition": "all", "variables": {"x": {}},
                         "nodes": {"n": {"variables": {"lives": {"measurement": "delta", "op": "negative"}}}}}}"#;
        assert!(judge(nested, [3, 1], [2, 1]).done);
        assert!(!judge(nested, [2, 1], [2, 1]).done);
        assert!(!judge(nested, [3, 0], [2, 0]).done);
    }

    #[test]
    fn a_rule_without_operator_means_above_zero_and_nothing_listed_under_all_is_done() {
        assert!(judge(r#"{"done": {"variables": {"x": {"op": "no-such"}}}}"#, [0, 0], [0, 3]).done);
        assert!(judge(r#"{"done": {"condition": "all"}}"#, [0, 0], [0, 0]).done);
        assert!(!judge("{}", [0, 0], [0, 0]).done);
    }

    #[test]
    fn the_first_player_is_rewarded_where_the_file_lists_players() {
        let scenario = r#"{"rewards": [{"variables": {"x": {"reward": 1}}}, {"variables": {"x": {"reward": 5}}}]}"#;
        assert_eq!(judge(scenario, [0, 0], [0, 1]).reward, 1.0);
    }

    #[test]
    fn unknown_variables_and_scripts_are_refused_by_name() {
        let error = Game::compile(DATA, r#"{"done": {"variables": {"hp": {}}}}"#, 0).unwrap_err();
        assert!(error.to_string().contains("\"hp\"") && error.to_string().contains("lives, x"), "{error}");
        let error = Game::compile(DATA, r#"{"reward": {"script": "lua:points"}}"#, 0).unwrap_err();
        assert!(matches!(error, GameError::Script { .. }));
    }
}
