; Reset, the empty main loop and the NMI that does all the work.
; Source: the NES reference pages on power-up and on frame timing. What is written in vblank is video.s.

reset:
  sei
  cld
  ldx #$40
  stx JOY2                   ; no frame IRQ
  ldx #$FF
  txs
  inx
  stx PPUCTRL
  stx PPUMASK
  stx DMCFREQ
  bit PPUSTATUS
@warm_up:                    ; the PPU needs about 30,000 cycles: two vblanks
  bit PPUSTATUS
  bpl @warm_up
  txa
@clear:
  sta $0000,x
  sta $0100,x
  sta $0300,x
  sta $0400,x
  sta $0500,x
  sta $0600,x
  sta $0700,x
  inx
  bne @clear
  lda #$F8                   ; below the picture
@hide:
  sta oam,x
  inx
  bne @hide
@warm_up_2:
  bit PPUSTATUS
  bpl @warm_up_2
  jsr sound_init
  lda #$5A
  sta rng
  lda #$C3
  sta rng+1
  lda #$1F
  sta rng+2
  lda #1
  sta level
  lda #CTRL_NMI | CTRL_SPR_1000
  sta ppu_ctrl
  sta PPUCTRL
main:
  jmp main

irq:
  rti

; One frame: PPU memory first, while vblank lasts; then what needs no picture position; then the split; then the game.
nmi:
  pha
  txa
  pha
  tya
  pha
  lda nmi_busy
  bne @late                  ; a frame that overran is finished first
  inc nmi_busy
  bit PPUSTATUS
  jsr vblank_work
  lda #0
  sta PPUSCROLL
  sta PPUSCROLL
  lda ppu_ctrl
  sta PPUCTRL
  lda ppu_mask
  sta PPUMASK
  inc frame
  jsr sound_update
  jsr read_pads
  jsr random_step
  lda split_on
  beq @no_split
@old_hit:                    ; the flag of the last frame falls when the picture starts
  bit PPUSTATUS
  bvs @old_hit
@new_hit:
  bit PPUSTATUS
  bvc @new_hit
  lda cam_x
  sta PPUSCROLL
  lda #0
  sta PPUSCROLL
  lda cam_x+1
  and #1
  ora ppu_ctrl
  sta PPUCTRL
@no_split:
  jsr game_frame
  dec nmi_busy
@late:
  pla
  tay
  pla
  tax
  pla
  rti

; Jump to entry A of the word table that follows the JSR; its RTS returns to the caller of the caller. Keeps X.
dispatch:
  asl a
  tay
  pla
  sta data_ptr
  pla
  sta data_ptr+1
  iny
  lda (data_ptr),y
  sta jump_ptr
  iny
  lda (data_ptr),y
  sta jump_ptr+1
  jmp (jump_ptr)
