//! `scenario.json`: reward and "done" from the values of `variables`.
//!
//! ```text
//! reward:  {variables: {V: {measurement="delta", op, reference=0, reward=0, penalty=0}}, time: {reward}} or {script}
//! rewards: one of these per player; reward's own entries come first for the first one
//! done:    {variables: {V: {measurement="absolute", op, reference=0}}, condition="any"|"all", nodes: {name: done}}
//!          or {script}
//! crop: [x, y, w, h]   crops: one per player   actions: the groups of buttons that the game can use
//! ```
//!
//! A reward rule's result counts `reward` times when it is above 0 and `penalty` times when it is below, in 32-bit
//! floats. A script replaces variables and time. What crop and actions mean is the environment's configuration.

use super::measure::{Measurement, Operator};
use super::{GameError, Program, Variables};
use serde_json::Value;

/// One variable's measure and operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    variable: usize,
    measurement: Measurement,
    /// Without one the measured value itself is the result.
    operator: Option<Operator>,
    reference: i64,
}

/// The readings after the frame before and after this one, and the values as scripts have left them by now.
#[derive(Clone, Copy)]
struct View<'a> {
    before: &'a [i64],
    now: &'a [i64],
    live: &'a [i64],
}

impl Rule {
    fn result(&self, view: View) -> i64 {
        let at = self.variable;
        let measured = match self.measurement {
            Measurement::Absolute => view.live[at],
            Measurement::Delta => view.now[at].wrapping_sub(view.before[at]),
        };
        self.operator.map_or(measured, |operator| operator.apply(measured, self.reference))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Worth {
    reward: f32,
    penalty: f32,
}

impl Worth {
    fn of(self, result: i64) -> f32 {
        // stable-retro computes in 32-bit floats.
        #[allow(clippy::cast_precision_loss)]
        let measured = result as f32;
        match result {
            0 => 0.0,
            1.. => measured * self.reward,
            _ => measured * self.penalty,
        }
    }
}

/// A tree of rules: true when any (or all) of its rules and subtrees are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    all: bool,
    rules: Vec<Rule>,
    nodes: Vec<Condition>,
}

impl Condition {
    fn holds(&self, view: View) -> bool {
        let mut rules = self.rules.iter().map(|rule| rule.result(view) > 0);
        let mut nodes = self.nodes.iter().map(|node| node.holds(view));
        if self.all {
            rules.all(|held| held) && nodes.all(|held| held)
        } else {
            rules.any(|held| held) || nodes.any(|held| held)
        }
    }
}

/// Pads of the console, and so players at most.
pub const PLAYERS: usize = 2;

/// What a frame was worth to each player, and whether it ended the episode.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Verdict {
    pub rewards: [f32; PLAYERS],
    pub done: bool,
}

/// How a player is rewarded.
#[derive(Debug, Clone, Default, PartialEq)]
struct Reward {
    /// Instead of all that follows.
    script: Option<String>,
    rules: Vec<(Rule, Worth)>,
    per_frame: f32,
}

