//! NROM, mapper 0 (nesdev wiki, "NROM"): 16 or 32 KiB of PRG-ROM at $8000, 8 KiB of CHR at PPU $0000, no
//! registers, no bank switching. Family BASIC's variant has work RAM at $6000; old headers cannot tell it from
//! the others, so work RAM is there unless a NES 2.0 header denies it.
//!
//! `ConsoleState::board` is empty.

/// Where the four 8 KiB windows from $8000 on start in PRG-ROM: the first 16 KiB at $8000, the last at $C000.
#[must_use]
pub fn prg_windows(prg_bytes: usize) -> [usize; 4] {
    let last = prg_bytes.saturating_sub(0x4000);
    [0, 0x2000, last, last + 0x2000]
}

#[cfg(test)]
mod tests {
    use super::prg_windows;

    #[test]
    fn sixteen_kilobytes_are_seen_twice() {
        assert_eq!(prg_windows(0x4000), [0, 0x2000, 0, 0x2000]);
    }

    #[test]
    fn thirty_two_kilobytes_are_seen_in_a_row() {
        assert_eq!(prg_windows(0x8000), [0, 0x2000, 0x4000, 0x6000]);
    }
}
