//! A scenario's scripts, and what can be said of them before they run.
//!
//! Names that a script gives to `data` and data.json does not have become variables of their own. Infos have the same
//! keys in every step, so these are read from the text: `data.NAME =`, `data["NAME"] =`, also in a list of several. A
//! name that is only put together while the script runs is no info.
//!
//! A snapshot carries a script's global variables. A `local` outside every function, and a function made inside another
//! one, keep values where no one else can reach them; snapshots of such a script are refused.

use super::script;
use super::{GameError, Variables};
use serde_json::Value;
use std::collections::BTreeSet;

/// A script as its file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub text: String,
}

/// All scripts of a scenario, in the order in which they are loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub sources: Vec<Source>,
    /// Variables that they add to data.json's, in alphabetical order.
    pub added: Vec<String>,
    /// Where a script keeps values that a snapshot cannot carry, if one does.
    pub hidden: Option<String>,
}

impl Program {
    pub(super) fn compile(
        scenario: &Value,
        given: &[Source],
        variables: &Variables,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Self>, GameError> {
        let mut sources = Vec::new();
        for entry in scenario.get("scripts").and_then(Value::as_array).into_iter().flatten() {
            let is_lua = |name: &&str| name.rsplit_once('.').is_some_and(|(_, kind)| kind == "lua");
            let Some(name) = entry.as_str().filter(is_lua) else {
                warnings.push(format!(
                    "scenario.json: the script {entry} is left out: only files that end with .lua are run, as in \
                     stable-retro"
                ));
                continue;
            };
            let found = given.iter().find(|source| source.name == name);
            sources.push(found.cloned().ok_or_else(|| GameError::NoSuchScript { file: name.into() })?);
        }
        if sources.is_empty() {
            return Ok(None);
        }
        let (mut added, mut hidden) = (BTreeSet::new(), None);
        for source in &sources {
            script::check(source)?;
            let words = words(&source.text);
            added.extend(names_given(&words).filter(|name| variables.index(name).is_none()).map(str::to_owned));
            hidden = hidden.or_else(|| hiding_place(&words).map(|what| format!("{} has {what}", source.name)));
        }
        Ok(Some(Self { sources, added: added.into_iter().collect(), hidden }))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Name(String),
    Text(String),
    Sign(&'static str),
    Other,
}

/// Splits a script into words, as far as is needed here; comments are left out.
fn words(text: &str) -> Vec<Word> {
    const SIGNS: [&str; 9] = ["==", "..", ".", "[", "]", "=", ",", "{", "}"];
    let (mut rest, mut out) = (text, Vec::new());
    while let Some(first) = rest.chars().next() {
        let comment = rest.starts_with("--");
        let body = if comment { &rest[2..] } else { rest };
        if let Some((inside, after)) = long_bracket(body) {
            if !comment {
                out.push(Word::Text(inside.into()));
            }
            rest = after;
        } else if comment {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            out.push(Word::Name(rest[..end].into()));
            rest = &rest[end..];
        } else if first.is_ascii_digit() {
            // 1.5e3 is one word, lest its point look like a field's. To `data` a number is a name too.
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
            out.push(Word::Text(rest[..end].into()));
            rest = &rest[end..];
        } else if first == '"' || first == '\'' {
            let (inside, after) = quoted(&rest[1..], first);
            out.push(Word::Text(inside.into()));
            rest = after;
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            out.push(Word::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            if !first.is_whitespace() {
                out.push(Word::Other);
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// `[[...]]`, `[=[...]=]` and so on: what is inside, and what comes after.
fn long_bracket(text: &str) -> Option<(&str, &str)> {
    let level = text.strip_prefix('[')?.find(|c| c != '=')?;
    let inside = text[1 + level..].strip_prefix('[')?;
    let close = format!("]{}]", "=".repeat(level));
    Some(inside.split_once(close.as_str()).unwrap_or((inside, "")))
}

/// A text up to its closing mark, and what comes after.
fn quoted(text: &str, mark: char) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == mark && !escaped {
            return (&text[..at], &text[at + 1..]);
        }
        escaped = c == '\\' && !escaped;
    }
    (text, "")
}

/// The names N of `data.N =`, `data["N"] =` and the same before a comma.
fn names_given(words: &[Word]) -> impl Iterator<Item = &str> {
    words.iter().enumerate().filter_map(|(at, word)| {
        if !matches!(word, Word::Name(name) if name == "data") {
            return None;
        }
        let ([Word::Sign("."), Word::Name(name), after @ ..]
        | [Word::Sign("["), Word::Text(name), Word::Sign("]"), after @ ..]) = &words[at + 1..]
        else {
            return None;
        };
        matches!(after.first(), Some(Word::Sign("=" | ","))).then_some(name.as_str())
    })
}

/// What keeps values where only a function can reach them.
fn hiding_place(words: &[Word]) -> Option<&'static str> {
    let mut blocks = Vec::new();
    for word in words {
        let Word::Name(name) = word else { continue };
        match name.as_str() {
            "local" if blocks.is_empty() => return Some("a local variable outside every function"),
            "function" if blocks.contains(&"function") => return Some("a function inside another one"),
            "function" => blocks.push("function"),
            // `while` and `for` open their block with `do`.
            "if" | "do" | "repeat" => blocks.push("block"),
            "end" | "until" => {
                blocks.pop();
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{hiding_place, names_given, words};

    #[test]
    fn names_that_are_given_to_data_are_found_and_those_that_are_read_are_not() {
        let text = "-- data.comment = 1\n--[[ data.block = 1\n ]] data.a = 1 data [ 'b' ] = 2\n\
                    x = data.read if data.same == 3 then data.c, data.d = 1, 2 end\n\
                    s = \"data.text = 4\" t = [==[ data.long = 5 ]] ]==] data.e=1.5 other.f = 6 data[3] = 7 data.f = 3";
        assert_eq!(names_given(&words(text)).collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "3", "f"]);
    }

    #[test]
    fn values_that_only_a_function_can_reach_are_noticed() {
        for (text, hidden) in [
            ("n = 0 function f() local x = 1 if x then local y end for i = 1, 2 do local z end return x end", false),
            ("function f() repeat local x = 1 until x end g = function() return 1 end", false),
            ("local n = 0 function f() return n end", true),
            ("local function f() end", true),
            ("do local n = 0 end", false),
            ("function f() local n = 0 return function() n = n + 1 return n end end", true),
        ] {
            assert_eq!(hiding_place(&words(text)).is_some(), hidden, "{text}");
        }
    }
}
