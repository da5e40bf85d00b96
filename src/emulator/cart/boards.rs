//! Boards, one row each: what connects a cartridge's chips to the console.
//!
//! Adding a board:
//! 1. its file in `boards/`, opening with the hardware page it follows;
//! 2. a variant of `Board` and its row here (the compiler then asks for the variant in every engine's match);
//! 3. its registers in `ConsoleState::board`, in an order that its file gives (not checked by the compiler);
//! 4. recipes of the test ROMs that need it (`tests/conformance`).

pub mod nrom;

/// A supported board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    Nrom,
}

/// A board's row.
pub struct Row {
    pub mapper: u16,
    pub name: &'static str,
    /// `None`: known by name, not supported.
    pub board: Option<Board>,
}

const fn known(mapper: u16, name: &'static str) -> Row {
    Row { mapper, name, board: None }
}

/// Boards by iNES mapper number (nesdev wiki, "Mapper").
pub const BOARDS: [Row; 34] = [
    Row { mapper: 0, name: "NROM", board: Some(Board::Nrom) },
    known(1, "SxROM, MMC1"),
    known(2, "UxROM"),
    known(3, "CNROM"),
    known(4, "TxROM, MMC3"),
    known(5, "ExROM, MMC5"),
    known(7, "AxROM"),
    known(9, "PxROM, MMC2"),
    known(10, "FxROM, MMC4"),
    known(11, "Color Dreams"),
    known(13, "CPROM"),
    known(16, "Bandai FCG"),
    known(18, "Jaleco SS 88006"),
    known(19, "Namco 163"),
    known(21, "Konami VRC4"),
    known(22, "Konami VRC2"),
    known(23, "Konami VRC2/VRC4"),
    known(24, "Konami VRC6"),
    known(25, "Konami VRC2/VRC4"),
    known(28, "Action 53"),
    known(30, "UNROM 512"),
    known(33, "Taito TC0190"),
    known(34, "BNROM / NINA-001"),
    known(64, "Tengen RAMBO-1"),
    known(66, "GxROM"),
    known(68, "Sunsoft-4"),
    known(69, "Sunsoft FME-7"),
    known(71, "Camerica"),
    known(73, "Konami VRC3"),
    known(75, "Konami VRC1"),
    known(79, "NINA-003/006"),
    known(85, "Konami VRC7"),
    known(118, "TxSROM, MMC3"),
    known(119, "TQROM, MMC3"),
];

/// The row of a mapper number, if it has one.
#[must_use]
pub fn row(mapper: u16) -> Option<&'static Row> {
    BOARDS.iter().find(|row| row.mapper == mapper)
}
