//! Pattern tables and name tables at PPU $0000-$3EFF.

use std::sync::Arc;

use crate::emulator::cart::{Cartridge, Mirroring};

pub(in super::super) struct VideoMemory {
    cart: Arc<Cartridge>,
    /// Empty where patterns are ROM.
    pub chr_ram: Box<[u8]>,
    pub vram: Box<[u8]>,
    /// Where the name tables at $2000, $2400, $2800 and $2C00 are in `vram`.
    tables: [u16; 4],
}

impl VideoMemory {
    pub(super) fn new(cart: &Arc<Cartridge>) -> Self {
        Self {
            cart: Arc::clone(cart),
            chr_ram: vec![0; cart.chr_ram_bytes()].into(),
            vram: vec![0; cart.vram_bytes()].into(),
            tables: match cart.mirroring() {
                Mirroring::Horizontal => [0, 0, 0x400, 0x400],
                Mirroring::Vertical => [0, 0x400, 0, 0x400],
                Mirroring::FourScreen => [0, 0x400, 0x800, 0xC00],
            },
        }
    }

    /// Becomes equal to that of another console with the same cartridge.
    ///
    /// # Panics
    /// If the lengths differ.
    pub(super) fn copy_from(&mut self, other: &Self) {
        let Self { cart: _, chr_ram, vram, tables } = other;
        self.chr_ram.copy_from_slice(chr_ram);
        self.vram.copy_from_slice(vram);
        self.tables = *tables;
    }

    /// Both pattern tables.
    #[inline(always)]
    fn patterns(&self) -> &[u8] {
        if self.chr_ram.is_empty() { self.cart.chr() } else { &self.chr_ram }
    }

    /// The cartridge, where its ROM has the patterns: these never change.
    pub(in super::super) fn rom(&self) -> Option<&Arc<Cartridge>> {
        self.chr_ram.is_empty().then_some(&self.cart)
    }

    /// A byte of a pattern table, $0000-$1FFF.
    #[inline]
    pub(super) fn pattern(&self, address: u16) -> u8 {
        self.patterns().get(usize::from(address & 0x1FFF)).copied().unwrap_or(0)
    }

    /// Both planes of a pattern's row, at `address` and 8 behind.
    #[inline(always)]
    pub(in super::super) fn pattern_row(&self, address: u16) -> [u8; 2] {
        let row = self.patterns().get(usize::from(address & 0x1FF7)..).unwrap_or_default();
        match row {
            [low, _, _, _, _, _, _, _, high, ..] => [*low, *high],
            _ => [0, 0],
        }
    }

    /// The names of the 32 tiles of the row that `v` is in, and the eight attribute bytes over them.
    ///
    /// # Panics
    /// Never: each table has 1,024 bytes.
    pub(in super::super) fn row_of_names(&self, v: u16) -> (&[u8; 32], &[u8; 8]) {
        let start = self.table_index(v & 0x0C00 | v & 0x03E0);
        let attributes = self.table_index(v & 0x0C00 | 0x03C0 | v >> 4 & 0x38);
        let names = self.vram[start..].first_chunk().expect("rows fill the table");
        (names, self.vram[attributes..].first_chunk().expect("attributes end the table"))
    }

    /// Both planes of a pattern, its 16 bytes; zeros where there is no memory.
    #[inline(always)]
    pub(in super::super) fn tile(&self, address: u16) -> &[u8; 16] {
        let at = usize::from(address & 0x1FF0);
        self.patterns().get(at..at + 16).and_then(|tile| tile.try_into().ok()).unwrap_or(&[0; 16])
    }

    #[inline(always)]
    fn table_index(&self, address: u16) -> usize {
        usize::from(self.tables[usize::from(address >> 10 & 3)] + (address & 0x03FF))
    }

    /// A byte of a name table, $2000-$2FFF and its mirror.
    #[inline(always)]
    pub(super) fn name(&self, address: u16) -> u8 {
        self.vram[self.table_index(address)]
    }

    pub(super) fn read(&self, address: u16) -> u8 {
        if address & 0x2000 == 0 { self.pattern(address) } else { self.name(address) }
    }

    pub(super) fn write(&mut self, address: u16, value: u8) {
        if address & 0x2000 != 0 {
            let at = self.table_index(address);
            self.vram[at] = value;
        } else if let Some(byte) = self.chr_ram.get_mut(usize::from(address & 0x1FFF)) {
            *byte = value;
        }
    }
}
