//! The 6502's 256 opcodes, official and not, in opcode order (MOS data sheet; nesdev wiki, "CPU unofficial
//! opcodes").
//!
//! Facts only: what an opcode is called, how it finds its operand, how long it takes. What it does is the
//! engines' matter.

use Mnemonic::{
    Adc, Alr, Anc, And, Ane, Arr, Asl, Bcc, Bcs, Beq, Bit, Bmi, Bne, Bpl, Brk, Bvc, Bvs, Clc, Cld, Cli, Clv, Cmp, Cpx,
    Cpy, Dcp, Dec, Dex, Dey, Eor, Inc, Inx, Iny, Isc, Jam, Jmp, Jsr, Las, Lax, Lda, Ldx, Ldy, Lsr, Lxa, Nop, Ora, Pha,
    Php, Pla, Plp, Rla, Rol, Ror, Rra, Rti, Rts, Sax, Sbc, Sbx, Sec, Sed, Sei, Sha, Shx, Shy, Slo, Sre, Sta, Stx, Sty,
    Tas, Tax, Tay, Tsx, Txa, Txs, Tya,
};
use Mode::{Abs, Abx, Aby, Acc, Imm, Imp, Ind, Izx, Izy, Rel, Zp, Zpx, Zpy};

/// What an instruction is called.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mnemonic {
    Adc, And, Asl, Bcc, Bcs, Beq, Bit, Bmi, Bne, Bpl, Brk, Bvc, Bvs, Clc, Cld, Cli, Clv, Cmp, Cpx, Cpy, Dec, Dex,
    Dey, Eor, Inc, Inx, Iny, Jmp, Jsr, Lda, Ldx, Ldy, Lsr, Nop, Ora, Pha, Php, Pla, Plp, Rol, Ror, Rti, Rts, Sbc,
    Sec, Sed, Sei, Sta, Stx, Sty, Tax, Tay, Tsx, Txa, Txs, Tya,
    // Unofficial.
    Alr, Anc, Ane, Arr, Dcp, Isc, Jam, Las, Lax, Lxa, Rla, Rra, Sax, Sbx, Sha, Shx, Shy, Slo, Sre, Tas,
}

/// How an instruction finds its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None, or the registers that the mnemonic names.
    Imp,
    /// The accumulator.
    Acc,
    /// `#nn`
    Imm,
    /// `nn`
    Zp,
    /// `nn,X`
    Zpx,
    /// `nn,Y`
    Zpy,
    /// `nnnn`
    Abs,
    /// `nnnn,X`
    Abx,
    /// `nnnn,Y`
    Aby,
    /// `(nnnn)`
    Ind,
    /// `(nn,X)`
    Izx,
    /// `(nn),Y`
    Izy,
    /// A branch's signed distance.
    Rel,
}

impl Mode {
    /// Bytes of an instruction in this mode, its opcode counted.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Imp | Acc => 1,
            Imm | Zp | Zpx | Zpy | Izx | Izy | Rel => 2,
            Abs | Abx | Aby | Ind => 3,
        }
    }
}

/// An opcode's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    pub mnemonic: Mnemonic,
    pub mode: Mode,
    /// Cycles without page crossings; a branch that is not taken.
    pub cycles: u8,
    /// Cycles more when the index carries into the high byte. (A taken branch takes one more, and one more again
    /// when it leaves the page.)
    pub page_cycles: u8,
    pub official: bool,
}

const fn o(mnemonic: Mnemonic, mode: Mode, cycles: u8, page_cycles: u8) -> Opcode {
    Opcode { mnemonic, mode, cycles, page_cycles, official: true }
}

const fn u(mnemonic: Mnemonic, mode: Mode, cycles: u8, page_cycles: u8) -> Opcode {
    Opcode { mnemonic, mode, cycles, page_cycles, official: false }
}

