//! In place of `jit` where the crate is built without it: everything is interpreted.

use std::sync::Arc;

use super::Translated;
use super::bus::Bus;
use super::cpu::Cpu;
use crate::emulator::cart::Cartridge;
use crate::emulator::engine::EngineOptions;

/// No lane has one.
pub(super) enum Jit {}

impl Jit {
    pub(super) fn open(_cart: &Arc<Cartridge>, _options: &EngineOptions) -> Option<Self> {
        None
    }

    pub(super) fn begin_frame(&mut self) {
        match *self {}
    }

    pub(super) fn settle(&mut self) {
        match *self {}
    }

    pub(super) fn stats(&self) -> Translated {
        match *self {}
    }

    pub(super) fn run(&mut self, _cpu: &mut Cpu, _bus: &mut Bus, _cart: &Cartridge) {
        match *self {}
    }
}
