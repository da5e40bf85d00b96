//! Named values of a configuration, read once each, with one form of error.
//!
//! The values come from Python as JSON. Every reader names the field, what it expected and what it found; a field
//! that nobody read is an error too.

use serde_json::{Map, Value};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// A fault in the configuration: which field, what was expected, what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl ConfigError {
    pub fn new(field: &str, expected: impl Display, found: impl Display) -> Self {
        Self(format!("{field}: expected {expected}, found {found}"))
    }
}

/// The fields that were not read yet.
pub(crate) struct Fields {
    owner: String,
    left: Map<String, Value>,
}

impl Fields {
    /// # Errors
    /// When `value` is no object.
    pub(crate) fn new(owner: &str, value: Value) -> Result<Self, ConfigError> {
        match value {
            Value::Object(left) => Ok(Self { owner: owner.into(), left }),
            other => Err(ConfigError::new(owner, "named values", other)),
        }
    }

    /// The value of a field; null counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn integer(&mut self, name: &str, default: u64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        self.optional_integer(name, range).map(|value| value.unwrap_or(default))
    }

    pub(crate) fn optional_integer(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_u64() {
            Some(n) if range.contains(&n) => Ok(Some(n)),
            _ => {
                Err(ConfigError::new(name, format_args!("an integer from {} to {}", range.start(), range.end()), value))
            }
        }
    }

    /// One integer for all lanes, or a list with one a lane, of which null is none.
    pub(crate) fn integer_per_lane(
        &mut self,
        name: &str,
        lanes: usize,
        range: RangeInclusive<u64>,
    ) -> Result<Vec<Option<u64>>, ConfigError> {
        let Some(value) = self.take(name) else { return Ok(vec![None; lanes]) };
        let number = |value: &Value| value.as_u64().filter(|n| range.contains(n)).map(Some);
        let found = match value.as_array() {
            None => number(&value).map(|number| vec![number; lanes]),
            Some(items) if items.len() == lanes => {
                items.iter().map(|item| if item.is_null() { Some(None) } else { number(item) }).collect()
            }
            Some(_) => None,
        };
        found.ok_or_else(|| {
            let (first, last) = (range.start(), range.end());
            let expected = format!("an integer from {first} to {last}, or {lanes} of them (or None), one a lane");
            ConfigError::new(name, expected, value)
        })
    }

    /// `size` integers in a row.
    pub(crate) fn integers<const N: usize>(
        &mut self,
        name: &str,
        meaning: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<[usize; N]>, ConfigError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let numbers: Option<Vec<usize>> = value.as_array().and_then(|items| {
            let number = |item: &Value| item.as_u64().filter(|n| range.contains(n)).map(|n| n as usize);
            items.iter().map(number).collect()
        });
        numbers.and_then(|numbers| numbers.try_into().ok()).map(Some).ok_or_else(|| {
            let expected =
                format_args!("{N} integers {meaning}, each from {} to {}", range.start(), range.end()).to_string();
            ConfigError::new(name, expected, value)
        })
    }

    pub(crate) fn flag(&mut self, name: &str, default: bool) -> Result<bool, ConfigError> {
        let Some(value) = self.take(name) else { return Ok(default) };
        value.as_bool().ok_or_else(|| ConfigError::new(name, "True or False", value))
    }

    /// A number from 0 to 1.
    pub(crate) fn probability(&mut self, name: &str) -> Result<f64, ConfigError> {
        let Some(value) = self.take(name) else { return Ok(0.0) };
        value
            .as_f64()
            .filter(|p| (0.0..=1.0).contains(p))
            .ok_or_else(|| ConfigError::new(name, "a number from 0 to 1", value))
    }

    /// The row of `table` with that name; the first row where the field is absent.
    pub(crate) fn choice<T: Copy>(&mut self, name: &str, table: &[(&str, T)]) -> Result<T, ConfigError> {
        let Some(value) = self.take(name) else { return Ok(table[0].1) };
        let row = value.as_str().and_then(|text| table.iter().find(|row| row.0 == text));
        row.map(|row| row.1).ok_or_else(|| {
            let names: Vec<_> = table.iter().map(|row| format!("{:?}", row.0)).collect();
            ConfigError::new(name, format_args!("one of {}", names.join(", ")), value)
        })
    }

    /// # Errors
    /// When a field was not read: nothing has that name.
    pub(crate) fn finish(self) -> Result<(), ConfigError> {
        match self.left.keys().next() {
            Some(name) => Err(ConfigError(format!("{}: there is no option {name:?}", self.owner))),
            None => Ok(()),
        }
    }

    /// As `finish`, where the names are few: the error lists them.
    ///
    /// # Errors
    /// When a field was not read.
    pub(crate) fn finish_among(self, known: impl IntoIterator<Item = &'static str>) -> Result<(), ConfigError> {
        self.finish().map_err(|ConfigError(text)| {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            ConfigError(format!("{text}; expected one of {known}"))
        })
    }
}
