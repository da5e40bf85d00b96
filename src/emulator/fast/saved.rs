//! A console's state in the console's own form, for those who come back to it within the process: copies of some KiB,
//! nothing is converted and, into what is there already, nothing allocated.
//!
//! With the switch `state_copies` off the state goes through plain data (`snapshot`) each time; the tests hold that it
//! makes no difference.

use super::bus::Bus;
use super::cpu::Cpu;
use super::{Fast, snapshot};
use crate::emulator::engine::EngineError;
use crate::emulator::nes::ConsoleState;

/// What a console was at a frame's boundary. It fits every console with the same cartridge.
pub struct Saved {
    cpu: Cpu,
    bus: Bus,
    frame_count: u64,
    copies: bool,
}

impl Saved {
    /// As plain data.
    pub fn export(&self) -> ConsoleState {
        snapshot::export(&self.cpu, &self.bus, self.frame_count)
    }

    /// Becomes what the plain data says.
    ///
    /// # Errors
    /// As for [`Engine::import`](crate::emulator::engine::Engine::import).
    pub fn import(&mut self, state: &ConsoleState) -> Result<(), EngineError> {
        snapshot::import(&mut self.cpu, &mut self.bus, state)?;
        self.frame_count = state.frame_count;
        Ok(())
    }

    /// Becomes equal to another one of the same cartridge.
    pub fn copy_from(&mut self, other: &Self) {
        self.cpu = other.cpu;
        self.bus.copy_from(&other.bus);
        self.frame_count = other.frame_count;
    }

    /// Bytes outside of this structure.
    pub fn heap_bytes(&self) -> usize {
        self.bus.heap_bytes()
    }
}

impl Clone for Saved {
    fn clone(&self) -> Self {
        Self { cpu: self.cpu, bus: self.bus.twin(), frame_count: self.frame_count, copies: self.copies }
    }
}

impl Fast {
    /// The console's state, to be loaded again later.
    pub fn saved(&self) -> Saved {
        Saved { cpu: self.cpu, bus: self.bus.twin(), frame_count: self.frame_count, copies: self.options.state_copies }
    }

    /// Puts the console's state in the place of one that was saved from a console with this cartridge.
    ///
    /// # Panics
    /// If it was another cartridge's.
    pub fn save_over(&self, saved: &mut Saved) {
        if saved.copies {
            saved.cpu = self.cpu;
            saved.bus.copy_from(&self.bus);
            saved.frame_count = self.frame_count;
        } else {
            let state = snapshot::export(&self.cpu, &self.bus, self.frame_count);
            saved.import(&state).expect("the cartridge is the same");
        }
    }

    /// Goes back to a state that was saved from a console with this cartridge.
    ///
    /// # Panics
    /// If it was another cartridge's.
    pub fn load(&mut self, saved: &Saved) {
        if saved.copies {
            self.cpu = saved.cpu;
            self.bus.copy_from(&saved.bus);
        } else {
            snapshot::import(&mut self.cpu, &mut self.bus, &saved.export()).expect("the cartridge is the same");
        }
        self.frame_count = saved.frame_count;
    }

    /// Whether a saved state has this console's memories: it may come from a console whose cartridge has the same ROM and
    /// another board.
    pub fn fits(&self, saved: &Saved) -> bool {
        let memories = |bus: &Bus| {
            let memory = &bus.ppu.memory;
            (memory.vram.len(), memory.chr_ram.len(), bus.work_ram.bytes().map(<[u8]>::len))
        };
        memories(&self.bus) == memories(&saved.bus)
    }

    /// Bytes outside of this structure that belong to this console alone: neither the cartridge nor translated code.
    pub fn heap_bytes(&self) -> usize {
        self.bus.heap_bytes()
    }
}
