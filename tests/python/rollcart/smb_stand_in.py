"""A cartridge that keeps Super Mario Bros.' RAM addresses and nothing else of it, assembled here from source.

Title until START; then an entrance during which the prelevel timer runs down; then RIGHT and LEFT walk two
pixels a frame, B dies, SELECT takes the flag, UP ends the world, DOWN enters a pipe. The clock ticks every
ninth frame. The screen is one colour that follows the position.
"""

from __future__ import annotations

ABSOLUTE, IMMEDIATE, IMPLIED = "absolute", "immediate", "implied"
_OPCODES = {
    ("lda", IMMEDIATE): 0xA9,
    ("lda", ABSOLUTE): 0xAD,
    ("sta", ABSOLUTE): 0x8D,
    ("ldx", IMMEDIATE): 0xA2,
    ("cmp", IMMEDIATE): 0xC9,
    ("and", IMMEDIATE): 0x29,
    ("ora", IMMEDIATE): 0x09,
    ("adc", IMMEDIATE): 0x69,
    ("sbc", IMMEDIATE): 0xE9,
    ("inc", ABSOLUTE): 0xEE,
    ("dec", ABSOLUTE): 0xCE,
    ("rol", ABSOLUTE): 0x2E,
    ("bit", ABSOLUTE): 0x2C,
    ("jmp", ABSOLUTE): 0x4C,
    ("jsr", ABSOLUTE): 0x20,
    **{
        (name, IMPLIED): code
        for name, code in {
            "sei": 0x78,
            "cld": 0xD8,
            "txs": 0x9A,
            "clc": 0x18,
            "sec": 0x38,
            "lsr": 0x4A,
            "dex": 0xCA,
            "rts": 0x60,
            "rti": 0x40,
        }.items()
    },
}
_BRANCHES = {"beq": 0xF0, "bne": 0xD0, "bpl": 0x10, "bcs": 0xB0, "bcc": 0x90}
_ORIGIN = 0x8000

# The pad's byte: A is the highest bit, RIGHT the lowest.
_SOURCE = """
reset:  sei
        cld
        ldx #$FF
        txs
v1:     bit $2002
        bpl v1
v2:     bit $2002
        bpl v2
        lda #$80
        sta $2000
wait:   jmp wait

nmi:    lda #1
        sta $4016
        lda #0
        sta $4016
        ldx #8
pad:    lda $4016
        lsr
        rol $00FF
        dex
        bne pad
        jsr play
        lda $2002
        lda #$3F
        sta $2006
        lda #0
        sta $2006
        lda $0086
        and #$3F
        sta $2007
        lda #0
        sta $2006
        sta $2006
        lda #$0A
        sta $2001
        rti

play:   lda $0770
        bne began
        lda $00FF
        and #$10
        beq none
        lda #1
        sta $0770
        lda #4
        sta $07F8
        lda #2
        sta $075A
        jsr enter
none:   rts

enter:  lda #40
        sta $0086
        lda #0
        sta $006D
        sta $000E
        lda #1
        sta $00B5
        lda #200
        sta $07A0
        lda #100
        sta $03B8
        rts

began:  inc $0009
        lda $0009
        cmp #9
        bne state
        lda #0
        sta $0009
        jsr tick
state:  lda $0770
        cmp #2
        bne mode1
        inc $000A
        lda $000A
        cmp #30
        bne none
        lda #0
        sta $000A
        lda #1
        sta $0770
        inc $075F
        jmp enter
mode1:  lda $000E
        beq enters
        cmp #6
        beq lost
        cmp #3
        beq pipe
        cmp #8
        beq free
        rts
enters: lda $07A0
        beq ready
        dec $07A0
        rts
ready:  lda #8
        sta $000E
        rts
pipe:   lda $06DE
        beq out
        dec $06DE
        rts
out:    lda #2
        sta $006D
        jmp ready
lost:   dec $075A
        jmp enter
free:   lda $00FF
        and #$40
        beq nob
        lda #11
        sta $000E
        rts
nob:    lda $00FF
        and #$20
        beq nosel
        lda #$31
        sta $0018
        lda #3
        sta $001D
        rts
nosel:  lda $00FF
        and #$08
        beq noup
        lda #2
        sta $0770
        rts
noup:   lda $00FF
        and #$04
        beq nodown
        lda #3
        sta $000E
        lda #200
        sta $06DE
        rts
nodown: lda $00FF
        and #$01
        beq noright
        lda $0086
        clc
        adc #2
        sta $0086
        bcc walked
        inc $006D
walked: rts
noright: lda $00FF
        and #$02
        beq still
        lda $0086
        sec
        sbc #2
        sta $0086
        bcs still
        dec $006D
still:  rts

tick:   dec $07FA
        bpl still
        lda #9
        sta $07FA
        dec $07F9
        bpl still
        lda #9
        sta $07F9
        dec $07F8
        rts
"""


def _assembled(source: str) -> tuple[bytes, dict[str, int]]:
    """Two passes: sizes and labels, then bytes."""
    lines: list[tuple[str, str]] = []
    labels: dict[str, int] = {}
    at = _ORIGIN
    for line in source.splitlines():
        label, colon, rest = line.partition(":")
        if colon:
            labels[label.strip()] = at
        words = (rest if colon else line).split()
        if words:
            lines.append((words[0], words[1] if len(words) > 1 else ""))
            at += 2 if words[0] in _BRANCHES or words[-1].startswith("#") else 1 if len(words) == 1 else 3
    out = bytearray()
    for name, operand in lines:
        here = _ORIGIN + len(out)
        if name in _BRANCHES:
            away = labels[operand] - here - 2
            assert -128 <= away < 128, f"{name} {operand} is too far"
            out += bytes([_BRANCHES[name], away & 0xFF])
        elif operand.startswith("#"):
            out += bytes([_OPCODES[name, IMMEDIATE], _number(operand[1:])])
        elif operand:
            address = labels[operand] if operand in labels else _number(operand)
            out += bytes([_OPCODES[name, ABSOLUTE], address & 0xFF, address >> 8])
        else:
            out.append(_OPCODES[name, IMPLIED])
    return bytes(out), labels


def _number(text: str) -> int:
    return int(text[1:], 16) if text.startswith("$") else int(text)


def rom() -> bytes:
    """The cartridge: iNES, NROM-256, CHR of zeros."""
    code, labels = _assembled(_SOURCE)
    program = bytearray(code.ljust(0x8000, b"\xea"))
    for vector, label in ((0x7FFA, "nmi"), (0x7FFC, "reset"), (0x7FFE, "reset")):
        program[vector : vector + 2] = labels[label].to_bytes(2, "little")
    return b"NES\x1a\x02\x01" + bytes(10) + bytes(program) + bytes(0x2000)
