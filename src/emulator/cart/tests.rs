//! Headers of every kind that is met in the wild, good and bad.

use proptest::prelude::*;

use super::{Board, CartError, Cartridge, Mirroring};

const KIB: usize = 1024;

/// A file of 32 KiB PRG and 8 KiB CHR with these header bytes from 4 on.
fn rom(header: &[u8]) -> Vec<u8> {
    let mut bytes = b"NES\x1A".to_vec();
    bytes.extend_from_slice(header);
    bytes.resize(16, 0);
    bytes.extend((0..40 * KIB).map(|at| (at / 256) as u8));
    bytes
}

#[test]
fn an_ordinary_file_is_read() {
    let cart = Cartridge::parse(&rom(&[2, 1, 1])).unwrap();
    assert_eq!((cart.mapper(), cart.board(), cart.mirroring()), (0, Board::Nrom, Mirroring::Vertical));
    assert_eq!((cart.prg().len(), cart.chr().len()), (32 * KIB, 8 * KIB));
    assert!(cart.has_work_ram() && !cart.has_chr_ram() && cart.trainer().is_none());
    assert_eq!(cart.vram_bytes(), 2048);
    assert_eq!(cart.payload_sha1().len(), 40);
}

#[test]
fn no_chr_means_chr_ram() {
    let cart = Cartridge::parse(&rom(&[2, 0, 0])).unwrap();
    assert!(cart.has_chr_ram());
    assert_eq!((cart.chr_ram_bytes(), cart.mirroring()), (8 * KIB, Mirroring::Horizontal));
}

#[test]
fn a_trainer_shifts_the_rom_by_512_bytes() {
    let mut bytes = rom(&[2, 1, 4]);
    bytes.extend([0; 512]);
    let cart = Cartridge::parse(&bytes).unwrap();
    assert_eq!(cart.trainer().map(<[u8]>::len), Some(512));
    assert_eq!(cart.prg()[0], 2);
}

#[test]
fn four_screens_have_four_kilobytes() {
    assert_eq!(Cartridge::parse(&rom(&[2, 1, 8])).unwrap().vram_bytes(), 4096);
}

#[test]
fn a_tools_name_in_the_header_does_not_change_the_mapper() {
    let cart = Cartridge::parse(&rom(b"\x02\x01\x01DiskDude!")).unwrap();
    assert_eq!(cart.mapper(), 0);
    let junk_at_the_end = rom(&[2, 1, 1, 0x40, 0, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(Cartridge::parse(&junk_at_the_end).unwrap().mapper(), 0);
    let junk_in_the_middle = rom(&[2, 1, 1, 0, 9, 9, 9, 9]);
    assert_eq!(Cartridge::parse(&junk_in_the_middle).unwrap().mapper(), 0);
}

#[test]
fn nes_2_sizes_count() {
    let no_ram = Cartridge::parse(&rom(&[2, 1, 0, 0x08])).unwrap();
    assert!(!no_ram.has_work_ram());
    let with_ram = Cartridge::parse(&rom(&[2, 1, 0, 0x08, 0, 0, 0x07])).unwrap();
    assert!(with_ram.has_work_ram());
    let exponent = Cartridge::parse(&rom(&[15 << 2, 1, 0, 0x08, 0, 0x0F])).unwrap();
    assert_eq!(exponent.prg().len(), 32 * KIB);
    let small = Cartridge::parse(&rom(&[13 << 2, 1, 0, 0x08, 0, 0x0F])).unwrap();
    assert_eq!(small.prg().len(), 16 * KIB);
    assert_eq!(small.prg()[..8 * KIB], small.prg()[8 * KIB..]);
}

#[test]
fn a_board_without_banks_has_no_more_ram_than_it_reaches_whatever_the_header_claims() {
    for shifts in [0x0F, 0xF0, 0xFF] {
        let cart = Cartridge::parse(&rom(&[2, 0, 0, 0x08, 0, 0, shifts, shifts])).unwrap();
        assert_eq!(cart.chr_ram_bytes(), 8 * KIB);
        assert!(cart.has_work_ram());
    }
}

#[test]
fn bad_files_are_told_apart() {
    let message = |bytes: &[u8]| Cartridge::parse(bytes).unwrap_err().to_string();
    assert_eq!(Cartridge::parse(b"").unwrap_err(), CartError::NotARom { found: vec![] });
    assert!(message(b"hello, world").contains("expected it to start with NES"));
    assert!(message(b"PK\x03\x04....").contains("zip archive"));
    assert_eq!(Cartridge::parse(&vec![0xEA; 32 * KIB]).unwrap_err(), CartError::Headerless { bytes: 32 * KIB });
    assert_eq!(Cartridge::parse(b"NES\x1A\x02").unwrap_err(), CartError::Truncated { expected: 16, found: 5 });
    let cut = &rom(&[2, 1])[..20_000];
    assert_eq!(Cartridge::parse(cut).unwrap_err(), CartError::Truncated { expected: 40_976, found: 20_000 });
    assert_eq!(Cartridge::parse(&rom(&[0, 1])).unwrap_err(), CartError::NoPrg);
    assert_eq!(Cartridge::parse(&rom(&[0xFF, 1, 0, 0x08, 0, 0x0F])).unwrap_err(), CartError::TooLarge);
    assert!(message(&rom(&[2, 1, 0x40])).contains("mapper 4 (TxROM, MMC3) is not supported; supported: 0 (NROM)"));
    assert!(message(&rom(&[2, 1, 0x50, 0x98])).contains("mapper 149"));
    assert!(message(&rom(&[2, 1, 0, 0x01])).contains("Vs. System"));
    assert!(message(&rom(&[2, 1, 0, 0x08, 0, 0, 0, 0, 1])).contains("PAL"));
}

proptest! {
    #[test]
    fn parsing_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2048), magic: bool) {
        let mut bytes = bytes;
        if magic {
            bytes.splice(0..bytes.len().min(4), *b"NES\x1A");
        }
        let _ = Cartridge::parse(&bytes);
    }
}
