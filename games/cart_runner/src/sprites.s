; Pictures into the OAM shadow. A sprite's data: columns, rows, palette, tiles row by row (art.inc).
; Tiles outside the picture are left out; tiles in the status bar's lines go behind its opaque background.

SPLIT_X     = 240
SPLIT_Y     = 22             ; its only opaque row, the last, is line 30
BEHIND      = $20

; All sprites below the picture.
clear_sprites:
  ldx #0
  lda #$F8
@sprite:
  sta oam,x
  inx
  inx
  inx
  inx
  bne @sprite
  lda #4
  sta oam_at
  rts

; The same, and sprite 0 where the status bar ends.
sprites_begin:
  jsr clear_sprites
  lda #SPLIT_Y
  sta oam
  lda #TILE_SPLIT
  sta oam+1
  lda #BEHIND
  sta oam+2
  lda #SPLIT_X
  sta oam+3
  rts

; A small cart on the status bar's rail shows how far the level has come: a pixel a map column.
draw_progress:
  lda px+1
  sta t0
  lda px
  ldy #4
@shift:
  lsr t0
  ror a
  dey
  bne @shift
  clc
  adc #16
  ldx oam_at
  sta oam+3,x
  lda #SPLIT_Y
  sta oam,x
  lda #TILE_PROGRESS
  sta oam+1,x
  lda #0
  sta oam+2,x
  txa
  clc
  adc #4
  beq @full
  sta oam_at
@full:
  rts

; Draw picture A at spr_x, spr_y (screen), mirrored by spr_flip, with spr_attr or'ed in.
draw_sprite:
  tay
  lda sprite_lo,y
  sta data_ptr
  lda sprite_hi,y
  sta data_ptr+1
  ldy #0
  lda (data_ptr),y
  sta spr_cols
  iny
  lda (data_ptr),y
  sta spr_rows
  iny
  lda (data_ptr),y
  ora spr_attr
  ora spr_flip
  sta spr_pal
  iny
  lda #8
  sta spr_step
  lda spr_flip
  beq @row
  lda #$F8
  sta spr_step
  lda spr_cols               ; mirrored: start with the right column
  asl a
  asl a
  asl a
  clc
  adc #$F8
  clc
  adc spr_x
  sta spr_x
  bcc @row
  inc spr_x+1
@row:
  ldx oam_at
  lda spr_x
  sta row_x
  lda spr_x+1
  sta row_x+1
  lda spr_cols
  sta t7
@tile:
  lda row_x+1
  bne @outside
  lda spr_y
  cmp #239
  bcs @outside
  sec
  sbc #1                     ; sprites appear a line later
  bcc @outside
  sta oam,x
  cmp #27
  lda spr_pal
  bcs @front
  ora #BEHIND
@front:
  sta oam+2,x
  lda (data_ptr),y
  sta oam+1,x
  lda row_x
  sta oam+3,x
  inx
  inx
  inx
  inx
  beq @full
@outside:
  iny
  lda spr_step
  bmi @leftwards
  clc
  adc row_x
  sta row_x
  bcc @next
  inc row_x+1
  jmp @next
@leftwards:
  clc
  adc row_x
  sta row_x
  bcs @next
  dec row_x+1
@next:
  dec t7
  bne @tile
  stx oam_at
  lda spr_y
  clc
  adc #8
  sta spr_y
  bcs @done
  dec spr_rows
  bne @row
@done:
  rts
@full:                       ; 63 pictures are drawn: keep the last place
  ldx #252
  stx oam_at
  rts