impl Reward {
    fn sum(&self, view: View) -> f32 {
        self.rules.iter().fold(self.per_frame, |sum, (rule, worth)| sum + worth.of(rule.result(view)))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scenario {
    players: [Reward; PLAYERS],
    done: Condition,
    /// Instead of the condition.
    done_script: Option<String>,
    /// Players that the file rewards one by one, 0 where it has no such list.
    pub listed_players: usize,
    /// Groups of button combinations, where the game overrides the console's: `groups[g][choice]` = button names.
    pub actions: Option<Vec<Vec<Vec<String>>>>,
    /// What each player sees of Stable Retro's picture: x, y, width, height; 0 or too much reaches to the edge.
    pub crops: [Option<[usize; 4]>; PLAYERS],
}

impl Scenario {
    pub(super) fn compile(
        file: &Value,
        variables: &Variables,
        program: Option<&Program>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, GameError> {
        let added: &[String] = program.map_or(&[], |program| &program.added);
        let mut reader = Reader { variables, added, scripted: program.is_some(), warnings };
        let mut scenario = Self::default();
        if let Some(section) = file.get("reward") {
            reader.reward("reward", section, &mut scenario.players[0])?;
        }
        let listed = file.get("rewards").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        scenario.listed_players = listed.len().min(PLAYERS);
        for (number, (section, player)) in listed.iter().zip(&mut scenario.players).enumerate() {
            reader.reward(&format!("rewards[{number}]"), section, player)?;
        }
        if let Some(section) = file.get("done") {
            scenario.done_script = reader.script("done", section)?;
            scenario.done = reader.condition("done", section)?;
        }
        scenario.actions = actions(file)?;
        scenario.crops = crops(file)?;
        Ok(scenario)
    }

    /// Judges one frame of a game without scripts: the values after it against those after the frame before.
    #[must_use]
    pub fn judge(&self, before: &[i64], now: &[i64]) -> Verdict {
        let view = View { before, now, live: now };
        Verdict { rewards: self.players.each_ref().map(|player| player.sum(view)), done: self.done.holds(view) }
    }

    /// Judges one frame of a game with scripts. `run` calls the function that it is given, if any, and then writes the
    /// values into `live`.
    pub(super) fn judge_with<E>(
        &self,
        before: &[i64],
        now: &[i64],
        live: &mut [i64],
        mut run: impl FnMut(Option<&str>, &mut [i64]) -> Result<f64, E>,
    ) -> Result<Verdict, E> {
        let script = self.done_script.as_deref();
        // Not a number is not 0, and so true.
        let mut done = run(script, live)? != 0.0;
        if script.is_none() {
            done = self.done.holds(View { before, now, live });
        }
        let mut rewards = [0.0; PLAYERS];
        for (reward, player) in rewards.iter_mut().zip(&self.players) {
            *reward = match &player.script {
                #[allow(clippy::cast_possible_truncation, reason = "rewards are 32-bit floats to stable-retro")]
                Some(function) => run(Some(function), live)? as f32,
                None => player.sum(View { before, now, live }),
            };
        }
        Ok(Verdict { rewards, done })
    }
}

fn object<'a>(section: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    section.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// What is known while the file is read.
struct Reader<'a> {
    variables: &'a Variables,
    /// Variables of the scripts' own; their places come after those of `variables`.
    added: &'a [String],
    scripted: bool,
    warnings: &'a mut Vec<String>,
}

impl Reader<'_> {
    fn warn(&mut self, place: &str, text: &str) {
        self.warnings.push(format!("scenario.json: {place}: {text}"));
    }

    fn reward(&mut self, place: &str, section: &Value, player: &mut Reward) -> Result<(), GameError> {
        let script = self.script(place, section)?;
        for (name, entry) in object(section, "variables") {
            let place = format!("{place} variable {name:?}");
            let rule = self.rule(&place, name, entry, Measurement::Delta)?;
            let worth = Worth { reward: number(&place, entry, "reward")?, penalty: number(&place, entry, "penalty")? };
            // An entry of "reward" comes before one of "rewards".
            if !player.rules.iter().any(|(known, _)| known.variable == rule.variable) {
                player.rules.push((rule, worth));
            }
        }
        if let Some(time) = section.get("time") {
            let place = format!("{place}.time");
            let worth = Worth { reward: number(&place, time, "reward")?, penalty: number(&place, time, "penalty")? };
            let operator = self.operator(&place, time);
            let reference = reference(&place, time)?;
            // The measured time is 1 in every frame.
            player.per_frame = worth.of(operator.map_or(1, |operator| operator.apply(1, reference)));
            if worth.penalty != 0.0 {
                self.warn(
                    &place,
                    "\"penalty\" has no effect: the measured time is 1 each frame, so only \"reward\" is added, as in \
                     stable-retro's code; for a cost per frame give a negative \"reward\"",
                );
            }
        }
        if script.is_some() && (!player.rules.is_empty() || player.per_frame != 0.0) {
            self.warn(place, "its script is all that counts; \"variables\" and \"time\" beside it have no effect");
        }
        player.script = script.or_else(|| player.script.take());
        Ok(())
    }

    fn condition(&mut self, place: &str, section: &Value) -> Result<Condition, GameError> {
        let mut tree =
            Condition { all: section.get("condition").and_then(Value::as_str) == Some("all"), ..Default::default() };
        for (name, entry) in object(section, "variables") {
            let place = format!("{place} variable {name:?}");
            tree.rules.push(self.rule(&place, name, entry, Measurement::Absolute)?);
        }
        for (name, node) in object(section, "nodes") {
            tree.nodes.push(self.condition(&format!("{place} node {name:?}"), node)?);
        }
        if tree.all && tree.rules.is_empty() && tree.nodes.is_empty() && section.get("script").is_none() {
            self.warn(place, "condition \"all\" of nothing always holds, so every frame ends an episode");
        }
        Ok(tree)
    }

    fn rule(&mut self, place: &str, name: &str, entry: &Value, default: Measurement) -> Result<Rule, GameError> {
        let own = || self.added.iter().position(|added| added == name).map(|at| self.variables.len() + at);
        let variable = self.variables.index(name).or_else(own).ok_or_else(|| GameError::UnknownVariable {
            place: place.into(),
            name: name.into(),
            known: self.variables.names().collect::<Vec<_>>().join(", "),
        })?;
        let measurement = match entry.get("measurement").and_then(Value::as_str) {
            Some("absolute") => Measurement::Absolute,
            Some("delta") => Measurement::Delta,
            _ => default,
        };
        Ok(Rule { variable, measurement, operator: self.operator(place, entry), reference: reference(place, entry)? })
    }

    fn operator(&mut self, place: &str, entry: &Value) -> Option<Operator> {
        let name = entry.get("op").and_then(Value::as_str)?;
        let operator = Operator::parse(name);
        if operator.is_none() {
            self.warn(place, &format!("there is no op {name:?}; the value itself counts, as in stable-retro"));
        }
        operator
    }

    /// The function of `"script": "lua:FUNCTION"`.
    fn script(&self, place: &str, section: &Value) -> Result<Option<String>, GameError> {
        let Some(text) = section.get("script").and_then(Value::as_str) else { return Ok(None) };
        match text.split_once(':').unwrap_or(("lua", text)) {
            ("lua", function) if self.scripted => Ok(Some(function.into())),
            _ => Err(GameError::Script { place: place.into(), script: text.into() }),
        }
    }
}

fn reference(place: &str, entry: &Value) -> Result<i64, GameError> {
    match entry.get("reference") {
        None => Ok(0),
        // A reference is an integer to stable-retro: a fraction is cut off.
        #[allow(clippy::cast_possible_truncation)]
        Some(value) => {
            value.as_i64().or_else(|| value.as_f64().map(|f| f as i64)).ok_or_else(|| bad(place, "a number", value))
        }
    }
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

fn crops(file: &Value) -> Result<[Option<[usize; 4]>; PLAYERS], GameError> {
    let read = |place: &str, value: &Value| {
        serde_json::from_value(value.clone()).map_err(|_| bad(place, "[x, y, width, height] in pixels", value))
    };
    if let Some(list) = file.get("crops").and_then(Value::as_array) {
        let mut crops = [None; PLAYERS];
        for (crop, value) in crops.iter_mut().zip(list) {
            *crop = Some(read("crops", value)?);
        }
        return Ok(crops);
    }
    Ok([file.get("crop").map(|value| read("crop", value)).transpose()?; PLAYERS])
}

fn bad(place: &str, expected: &'static str, found: &Value) -> GameError {
    GameError::BadValue { place: place.into(), expected, found: found.to_string() }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small whole numbers and binary fractions are exact")]
mod tests {
    use super::super::{Game, GameError};
    use super::Verdict;

    fn compile(scenario: &str) -> Result<Game, GameError> {
        Game::compile(DATA, scenario, &[], 0)
    }

    const DATA: &str = r#"{"info": {"lives": {"address": 0, "type": "|i1"}, "x": {"address": 1, "type": "|u1"}}}"#;

    fn judge(scenario: &str, before: [i64; 2], now: [i64; 2]) -> Verdict {
        compile(scenario).unwrap().scenario.judge(&before, &now)
    }

    #[test]
    fn rewards_count_the_change_and_penalties_multiply_a_negative_one() {
        let gain = r#"{"reward": {"variables": {"x": {"reward": 2, "penalty": 3}}}}"#;
        assert_eq!(judge(gain, [0, 2], [0, 5]).rewards[0], 6.0);
        assert_eq!(judge(gain, [0, 5], [0, 2]).rewards[0], -9.0);
        let turned = r#"{"reward": {"variables": {"x": {"penalty": -3}}}}"#;
        assert_eq!(judge(turned, [0, 5], [0, 2]).rewards[0], 9.0);
        assert_eq!(judge(turned, [0, 2], [0, 5]).rewards[0], 0.0);
    }

    #[test]
    fn an_absolute_reward_counts_the_value_and_an_operator_its_result() {
        let scenario = r#"{"reward": {"variables": {"x": {"measurement": "absolute", "reward": 0.5},
                           "lives": {"op": "negative", "reward": 10}}}}"#;
        assert_eq!(judge(scenario, [3, 0], [2, 8]).rewards[0], 14.0);
    }

