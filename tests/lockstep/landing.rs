//! Interrupts that land at every cycle of a loop.

use std::sync::Arc;

use rollcart::emulator::cart::Cartridge;
use rollcart::emulator::engine::Draw;
use rollcart::emulator::nes::Buttons;

use super::pair::Pair;
use super::variants;

const START: u16 = 0x8000;
const PRG_BYTES: usize = 0x8000;

/// Switches NMI on, then runs `body` for ever. The NMI saves the flags and registers that it finds into a growing
/// trail, and takes a time that changes by a cycle with each, so that the next one lands a cycle later in the body.
fn program(body: &[u8]) -> Arc<Cartridge> {
    // LDA $2002, BPL back, twice: the PPU is deaf until the end of the first vblank.
    let mut prg = [0xAD, 0x02, 0x20, 0x10, 0xFB].repeat(2);
    prg.extend([0xA2, 0xFF, 0x9A, 0xA9, 0x80, 0x8D, 0x00, 0x20]);
    let [low, high] = (START + prg.len() as u16).to_le_bytes();
    prg.extend(body);
    prg.extend([0x4C, low, high]);
    prg.resize(0x100, 0xEA);
    // PHA, PHP, PLA, LDY $10, STA $0300,Y, INC $10, TSX, LDA $0102,X, STA $0400,Y
    prg.extend([0x48, 0x08, 0x68, 0xA4, 0x10, 0x99, 0x00, 0x03, 0xE6, 0x10, 0xBA, 0xBD, 0x02, 0x01, 0x99, 0x00, 0x04]);
    // LDA $10, LSR, BCS to the next: a cycle more when $10 is odd; LDX $10, DEX, BNE back: five more each time.
    prg.extend([0xA5, 0x10, 0x4A, 0xB0, 0x00, 0xA6, 0x10, 0xCA, 0xD0, 0xFD, 0x68, 0x40]);
    prg.resize(0x200, 0xEA);
    // A subroutine: CLC, ADC #7, RTS.
    prg.extend([0x18, 0x69, 0x07, 0x60]);
    prg.resize(PRG_BYTES, 0xEA);
    for (vector, address) in [(PRG_BYTES - 6, START + 0x100), (PRG_BYTES - 4, START), (PRG_BYTES - 2, START + 0x100)] {
        prg[vector..vector + 2].copy_from_slice(&address.to_le_bytes());
    }
    let mut file = b"NES\x1A\x02\x00\x01\x00\0\0\0\0\0\0\0\0".to_vec();
    file.extend(prg);
    Arc::new(Cartridge::parse(&file).expect("the file is in order"))
}

#[test]
fn an_nmi_may_land_at_every_cycle_of_a_loop() {
    let bodies: [(&str, &[u8]); 6] = [
        ("arithmetic", &[0x69, 0x35, 0xE9, 0x11, 0xC9, 0x80, 0x0A, 0x2A, 0x24, 0x10]),
        ("memory", &[0xE6, 0x20, 0xF6, 0x21, 0xB5, 0x20, 0x9D, 0xF0, 0x06, 0xBD, 0xF0, 0x81]),
        ("a short loop", &[0xA2, 0x05, 0xCA, 0xD0, 0xFD]),
        ("a long loop", &[0xA2, 0x19, 0x8A, 0x0A, 0x0A, 0x69, 0x33, 0x85, 0x30, 0xCA, 0xD0, 0xF6]),
        ("a call", &[0x20, 0x00, 0x82, 0xE6, 0x20]),
        ("registers", &[0xA9, 0x1E, 0x8D, 0x01, 0x20, 0xAD, 0x02, 0x20, 0x8D, 0x00, 0x40]),
    ];
    for (name, body) in bodies {
        let cart = program(body);
        for (variant, options) in variants() {
            let mut pair = Pair::new(&cart, options);
            for frame in 0..256 {
                if frame % 8 == 0 {
                    pair.translated.settle();
                }
                pair.frame([Buttons::NONE; 2], Draw::Skip, &format!("{name}, {variant}"));
            }
            let trail = pair.state().ram;
            assert_ne!(trail[0x10], 0xFF, "{name}: NMIs came");
        }
    }
}
