//! Stores in a row to the scroll, the address and the data, as translated code makes them: in vblank without a look at the
//! clock at each.

use super::Ppu;

/// Where a store's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Source {
    Value(u8),
    Ram(u16),
}

/// A store to $2005, $2006 or $2007.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Store {
    /// The cycle of the write, from the row's begin on.
    pub cycle: u16,
    pub register: u8,
    pub from: Source,
}

impl Source {
    #[inline(always)]
    fn value(self, ram: &[u8; 2048]) -> u8 {
        match self {
            Self::Value(value) => value,
            Self::Ram(address) => ram[usize::from(address & 0x07FF)],
        }
    }
}

impl Store {
    /// What it writes.
    pub(in super::super) fn value(self, ram: &[u8; 2048]) -> u8 {
        self.from.value(ram)
    }
}

impl Ppu {
    /// Makes the writes of a row that begins in `cycle`, if nothing happens at the PPU up to its end; else `false`, and
    /// nothing was done.
    pub(in super::super) fn store_row(&mut self, stores: &[Store], ram: &[u8; 2048], cycle: u64) -> bool {
        let Some(last) = stores.last() else { return true };
        let last_cycle = cycle + u64::from(last.cycle);
        if !self.is_quiet(last_cycle) || self.warming_up {
            return false;
        }
        for store in stores {
            let value = store.from.value(ram);
            match store.register {
                5 => self.write_scroll(value),
                6 => self.write_address(value),
                _ => self.write_data(value),
            }
        }
        self.open_bus.drive(0xFF, last.from.value(ram), last_cycle);
        true
    }
}