    #[test]
    fn time_adds_its_reward_each_frame_and_warns_about_the_penalty() {
        let scenario = r#"{"reward": {"time": {"reward": -0.25, "penalty": 1}}}"#;
        assert_eq!(judge(scenario, [0, 0], [0, 0]).rewards[0], -0.25);
        assert_eq!(compile(scenario).unwrap().warnings.len(), 1);
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
    fn each_player_is_rewarded_where_the_file_lists_players() {
        let scenario = r#"{"rewards": [{"variables": {"x": {"reward": 1}}}, {"variables": {"x": {"reward": 5}}}]}"#;
        assert_eq!(judge(scenario, [0, 0], [0, 1]).rewards, [1.0, 5.0]);
        assert_eq!(compile(scenario).unwrap().scenario.listed_players, 2);
        // What "reward" says of a variable comes before what "rewards" does; other entries are added.
        let both = r#"{"reward": {"variables": {"x": {"reward": 1}}},
                       "rewards": [{"variables": {"x": {"reward": 5}, "lives": {"reward": 7}}}]}"#;
        assert_eq!(judge(both, [0, 0], [1, 1]).rewards, [8.0, 0.0]);
    }

    #[test]
    fn crops_are_every_players_or_each_ones() {
        assert_eq!(compile("{}").unwrap().scenario.crops, [None; 2]);
        let one = compile(r#"{"crop": [0, 8, 0, 200]}"#).unwrap();
        assert_eq!(one.scenario.crops, [Some([0, 8, 0, 200]); 2]);
        let each = compile(r#"{"crop": [1, 1, 1, 1], "crops": [[0, 0, 120, 0], [120, 0, 0, 0]]}"#).unwrap();
        assert_eq!(each.scenario.crops, [Some([0, 0, 120, 0]), Some([120, 0, 0, 0])]);
        assert!(matches!(compile(r#"{"crop": [1, 2]}"#), Err(GameError::BadValue { .. })));
    }

    #[test]
    fn what_means_something_else_than_it_seems_is_told() {
        for (scenario, words) in [
            (r#"{"done": {"condition": "all"}}"#, "every frame ends"),
            (r#"{"done": {"variables": {"x": {"op": "above"}}}}"#, "no op \"above\""),
            (r#"{"reward": {"time": {"penalty": 1}}}"#, "no effect"),
        ] {
            let warnings = compile(scenario).unwrap().warnings;
            assert!(warnings.len() == 1 && warnings[0].contains(words), "{scenario}: {warnings:?}");
        }
    }

    #[test]
    fn unknown_variables_and_scripts_are_refused_by_name() {
        let error = compile(r#"{"done": {"variables": {"hp": {}}}}"#).unwrap_err();
        assert!(error.to_string().contains("\"hp\"") && error.to_string().contains("lives, x"), "{error}");
        let error = compile(r#"{"reward": {"script": "lua:points"}}"#).unwrap_err();
        assert!(matches!(error, GameError::Script { .. }));
    }
}
