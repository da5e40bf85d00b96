//! `signals.json`: what a game's memory means beyond single variables, for infos alone.
//!
//! ```text
//! {"signals": {name: {"sum": [{address, type, mask?, op?, reference=0, times=1}], "plus": 0, "one_of": [..]?}}}
//! ```
//!
//! A term is a value as in data.json, put through an operator if it has one, times a whole number. A signal is the sum
//! of its terms and `plus`; with `one_of` it is 1 where that sum is listed and else 0. No game's address stands in code.

use super::{GameError, Memory, Operator, Variables};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    /// Its only variable.
    value: Variables,
    operator: Option<(Operator, i64)>,
    times: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Signal {
    name: String,
    terms: Vec<Term>,
    plus: i64,
    one_of: Option<Vec<i64>>,
}

/// A game's signals, in alphabetical order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signals(Vec<Signal>);

impl Signals {
    /// Reads the file. `work_ram` is the size of the cartridge's work RAM in bytes.
    ///
    /// # Errors
    /// The first signal that is not what it should be, or lies outside memory.
    pub fn compile(text: &str, work_ram: usize) -> Result<Self, GameError> {
        let file: Value = serde_json::from_str(text)
            .map_err(|error| GameError::NotJson { file: "signals.json", reason: error.to_string() })?;
        let Some(Value::Object(entries)) = file.get("signals") else {
            return Err(GameError::BadSignal {
                place: "the file".into(),
                expected: "an object \"signals\"",
                found: file.to_string(),
            });
        };
        let mut table = entries.iter().map(|entry| signal(entry, work_ram)).collect::<Result<Vec<_>, _>>()?;
        table.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self(table))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|signal| signal.name.as_str())
    }

    /// Every signal's value, in the order of the names.
    pub fn read<'a>(&'a self, memory: Memory<'a>) -> impl Iterator<Item = i64> + 'a {
        self.0.iter().map(move |signal| signal.read(memory))
    }
}

impl Signal {
    fn read(&self, memory: Memory) -> i64 {
        let sum = self.terms.iter().fold(self.plus, |sum, term| sum.wrapping_add(term.read(memory)));
        self.one_of.as_ref().map_or(sum, |listed| i64::from(listed.contains(&sum)))
    }
}

impl Term {
    fn read(&self, memory: Memory) -> i64 {
        let mut value = [0];
        self.value.read_all(memory, &mut value);
        let [value] = value;
        let value = self.operator.map_or(value, |(operator, reference)| operator.apply(value, reference));
        value.wrapping_mul(self.times)
    }
}

fn signal((name, entry): (&String, &Value), work_ram: usize) -> Result<Signal, GameError> {
    let bad = |expected, found: &Value| GameError::BadSignal {
        place: format!("signal {name:?}"),
        expected,
        found: found.to_string(),
    };
    let number = |entry: &Value, key: &str, default: i64| match entry.get(key) {
        None => Ok(default),
        Some(value) => value.as_i64().ok_or_else(|| bad("whole numbers for plus, times, reference", value)),
    };
    let term = |entry: &Value| {
        // A term is a variable of data.json with more to it.
        let mut only = Map::new();
        only.insert("term".into(), entry.clone());
        let value = Variables::compile(&json!({"info": only}), work_ram, &mut Vec::new())?;
        if value.len() != 1 {
            return Err(bad("terms with address and type that lie in this cartridge's memory", entry));
        }
        let operator = match entry.get("op") {
            None => None,
            Some(op) => {
                let found = op.as_str().and_then(Operator::parse);
                let operator = found.ok_or_else(|| bad("an op that scenario.json has too", op))?;
                Some((operator, number(entry, "reference", 0)?))
            }
        };
        Ok(Term { value, operator, times: number(entry, "times", 1)? })
    };
    let terms = entry.get("sum").and_then(Value::as_array).ok_or_else(|| bad("a list \"sum\" of terms", entry))?;
    let one_of = match entry.get("one_of") {
        None => None,
        Some(list) => Some(serde_json::from_value(list.clone()).map_err(|_| bad("one_of: whole numbers", list))?),
    };
    Ok(Signal {
        name: name.clone(),
        terms: terms.iter().map(term).collect::<Result<_, _>>()?,
        plus: number(entry, "plus", 0)?,
        one_of,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use super::Signals;

    #[test]
    fn a_signal_is_a_sum_of_terms_or_whether_the_sum_is_listed() {
        let text = r#"{"signals": {
            "x": {"sum": [{"address": 1, "type": "|u1", "times": 256}, {"address": 2, "type": "|u1"}], "plus": -3},
            "count": {"sum": [{"address": 1, "type": "|u1", "op": "nonzero"},
                              {"address": 2, "type": "|u1", "op": "equal", "reference": 7, "times": 10}]},
            "dead": {"sum": [{"address": 2, "type": "|u1"}], "one_of": [6, 7]}}}"#;
        let signals = Signals::compile(text, 0).unwrap();
        assert_eq!(signals.names().collect::<Vec<_>>(), ["count", "dead", "x"]);
        let mut ram = [0; 2048];
        (ram[1], ram[2]) = (2, 7);
        assert_eq!(signals.read(Memory { ram: &ram, work_ram: &[] }).collect::<Vec<_>>(), [11, 1, 516]);
        ram[2] = 5;
        assert_eq!(signals.read(Memory { ram: &ram, work_ram: &[] }).collect::<Vec<_>>(), [1, 0, 514]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("{", "signals.json is not valid JSON"),
            ("{}", "expected an object \"signals\""),
            (r#"{"signals": {"x": {}}}"#, "signal \"x\": expected a list"),
            (r#"{"signals": {"x": {"sum": [{"address": 4000, "type": "|u1"}]}}}"#, "memory"),
            (r#"{"signals": {"x": {"sum": [{"address": 1}]}}}"#, "\"type\""),
            (r#"{"signals": {"x": {"sum": [{"address": 1, "type": "|u1", "op": "above"}]}}}"#, "an op"),
            (r#"{"signals": {"x": {"sum": [], "plus": 0.5}}}"#, "whole numbers"),
            (r#"{"signals": {"x": {"sum": [], "one_of": 3}}}"#, "whole numbers"),
        ] {
            let error = Signals::compile(text, 0).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
