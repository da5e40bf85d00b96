//! Where PRG-ROM and work RAM are.

use std::sync::OnceLock;

use super::super::interp::Window;
use super::Bus;
use crate::emulator::cart::boards::nrom;
use crate::emulator::cart::{Board, Cartridge};

pub(super) fn prg_banks(cart: &Cartridge) -> [u8; 4] {
    match cart.board() {
        Board::Nrom => nrom::prg_banks(cart.prg().len()),
    }
}

impl Bus {
    /// The four windows on PRG-ROM as they are switched now.
    #[inline]
    pub(in super::super) fn prg_windows<'a>(&self, cart: &'a Cartridge) -> [&'a Window; 4] {
        let banks = cart.prg_banks();
        self.prg_banks.map(|bank| &banks[usize::from(bank)])
    }

    #[inline]
    pub(super) fn prg(&self, address: u16) -> u8 {
        let bank = self.prg_banks[usize::from(address >> 13 & 3)];
        self.cart.prg_banks()[usize::from(bank)][usize::from(address & 0x1FFF)]
    }
}

const WORK_RAM_BYTES: usize = 0x2000;
/// Where in it a trainer goes: $7000.
const TRAINER_AT: usize = 0x1000;

/// Work RAM full of this value is not part of a state: the usual value at power-on, the same for all consoles.
const UNSAVED: u8 = 0xFF;

/// Work RAM as the power-on left it, one for each fill value, shared by all lanes that never wrote to theirs.
static UNTOUCHED: [OnceLock<Box<[u8]>>; 256] = [const { OnceLock::new() }; 256];

fn untouched(fill: u8) -> &'static [u8] {
    UNTOUCHED[usize::from(fill)].get_or_init(|| vec![fill; WORK_RAM_BYTES].into())
}

/// The RAM at $6000, if the board has it. A lane owns its 8 KiB from its first write on.
pub(in super::super) enum WorkRam {
    Absent,
    Untouched(&'static [u8]),
    Owned(Box<[u8]>),
}

impl WorkRam {
    pub(super) fn new(cart: &Cartridge, fill: u8) -> Self {
        if !cart.has_work_ram() {
            return Self::Absent;
        }
        let mut ram = Self::Untouched(untouched(fill));
        if let Some(trainer) = cart.trainer() {
            ram.own()[TRAINER_AT..TRAINER_AT + trainer.len()].copy_from_slice(trainer);
        }
        ram
    }

    /// All 8 KiB.
    pub(in super::super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Absent => None,
            Self::Untouched(bytes) => Some(bytes),
            Self::Owned(bytes) => Some(bytes),
        }
    }

    pub(super) fn read(&self, address: u16) -> Option<u8> {
        self.bytes()?.get(usize::from(address & 0x1FFF)).copied()
    }

    pub(in super::super) fn write(&mut self, address: u16, value: u8) {
        if !matches!(self, Self::Absent) {
            self.own()[usize::from(address & 0x1FFF)] = value;
        }
    }

    /// The lane's own 8 KiB, copied at the first call.
    pub(in super::super) fn own(&mut self) -> &mut [u8] {
        if let Self::Untouched(bytes) = self {
            *self = Self::Owned((*bytes).into());
        }
        match self {
            Self::Owned(bytes) => bytes,
            _ => &mut [],
        }
    }

    /// What a state carries: nothing while every byte is `UNSAVED`, whatever this console was filled with.
    pub(in super::super) fn export(&self) -> Option<Vec<u8>> {
        let bytes = self.bytes()?;
        let common = std::ptr::eq(bytes, untouched(UNSAVED));
        (!common && bytes != untouched(UNSAVED)).then(|| bytes.to_vec())
    }

    /// Takes over what `export` gave. Bytes that are all alike, as states of games have them that never use this RAM,
    /// become nobody's own.
    pub(in super::super) fn import(&mut self, bytes: Option<&[u8]>) {
        if matches!(self, Self::Absent) {
            return;
        }
        let common = untouched(bytes.and_then(<[u8]>::first).copied().unwrap_or(UNSAVED));
        match bytes {
            Some(bytes) if bytes != common => self.own().copy_from_slice(bytes),
            _ => *self = Self::Untouched(common),
        }
    }

    /// Becomes equal to another one of the same cartridge; allocates only where that one has bytes of its own and this
    /// one has none.
    pub(super) fn copy_from(&mut self, other: &Self) {
        match other {
            Self::Absent => *self = Self::Absent,
            Self::Untouched(common) => *self = Self::Untouched(common),
            Self::Owned(bytes) => self.own().copy_from_slice(bytes),
        }
    }

    /// Bytes that this console alone has.
    pub(in super::super) fn own_bytes(&self) -> usize {
        if let Self::Owned(bytes) = self { bytes.len() } else { 0 }
    }
}
