; Single blocks: what is at a place, and putting another there while the level runs.

; A = flags of the block at level x t0/t1, screen y t2; hit_block = its number, t3 = its index. Air outside the field.
block_at:
  lda t2
  sec
  sbc #FIELD_TOP
  bcc @air
  cmp #BLOCK_ROWS * 16
  bcs @air
  and #$F0
  sta t3
  lda t0
  lsr a
  lsr a
  lsr a
  lsr a
  ora t3
  sta t3
  tay
  lda t1
  lsr a
  bcs @second
  ldx blocks0,y
  bcc @found
@second:
  ldx blocks1,y
@found:
  stx hit_block
  lda block_flags,x
  rts
@air:
  lda #0
  sta hit_block
  rts

; Put block A where block_at (t0/t1, t3) found one, and queue its four tiles and its attribute byte.
replace_block:
  sta new_block
  lda t0
  sta target_col
  lda t1
  lsr a
  ror target_col             ; bit 8 of x -> bit 7
  lsr target_col
  lsr target_col
  lsr target_col             ; column within the two pages, 0-31
  lda target_col
  jsr point_at_page
  ldy t3
  lda new_block
  sta (block_ptr),y
  lda t3
  lsr a
  lsr a
  lsr a
  lsr a
  sta target_row
  ldx #0                     ; upper two tiles, then lower two
@half:
  stx save_x
  lda target_row             ; tile row 4 + 2 * row (+ 1): address bits 5-9
  asl a
  adc save_x
  adc #4
  sta t4
  lsr a
  lsr a
  lsr a
  sta t5
  lda target_col
  and #$10
  lsr a
  lsr a
  ora #$20
  ora t5
  jsr queue_byte
  lda target_col
  and #$0F
  asl a
  sta t5
  lda t4
  asl a
  asl a
  asl a
  asl a
  asl a
  ora t5
  jsr queue_byte
  lda #2
  jsr queue_byte
  ldx new_block
  lda save_x
  bne @lower
  lda block_tl,x
  jsr queue_byte
  lda block_tr,x
  jsr queue_byte
  ldx #1
  bne @half
@lower:
  lda block_bl,x
  jsr queue_byte
  lda block_br,x
  jsr queue_byte
  lda target_col
  jsr attribute_address
  lda attr_hi
  jsr queue_byte
  lda target_row
  and #$0E
  asl a
  asl a
  clc
  adc attr_lo
  jsr queue_byte
  lda #1
  jsr queue_byte
  lda t3
  and #$EE
  tay
  jsr attribute_of
  jmp queue_byte