/// Every opcode, four to a line: `o` for official ones, `u` for the others; cycles, and cycles for a crossed page.
#[rustfmt::skip]
pub const OPCODES: [Opcode; 256] = [
    o(Brk, Imp, 7, 0),   o(Ora, Izx, 6, 0),   u(Jam, Imp, 2, 0),   u(Slo, Izx, 8, 0),
    u(Nop, Zp, 3, 0),    o(Ora, Zp, 3, 0),    o(Asl, Zp, 5, 0),    u(Slo, Zp, 5, 0),
    o(Php, Imp, 3, 0),   o(Ora, Imm, 2, 0),   o(Asl, Acc, 2, 0),   u(Anc, Imm, 2, 0),
    u(Nop, Abs, 4, 0),   o(Ora, Abs, 4, 0),   o(Asl, Abs, 6, 0),   u(Slo, Abs, 6, 0),
    o(Bpl, Rel, 2, 0),   o(Ora, Izy, 5, 1),   u(Jam, Imp, 2, 0),   u(Slo, Izy, 8, 0),
    u(Nop, Zpx, 4, 0),   o(Ora, Zpx, 4, 0),   o(Asl, Zpx, 6, 0),   u(Slo, Zpx, 6, 0),
    o(Clc, Imp, 2, 0),   o(Ora, Aby, 4, 1),   u(Nop, Imp, 2, 0),   u(Slo, Aby, 7, 0),
    u(Nop, Abx, 4, 1),   o(Ora, Abx, 4, 1),   o(Asl, Abx, 7, 0),   u(Slo, Abx, 7, 0),
    o(Jsr, Abs, 6, 0),   o(And, Izx, 6, 0),   u(Jam, Imp, 2, 0),   u(Rla, Izx, 8, 0),
    o(Bit, Zp, 3, 0),    o(And, Zp, 3, 0),    o(Rol, Zp, 5, 0),    u(Rla, Zp, 5, 0),
    o(Plp, Imp, 4, 0),   o(And, Imm, 2, 0),   o(Rol, Acc, 2, 0),   u(Anc, Imm, 2, 0),
    o(Bit, Abs, 4, 0),   o(And, Abs, 4, 0),   o(Rol, Abs, 6, 0),   u(Rla, Abs, 6, 0),
    o(Bmi, Rel, 2, 0),   o(And, Izy, 5, 1),   u(Jam, Imp, 2, 0),   u(Rla, Izy, 8, 0),
    u(Nop, Zpx, 4, 0),   o(And, Zpx, 4, 0),   o(Rol, Zpx, 6, 0),   u(Rla, Zpx, 6, 0),
    o(Sec, Imp, 2, 0),   o(And, Aby, 4, 1),   u(Nop, Imp, 2, 0),   u(Rla, Aby, 7, 0),
    u(Nop, Abx, 4, 1),   o(And, Abx, 4, 1),   o(Rol, Abx, 7, 0),   u(Rla, Abx, 7, 0),
    o(Rti, Imp, 6, 0),   o(Eor, Izx, 6, 0),   u(Jam, Imp, 2, 0),   u(Sre, Izx, 8, 0),
    u(Nop, Zp, 3, 0),    o(Eor, Zp, 3, 0),    o(Lsr, Zp, 5, 0),    u(Sre, Zp, 5, 0),
    o(Pha, Imp, 3, 0),   o(Eor, Imm, 2, 0),   o(Lsr, Acc, 2, 0),   u(Alr, Imm, 2, 0),
    o(Jmp, Abs, 3, 0),   o(Eor, Abs, 4, 0),   o(Lsr, Abs, 6, 0),   u(Sre, Abs, 6, 0),
    o(Bvc, Rel, 2, 0),   o(Eor, Izy, 5, 1),   u(Jam, Imp, 2, 0),   u(Sre, Izy, 8, 0),
    u(Nop, Zpx, 4, 0),   o(Eor, Zpx, 4, 0),   o(Lsr, Zpx, 6, 0),   u(Sre, Zpx, 6, 0),
    o(Cli, Imp, 2, 0),   o(Eor, Aby, 4, 1),   u(Nop, Imp, 2, 0),   u(Sre, Aby, 7, 0),
    u(Nop, Abx, 4, 1),   o(Eor, Abx, 4, 1),   o(Lsr, Abx, 7, 0),   u(Sre, Abx, 7, 0),
    o(Rts, Imp, 6, 0),   o(Adc, Izx, 6, 0),   u(Jam, Imp, 2, 0),   u(Rra, Izx, 8, 0),
    u(Nop, Zp, 3, 0),    o(Adc, Zp, 3, 0),    o(Ror, Zp, 5, 0),    u(Rra, Zp, 5, 0),
    o(Pla, Imp, 4, 0),   o(Adc, Imm, 2, 0),   o(Ror, Acc, 2, 0),   u(Arr, Imm, 2, 0),
    o(Jmp, Ind, 5, 0),   o(Adc, Abs, 4, 0),   o(Ror, Abs, 6, 0),   u(Rra, Abs, 6, 0),
    o(Bvs, Rel, 2, 0),   o(Adc, Izy, 5, 1),   u(Jam, Imp, 2, 0),   u(Rra, Izy, 8, 0),
    u(Nop, Zpx, 4, 0),   o(Adc, Zpx, 4, 0),   o(Ror, Zpx, 6, 0),   u(Rra, Zpx, 6, 0),
    o(Sei, Imp, 2, 0),   o(Adc, Aby, 4, 1),   u(Nop, Imp, 2, 0),   u(Rra, Aby, 7, 0),
    u(Nop, Abx, 4, 1),   o(Adc, Abx, 4, 1),   o(Ror, Abx, 7, 0),   u(Rra, Abx, 7, 0),
    u(Nop, Imm, 2, 0),   o(Sta, Izx, 6, 0),   u(Nop, Imm, 2, 0),   u(Sax, Izx, 6, 0),
    o(Sty, Zp, 3, 0),    o(Sta, Zp, 3, 0),    o(Stx, Zp, 3, 0),    u(Sax, Zp, 3, 0),
    o(Dey, Imp, 2, 0),   u(Nop, Imm, 2, 0),   o(Txa, Imp, 2, 0),   u(Ane, Imm, 2, 0),
    o(Sty, Abs, 4, 0),   o(Sta, Abs, 4, 0),   o(Stx, Abs, 4, 0),   u(Sax, Abs, 4, 0),
    o(Bcc, Rel, 2, 0),   o(Sta, Izy, 6, 0),   u(Jam, Imp, 2, 0),   u(Sha, Izy, 6, 0),
    o(Sty, Zpx, 4, 0),   o(Sta, Zpx, 4, 0),   o(Stx, Zpy, 4, 0),   u(Sax, Zpy, 4, 0),
    o(Tya, Imp, 2, 0),   o(Sta, Aby, 5, 0),   o(Txs, Imp, 2, 0),   u(Tas, Aby, 5, 0),
    u(Shy, Abx, 5, 0),   o(Sta, Abx, 5, 0),   u(Shx, Aby, 5, 0),   u(Sha, Aby, 5, 0),
    o(Ldy, Imm, 2, 0),   o(Lda, Izx, 6, 0),   o(Ldx, Imm, 2, 0),   u(Lax, Izx, 6, 0),
    o(Ldy, Zp, 3, 0),    o(Lda, Zp, 3, 0),    o(Ldx, Zp, 3, 0),    u(Lax, Zp, 3, 0),
    o(Tay, Imp, 2, 0),   o(Lda, Imm, 2, 0),   o(Tax, Imp, 2, 0),   u(Lxa, Imm, 2, 0),
    o(Ldy, Abs, 4, 0),   o(Lda, Abs, 4, 0),   o(Ldx, Abs, 4, 0),   u(Lax, Abs, 4, 0),
    o(Bcs, Rel, 2, 0),   o(Lda, Izy, 5, 1),   u(Jam, Imp, 2, 0),   u(Lax, Izy, 5, 1),
    o(Ldy, Zpx, 4, 0),   o(Lda, Zpx, 4, 0),   o(Ldx, Zpy, 4, 0),   u(Lax, Zpy, 4, 0),
    o(Clv, Imp, 2, 0),   o(Lda, Aby, 4, 1),   o(Tsx, Imp, 2, 0),   u(Las, Aby, 4, 1),
    o(Ldy, Abx, 4, 1),   o(Lda, Abx, 4, 1),   o(Ldx, Aby, 4, 1),   u(Lax, Aby, 4, 1),
    o(Cpy, Imm, 2, 0),   o(Cmp, Izx, 6, 0),   u(Nop, Imm, 2, 0),   u(Dcp, Izx, 8, 0),
    o(Cpy, Zp, 3, 0),    o(Cmp, Zp, 3, 0),    o(Dec, Zp, 5, 0),    u(Dcp, Zp, 5, 0),
    o(Iny, Imp, 2, 0),   o(Cmp, Imm, 2, 0),   o(Dex, Imp, 2, 0),   u(Sbx, Imm, 2, 0),
    o(Cpy, Abs, 4, 0),   o(Cmp, Abs, 4, 0),   o(Dec, Abs, 6, 0),   u(Dcp, Abs, 6, 0),
    o(Bne, Rel, 2, 0),   o(Cmp, Izy, 5, 1),   u(Jam, Imp, 2, 0),   u(Dcp, Izy, 8, 0),
    u(Nop, Zpx, 4, 0),   o(Cmp, Zpx, 4, 0),   o(Dec, Zpx, 6, 0),   u(Dcp, Zpx, 6, 0),
    o(Cld, Imp, 2, 0),   o(Cmp, Aby, 4, 1),   u(Nop, Imp, 2, 0),   u(Dcp, Aby, 7, 0),
    u(Nop, Abx, 4, 1),   o(Cmp, Abx, 4, 1),   o(Dec, Abx, 7, 0),   u(Dcp, Abx, 7, 0),
    o(Cpx, Imm, 2, 0),   o(Sbc, Izx, 6, 0),   u(Nop, Imm, 2, 0),   u(Isc, Izx, 8, 0),
    o(Cpx, Zp, 3, 0),    o(Sbc, Zp, 3, 0),    o(Inc, Zp, 5, 0),    u(Isc, Zp, 5, 0),
    o(Inx, Imp, 2, 0),   o(Sbc, Imm, 2, 0),   o(Nop, Imp, 2, 0),   u(Sbc, Imm, 2, 0),
    o(Cpx, Abs, 4, 0),   o(Sbc, Abs, 4, 0),   o(Inc, Abs, 6, 0),   u(Isc, Abs, 6, 0),
    o(Beq, Rel, 2, 0),   o(Sbc, Izy, 5, 1),   u(Jam, Imp, 2, 0),   u(Isc, Izy, 8, 0),
    u(Nop, Zpx, 4, 0),   o(Sbc, Zpx, 4, 0),   o(Inc, Zpx, 6, 0),   u(Isc, Zpx, 6, 0),
    o(Sed, Imp, 2, 0),   o(Sbc, Aby, 4, 1),   u(Nop, Imp, 2, 0),   u(Isc, Aby, 7, 0),
    u(Nop, Abx, 4, 1),   o(Sbc, Abx, 4, 1),   o(Inc, Abx, 7, 0),   u(Isc, Abx, 7, 0),
];

#[cfg(test)]
mod tests {
    use super::{Mnemonic, Mode, OPCODES};

    #[test]
    fn there_are_151_official_opcodes() {
        assert_eq!(OPCODES.iter().filter(|row| row.official).count(), 151);
    }

    #[test]
    fn twelve_opcodes_jam_the_processor() {
        let jams = OPCODES.iter().filter(|row| row.mnemonic == Mnemonic::Jam);
        assert_eq!(jams.count(), 12);
    }

    #[test]
    fn only_indexed_reads_pay_for_a_crossed_page() {
        for row in OPCODES.iter().filter(|row| row.page_cycles > 0) {
            assert!(matches!(row.mode, Mode::Abx | Mode::Aby | Mode::Izy), "{row:?}");
        }
    }
}
