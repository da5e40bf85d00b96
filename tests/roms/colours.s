; Shows every colour of the PPU under every setting of PPUMASK's colour bits, one combination a frame, so that what an
; emulator puts on the screen for a colour can be read from its picture.
; Rebuild: cl65 -t none -C colours.cfg -o colours.nes colours.s
;
;   zero page  meaning
;   $10        colour written to $3F00 for this frame, 0-63
;   $11        PPUMASK of the upper half of this frame
;   $12        PPUMASK of the lower half (the same, except in the last 8 x 64 frames)
;   $13,$14    number of the frame shown, low byte first: colour + 64 * setting, 40 settings
;
; Settings 0-15: rendering off; grey = bit 0, emphasis = setting / 2. Settings 16-31: the same with the background on.
; Settings 32-39: background on, emphasis 0 above and emphasis (setting - 32) from about line 120 on.

PPUCTRL   = $2000
PPUMASK   = $2001
PPUSTATUS = $2002
PPUSCROLL = $2005
PPUADDR   = $2006
PPUDATA   = $2007

colour  = $10
upper   = $11
lower   = $12
shown   = $13
next    = $15
ready   = $17

.segment "HEADER"
        .byte "NES", $1A, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

.segment "CODE"
reset:  sei
        cld
        ldx #$FF
        txs
        inx
        stx PPUCTRL
        stx PPUMASK
        stx ready
        stx next
        stx next+1
        bit PPUSTATUS
@vbl1:  bit PPUSTATUS
        bpl @vbl1
@vbl2:  bit PPUSTATUS
        bpl @vbl2
        stx PPUADDR             ; pattern tables and the first nametable: all zero, so only the backdrop shows
        stx PPUADDR
        txa
        ldy #$24
@clear: sta PPUDATA
        inx
        bne @clear
        dey
        bne @clear
        lda #$80
        sta PPUCTRL
        inc ready
idle:   jmp idle

nmi:    lda ready
        beq @out
        lda next
        sta shown
        and #$3F
        sta colour
        lda next+1
        sta shown+1
        lda next                ; setting = next / 64
        asl a
        rol next+1
        asl a
        rol next+1
        ldx next+1
        lda first,x
        sta upper
        lda second,x
        sta lower
        lda shown+1
        sta next+1
        inc next
        bne @low
        inc next+1
@low:   lda next+1              ; 40 * 64 = $A00
        cmp #$0A
        bne @show
        lda #0
        sta next+1
@show:  lda #$3F
        sta PPUADDR
        lda #$00
        sta PPUADDR
        lda colour
        sta PPUDATA
        lda #$00
        sta PPUADDR
        sta PPUADDR
        sta PPUSCROLL
        sta PPUSCROLL
        lda upper
        sta PPUMASK
        cmp lower
        beq @out
        ldy #12                 ; 12 * 1,284 cycles: about 136 lines from here
@outer: ldx #0
@wait:  dex
        bne @wait
        dey
        bne @outer
        lda lower
        sta PPUMASK
@out:   rti
irq:    rti

first:  .byte $00,$01,$20,$21,$40,$41,$60,$61,$80,$81,$A0,$A1,$C0,$C1,$E0,$E1
        .byte $0A,$0B,$2A,$2B,$4A,$4B,$6A,$6B,$8A,$8B,$AA,$AB,$CA,$CB,$EA,$EB
        .byte $0A,$0A,$0A,$0A,$0A,$0A,$0A,$0A
second: .byte $00,$01,$20,$21,$40,$41,$60,$61,$80,$81,$A0,$A1,$C0,$C1,$E0,$E1
        .byte $0A,$0B,$2A,$2B,$4A,$4B,$6A,$6B,$8A,$8B,$AA,$AB,$CA,$CB,$EA,$EB
        .byte $0A,$2A,$4A,$6A,$8A,$AA,$CA,$EA

.segment "VECTORS"
        .addr nmi, reset, irq
