; Eight specks in the air: pollen, dust, petals, sparks. They drift with the level's wind, sway, and pass behind blocks.
; Only a picture: nothing in the game reads them.

MOTES      = 8
MOTE_FLOOR = 224
MOTE_ROOF  = 36

;               level: 1 pollen  2 dust  3 petals  4 sparks
mote_fall_lo:
  .byte                $50,      $28,    $70,      $40
mote_fall_hi:
  .byte                $00,      $00,    $00,      $FF
mote_wind:                   ; 1/256 pixel a frame to the left
  .byte                $30,      $10,    $60,      $20
mote_tile:
  .byte TILE_POLLEN, TILE_DUST, TILE_PETAL, TILE_DUST
mote_attr:
  .byte BEHIND | 2, BEHIND | 3, BEHIND | 3, BEHIND | 2

; Spread over the picture.
scatter_motes:
  lda cam_x
  sta cam_last
  ldx #MOTES - 1
@mote:
  jsr random_byte
  sta m_x,x
  jsr random_byte
  sta m_phase,x
  and #$7F
  adc #MOTE_ROOF
  sta m_y,x
  dex
  bpl @mote
  rts

update_motes:
  lda cam_x
  sec
  sbc cam_last
  sta t6                     ; pixels that the picture moved
  lda cam_x
  sta cam_last
  ldx #MOTES - 1
@mote:
  ldy level
  lda m_ysub,x
  clc
  adc mote_fall_lo - 1,y
  sta m_ysub,x
  lda m_y,x
  adc mote_fall_hi - 1,y
  sta m_y,x
  cmp #MOTE_FLOOR
  bcs @again
  cmp #MOTE_ROOF
  bcs @sway
@again:                      ; out of the field: come in at the other end, anywhere along it
  lda mote_fall_hi - 1,y
  bmi @rises
  lda #MOTE_ROOF
  bne @from
@rises:
  lda #MOTE_FLOOR - 1
@from:
  sta m_y,x
  jsr random_byte
  sta m_x,x
  ldy level
@sway:
  lda m_xsub,x
  sec
  sbc mote_wind - 1,y
  sta m_xsub,x
  lda m_x,x
  sbc t6
  sta m_x,x
  inc m_phase,x
  lda m_phase,x
  lsr a
  lsr a
  and #31
  tay
  lda wave,y
  sta t5
  clc
  adc m_xsub,x
  sta m_xsub,x
  lda t5                     ; sign into the whole pixels
  bmi @left
  lda #0
  beq @add
@left:
  lda #$FF
@add:
  adc m_x,x
  sta m_x,x
  dex
  bpl @mote
  rts

; Drawn last, so that they give way to everything.
draw_motes:
  ldy level
  lda mote_tile - 1,y
  sta t4
  lda mote_attr - 1,y
  sta t5
  ldx #MOTES - 1
  ldy oam_at
@mote:
  lda m_y,x
  sta oam,y
  iny
  lda t4
  sta oam,y
  iny
  lda t5
  sta oam,y
  iny
  lda m_x,x
  sta oam,y
  iny
  beq @full
  dex
  bpl @mote
  sty oam_at
  rts
@full:
  ldy #252
  sty oam_at
  rts
