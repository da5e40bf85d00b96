//! NROM, mapper 0 (nesdev wiki, "NROM"): 16 or 32 KiB of PRG-ROM at $8000, 8 KiB of CHR at PPU $0000, no
//! registers, no bank switching. Family BASIC's variant has work RAM at $6000; old headers cannot tell it from
//! the others, so work RAM is there unless a NES 2.0 header denies it.
//!
//! `ConsoleState::board` is empty.

/// The 8 KiB banks of PRG-ROM in the four windows from $8000 on: the first 16 KiB at $8000, the last at $C000.
#[must_use]
pub fn prg_banks(prg_bytes: usize) -> [u8; 4] {
    let last = (prg_bytes / 0x2000).saturating_sub(2) as u8;
    [0, 1, last, last + 1]
}

#[cfg(test)]
mod tests {
    use super::prg_banks;

    #[test]
    fn sixteen_kilobytes_are_seen_twice() {
        assert_eq!(prg_banks(0x4000), [0, 1, 0, 1]);
    }

    #[test]
    fn thirty_two_kilobytes_are_seen_in_a_row() {
        assert_eq!(prg_banks(0x8000), [0, 1, 2, 3]);
    }
}
