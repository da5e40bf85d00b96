//! A console for test ROMs: runs frames, reads bytes and the text on the screen.

use std::path::Path;
use std::sync::Arc;

use rollcart::emulator::cart::Cartridge;
use rollcart::emulator::engine::{Draw, Engine, EngineOptions, ResetKind};
use rollcart::emulator::fast::Fast;
use rollcart::emulator::nes::Buttons;

pub(crate) struct Console(pub(crate) Fast);

impl Console {
    /// A console with that ROM, just switched on; else why the ROM cannot be played.
    pub(crate) fn start(rom: &Path, ram_fill: u8) -> Result<Self, String> {
        let bytes = std::fs::read(rom).unwrap_or_else(|error| panic!("{}: {error}", rom.display()));
        let cart = Cartridge::parse(&bytes).map_err(|error| error.to_string())?;
        let options =
            EngineOptions { ram_fill, ..EngineOptions::from_environment().expect("the environment names switches") };
        Fast::new(Arc::new(cart), &options).map(Self).map_err(|error| error.to_string())
    }

    pub(crate) fn run(&mut self, frames: u32, held: Buttons) {
        for _ in 0..frames {
            self.0.run_frame([held, Buttons::NONE], Draw::Skip);
        }
    }

    pub(crate) fn press_reset(&mut self) {
        self.0.reset(ResetKind::Soft);
    }

    pub(crate) fn byte(&self, addr: u16) -> u8 {
        self.0.peek(addr)
    }

    /// Zero-terminated text in the CPU's memory, on one line.
    pub(crate) fn text_at(&self, addr: u16) -> String {
        let bytes: Vec<u8> = (addr..addr + 0x400).map(|at| self.byte(at)).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The name tables as text (these ROMs number their letter tiles in ASCII), blanks for what is no letter.
    pub(crate) fn screen(&self) -> String {
        let letter = |&tile: &u8| if (0x20..0x7F).contains(&tile) { char::from(tile) } else { ' ' };
        self.0.vram().iter().map(letter).collect()
    }

    /// Whether the text stands at that PPU address.
    pub(crate) fn shows_at(&self, nametable: u16, text: &str) -> bool {
        self.screen().get(usize::from(nametable - 0x2000)..).is_some_and(|rest| rest.starts_with(text))
    }
}
