//! Programs that are mostly sensible: loops, calls, pointers into RAM and ROM, registers now and then, and bytes that
//! make no sense at all.

use proptest::prelude::*;

use rollcart::emulator::cart::Cartridge;

const PRG_BYTES: usize = 0x8000;
const START: u16 = 0x8000;

#[derive(Clone)]
pub(crate) struct Program(Vec<u8>);

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program::of(&{:02X?})", self.0)
    }
}

impl Program {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The program at $8000 and again and again behind it; reset begins it, NMI and IRQ land inside.
    pub(crate) fn cartridge(&self) -> Cartridge {
        let length = self.0.len().max(1);
        let mut prg: Vec<u8> = self.0.iter().copied().cycle().take(PRG_BYTES).collect();
        prg.resize(PRG_BYTES, 0xEA);
        for (vector, at) in [(PRG_BYTES - 6, length / 3), (PRG_BYTES - 4, 0), (PRG_BYTES - 2, length / 2)] {
            prg[vector..vector + 2].copy_from_slice(&(START + at as u16).to_le_bytes());
        }
        let mut file = b"NES\x1A\x02\x00\x01\x00\0\0\0\0\0\0\0\0".to_vec();
        file.extend(prg);
        Cartridge::parse(&file).expect("the file is in order")
    }
}

/// Opcodes with an absolute operand, and whether they only read.
const ABSOLUTE: [u8; 20] = [
    0xAD, 0x8D, 0xAE, 0x8E, 0xEE, 0x2C, 0xBD, 0x9D, 0xCE, 0xB9, 0x99, 0x7D, 0xFD, 0xDD, 0x1E, 0x7E, 0x0D, 0xCD, 0xBE,
    0x5D,
];
const ZERO_PAGE: [u8; 20] = [
    0xA5, 0x85, 0xE6, 0xC6, 0x65, 0xE5, 0xC5, 0x24, 0xB5, 0x95, 0xB6, 0x96, 0xA1, 0x81, 0xB1, 0x91, 0x71, 0x51, 0x06,
    0x76,
];
const IMMEDIATE: [u8; 9] = [0xA9, 0xA2, 0xA0, 0x69, 0xE9, 0xC9, 0xE0, 0x29, 0x49];
const IMPLIED: [u8; 24] = [
    0xAA, 0xA8, 0x8A, 0x98, 0xBA, 0xE8, 0xC8, 0xCA, 0x88, 0x18, 0x38, 0xB8, 0xD8, 0xF8, 0x48, 0x68, 0x08, 0x28, 0x0A,
    0x2A, 0x4A, 0x6A, 0x58, 0x78,
];
const BRANCHES: [u8; 8] = [0x10, 0x30, 0x50, 0x70, 0x90, 0xB0, 0xD0, 0xF0];

fn one_of<const N: usize>(codes: [u8; N]) -> impl Strategy<Value = u8> {
    (0..N).prop_map(move |at| codes[at])
}

fn address() -> impl Strategy<Value = u16> {
    prop_oneof![
        4 => 0x0000_u16..0x0800,
        1 => 0x0800_u16..0x2000,
        2 => 0x2000_u16..0x2008,
        1 => 0x4000_u16..0x4018,
        1 => 0x6000_u16..0x8000,
        2 => 0x8000_u16..=0xFFFF,
        1 => prop_oneof![Just(0x1FFF_u16), Just(0x1F01), Just(0x20FF), Just(0x7FFF), Just(0xFFFF), Just(0xFF01)],
    ]
}

fn unit() -> impl Strategy<Value = Vec<u8>> {
    let there = (0_u16..0x400).prop_map(|at| START + at);
    prop_oneof![
        5 => (one_of(ABSOLUTE), address()).prop_map(|(code, at)| [&[code][..], &at.to_le_bytes()].concat()),
        6 => (one_of(ZERO_PAGE), any::<u8>()).prop_map(|(code, at)| vec![code, at]),
        4 => (one_of(IMMEDIATE), any::<u8>()).prop_map(|(code, value)| vec![code, value]),
        6 => one_of(IMPLIED).prop_map(|code| vec![code]),
        3 => (one_of(BRANCHES), -20_i8..20).prop_map(|(code, distance)| vec![code, distance as u8]),
        // A counted loop around something: LDX #n, ..., DEX, BNE back.
        2 => (1_u8..60, any::<u8>()).prop_map(|(count, at)| vec![0xA2, count, 0xF6, at, 0x6D, at, 0x03, 0xCA, 0xD0, 0xF8]),
        // A loop that polls $2002 for a flag: LDA $2002, AND #mask, BEQ or BNE back; BIT $2002, BPL or BVC or BVS back.
        1 => (prop_oneof![Just(0x40_u8), Just(0x20), Just(0xC0)], one_of([0xF0, 0xD0]))
            .prop_map(|(mask, code)| vec![0xAD, 0x02, 0x20, 0x29, mask, code, 0xF9]),
        1 => one_of([0x10, 0x50, 0x70]).prop_map(|code| vec![0x2C, 0x02, 0x20, code, 0xFB]),
        1 => (one_of([0x20, 0x4C]), there).prop_map(|(code, at)| [&[code][..], &at.to_le_bytes()].concat()),
        1 => one_of([0x60, 0x40, 0x00, 0x6C, 0xEA]).prop_map(|code| vec![code]),
        // A pointer in page zero, and a read and a write through it.
        2 => (any::<u8>(), address()).prop_map(|(at, to)| {
            let [low, high] = to.to_le_bytes();
            vec![0xA9, low, 0x85, at, 0xA9, high, 0x85, at.wrapping_add(1), 0xB1, at, 0x91, at]
        }),
        // NMI on, rendering on, a sample with its IRQ, the frame IRQ.
        1 => one_of([0x00, 0x80, 0x90]).prop_map(|value| vec![0xA9, value, 0x8D, 0x00, 0x20]),
        1 => any::<u8>().prop_map(|value| vec![0xA9, value | 0x18, 0x8D, 0x01, 0x20]),
        1 => any::<u8>().prop_map(|value| vec![0xA9, value, 0x8D, 0x14, 0x40]),
        1 => Just(vec![0xA9, 0x8F, 0x8D, 0x10, 0x40, 0xA9, 0x1F, 0x8D, 0x15, 0x40]),
        1 => Just(vec![0xA9, 0x00, 0x8D, 0x17, 0x40, 0x58]),
        1 => any::<u8>().prop_map(|code| vec![if code & 0x1F == 0x12 || code & 0x9F == 2 { 0xEA } else { code }]),
    ]
}

pub(crate) fn programs() -> impl Strategy<Value = Program> {
    prop::collection::vec(unit(), 4..400).prop_map(|units| {
        let mut bytes = units.concat();
        bytes.truncate(PRG_BYTES - 6);
        Program(bytes)
    })
}
