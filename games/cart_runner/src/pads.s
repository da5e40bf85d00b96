; Controllers and random numbers.
; Source: the reference page on the standard controller (strobe, then eight reads, A first).

; pad1/pad2 get A B Select Start Up Down Left Right from bit 7 down; *_new the buttons that were not down before.
read_pads:
  lda pad1
  sta t2
  lda pad2
  sta t3
  ldx #1
  stx JOY1
  stx pad2                   ; this bit falls out into carry after eight reads
  dex
  stx JOY1
@bit:
  lda JOY1
  and #%00000011             ; D0 pad, D1 pad at the expansion port
  cmp #1
  rol pad1
  lda JOY2
  and #%00000011
  cmp #1
  rol pad2
  bcc @bit
  lda t2
  eor #$FF
  and pad1
  sta pad1_new
  lda t3
  eor #$FF
  and pad2
  sta pad2_new
  rts

; A 24-bit Galois LFSR (x^24 + x^4 + x^3 + x + 1): eight bits a frame, and eight more for each caller; A = a byte.
random_step:
random_byte:
  ldy #8
  lda rng
@bit:
  asl a
  rol rng+1
  rol rng+2
  bcc @no_tap
  eor #$1B
@no_tap:
  dey
  bne @bit
  sta rng
  rts
