//! In a build without Lua: scenarios with scripts are refused, and there is nothing to run.

use super::{Memory, Program, Source, Variables};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: this build of rollcart has no Lua; build it with the feature \"lua\", or choose another scenario")]
pub struct ScriptError {
    name: String,
}

/// Nobody has one.
#[derive(Debug)]
pub(super) enum Scripts {}

pub(super) fn check(source: &Source) -> Result<(), ScriptError> {
    Err(ScriptError { name: source.name.clone() })
}

impl Scripts {
    pub(super) fn start(program: &Program, _: &Variables, _: Memory) -> Result<Self, ScriptError> {
        Err(ScriptError { name: program.sources.first().map_or_else(String::new, |source| source.name.clone()) })
    }

    pub(super) fn restored(
        program: &Program,
        variables: &Variables,
        memory: Memory,
        _: &[u8],
    ) -> Result<Self, ScriptError> {
        Self::start(program, variables, memory)
    }

    pub(super) fn show(&mut self, _: Memory) {
        match *self {}
    }

    pub(super) fn call(&mut self, _: &str) -> Result<f64, ScriptError> {
        match *self {}
    }

    pub(super) fn next_frame(&mut self) {
        match *self {}
    }

    pub(super) fn read(&self, _: &Variables, _: &[String], _: &mut [i64]) {
        match *self {}
    }

    pub(super) fn written(&self, _: &mut Vec<(u16, u8)>) {
        match *self {}
    }

    pub(super) fn save(&self, _: &Program) -> Result<Vec<u8>, ScriptError> {
        match *self {}
    }
}
