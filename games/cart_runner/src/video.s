; Everything that is written to PPU memory, all of it inside vblank: OAM, palette, queue, map column, status bar.
; The longest frame stays below 2,000 cycles. Who fills the buffers: level.s, modes.s, terrain.s.

vblank_work:
  lda #0
  sta OAMADDR
  lda #>oam
  sta OAMDMA
  lda palette_due
  beq @no_palette
  jsr write_palette
@no_palette:
  lda queue_len
  beq @no_queue
  jsr write_queue
@no_queue:
  lda column_due
  beq @no_column
  jsr write_column
@no_column:
  lda hud_on
  beq @done
  jsr write_hud
@done:
  rts

write_palette:
  lda #$3F
  sta PPUADDR
  ldx #0
  stx PPUADDR
  stx palette_due
@byte:
  lda palette_buf,x
  sta PPUDATA
  inx
  cpx #32
  bne @byte
  rts

; Queue entries: address high, address low, count, bytes. queue_len is the end.
write_queue:
  ldy #0
@entry:
  lda queue,y
  sta PPUADDR
  iny
  lda queue,y
  sta PPUADDR
  iny
  ldx queue,y
  iny
@byte:
  lda queue,y
  sta PPUDATA
  iny
  dex
  bne @byte
  cpy queue_len
  bcc @entry
  stx queue_len
  rts

; 26 tiles downwards, and every fourth time the attributes of two map columns.
write_column:
  lda ppu_ctrl
  ora #%00000100             ; step 32
  sta PPUCTRL
  lda column_hi
  sta PPUADDR
  lda column_lo
  sta PPUADDR
.repeat BLOCK_ROWS, row
  lda column_top + row
  sta PPUDATA
  lda column_bot + row
  sta PPUDATA
.endrepeat
  lda ppu_ctrl
  sta PPUCTRL
  lda #0
  sta column_due
  lda attr_due
  beq @done
  ldx #0
  stx attr_due
@attribute:
  lda attr_hi
  sta PPUADDR
  lda attr_lo
  sta PPUADDR
  clc
  adc #8
  sta attr_lo
  lda attr_buf,x
  sta PPUDATA
  inx
  cpx #7
  bne @attribute
@done:
  rts

HUD_ROW = $2040              ; the row of values in the status bar

.macro hud_at column
  lda #>HUD_ROW
  sta PPUADDR
  lda #<HUD_ROW + column
  sta PPUADDR
.endmacro

; The digits are tiles 0-9, so values go to the PPU as they are.
write_hud:
  hud_at 2
.repeat 6, digit
  lda score + digit
  sta PPUDATA
.endrepeat
  hud_at 12
  lda coins
  sta PPUDATA
  lda coins + 1
  sta PPUDATA
  hud_at 17
  lda level
  sta PPUDATA
  hud_at 21
.repeat 3, digit
  lda time + digit
  sta PPUDATA
.endrepeat
  hud_at 28
  lda lives
  sta PPUDATA
  rts

; Append A to the queue. Keeps X, Y changes.
queue_byte:
  ldy queue_len
  sta queue,y
  inc queue_len
  rts

; Copy 32 bytes from data_ptr into palette_buf and have them uploaded.
load_palette:
  ldy #31
@byte:
  lda (data_ptr),y
  sta palette_buf,y
  dey
  bpl @byte
  lda #1
  sta palette_due
  rts
