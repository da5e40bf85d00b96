; The level: its column stream is unpacked, one map column at a time, into the block buffer and into tile columns.
; Format of the stream: convert.py, pack_column. The picture only ever moves right.

AHEAD       = 20             ; map columns drawn from the left edge of the picture on
SCROLL_LINE = 104            ; the cart stays left of this line
REPEAT      = $FF

; Prepare level `level`: pointers, camera, objects, palette, second nametable's part of the status bar.
load_level:
  ldx level
  lda level_columns_lo - 1,x
  sta column_ptr
  lda level_columns_hi - 1,x
  sta column_ptr+1
  lda level_spawns_lo - 1,x
  sta spawn_ptr
  lda level_spawns_hi - 1,x
  sta spawn_ptr+1
  lda level_palette_lo - 1,x
  sta data_ptr
  lda level_palette_hi - 1,x
  sta data_ptr+1
  jsr load_palette
  ldx level
  lda level_width - 1,x
  sta width
  sec
  sbc #16
  ldy #cam_max
  jsr column_to_pixels
  lda level_goal - 1,x
  ldy #goal_x
  jsr column_to_pixels
  lda level_start_column - 1,x
  ldy #px
  jsr column_to_pixels
  lda level_start_row - 1,x
  asl a
  asl a
  asl a
  asl a
  clc
  adc #FIELD_TOP + 16 - 24
  sta py
  lda #0
  sta py+1
  sta cam_x
  sta cam_x+1
  sta next_column
  sta next_half
  sta coin_shine
  sta idle_frames
  sta paused
  sta column_due
  sta attr_due
  jsr reset_player
  jsr clear_objects
  jsr scatter_motes
  lda #180
  sta ember_timer
  ; the other nametable's last bar row: black, palette 0, so that the split never shows
  lda #$24
  jsr queue_byte
  lda #$60
  jsr queue_byte
  lda #32
  jsr queue_byte
  ldx #32
@black:
  lda #GLYPH_SPACE
  jsr queue_byte
  dex
  bne @black
  lda #$27
  jsr queue_byte
  lda #$C0
  jsr queue_byte
  lda #8
  jsr queue_byte
  ldx #8
@attribute:
  lda #0
  jsr queue_byte
  dex
  bne @attribute
  rts

; Zero page word Y = column A x 16. Keeps X.
column_to_pixels:
  sta t0
  lsr a
  lsr a
  lsr a
  lsr a
  sta $0001,y
  lda t0
  asl a
  asl a
  asl a
  asl a
  sta $0000,y
  rts

; --- streaming --------------------------------------------------------------------------------------------------

; Prepare the next tile column for vblank when the picture comes near it.
stream_column:
  lda cam_x+1
  sta t0
  lda cam_x
  lsr t0
  ror a
  lsr t0
  ror a
  lsr t0
  ror a
  lsr t0
  ror a
  clc
  adc #AHEAD
  cmp width
  bcc @inside
  lda width
@inside:
  cmp next_column
  beq @none
  bcc @none
  lda next_half
  bne @right
  jsr unpack_column
  jsr store_column
  ldx #0
@left_tile:
  ldy column_map,x
  lda block_tl,y
  sta column_top,x
  lda block_bl,y
  sta column_bot,x
  inx
  cpx #BLOCK_ROWS
  bne @left_tile
  inc next_half
  jmp column_address
@right:
  ldx #0
@right_tile:
  ldy column_map,x
  lda block_tr,y
  sta column_top,x
  lda block_br,y
  sta column_bot,x
  inx
  cpx #BLOCK_ROWS
  bne @right_tile
  jsr column_address
  inc column_lo
  dec next_half
  lda next_column
  lsr a
  bcc @even
  jsr column_attributes
@even:
  inc next_column
@none:
  rts

; The column's left tiles go to the nametable of its bit 4, from tile row 4 down.
column_address:
  lda next_column
  and #$10
  lsr a
  lsr a
  ora #$20
  sta column_hi
  lda next_column
  and #$0F
  asl a
  ora #$80
  sta column_lo
  lda #1
  sta column_due
  rts

; Decode the next map column into column_map; a repeat leaves it as it is.
unpack_column:
  ldy #0
  lda (column_ptr),y
  cmp #REPEAT
  beq @advance_one
  ldx #0
@run:
  lda (column_ptr),y
  iny
  sta t0
  and #$3F
  sta t1
  lda t0
  rol a
  rol a
  rol a
  and #3
  cmp #3
  bne @short
  lda (column_ptr),y
  iny
  bne @fill
@short:
  adc #1                     ; carry is clear: A was below 3
@fill:
  sta t2
  lda t1
@block:
  sta column_map,x
  inx
  dec t2
  bne @block
  cpx #BLOCK_ROWS
  bcc @run
  tya
  bne @advance
@advance_one:
  lda #1
@advance:
  clc
  adc column_ptr
  sta column_ptr
  bcc @done
  inc column_ptr+1
@done:
  rts

store_column:
  lda next_column
  jsr point_at_page
  lda next_column
  and #$0F
  tay
  ldx #0
@block:
  lda column_map,x
  sta (block_ptr),y
  tya
  clc
  adc #16
  tay
  inx
  cpx #BLOCK_ROWS
  bne @block
  rts

; block_ptr = page of the block buffer that holds map column A.
point_at_page:
  and #$10
  bne @second
  lda #<blocks0
  sta block_ptr
  lda #>blocks0
  sta block_ptr+1
  rts
@second:
  lda #<blocks1
  sta block_ptr
  lda #>blocks1
  sta block_ptr+1
  rts

; The seven attribute bytes of the pair of columns that ends with next_column.
column_attributes:
  lda next_column
  jsr point_at_page
  lda next_column
  and #$0E
  tay
  ldx #0
@byte:
  stx save_x
  sty save_y
  jsr attribute_of
  ldx save_x
  sta attr_buf,x
  lda save_y
  clc
  adc #32
  tay
  inx
  cpx #7
  bne @byte
  lda next_column
  jsr attribute_address
  lda #1
  sta attr_due
  rts

; attr_hi/attr_lo = address of the uppermost attribute byte below the bar for map column A.
attribute_address:
  sta t0
  and #$10
  lsr a
  lsr a
  ora #$23
  sta attr_hi
  lda t0
  and #$0F
  lsr a
  ora #$C8
  sta attr_lo
  rts

; A = attribute byte of the 2x2 blocks at index Y of the page block_ptr. The last row has no blocks below it.
attribute_of:
  lda #0
  sta t0
  cpy #192
  bcs @upper
  tya
  pha
  clc
  adc #17
  tay
  lda (block_ptr),y
  tax
  lda block_palette,x
  asl a
  asl a
  sta t0
  dey
  lda (block_ptr),y
  tax
  lda block_palette,x
  ora t0
  asl a
  asl a
  sta t0
  pla
  tay
@upper:
  iny
  lda (block_ptr),y
  tax
  lda block_palette,x
  ora t0
  asl a
  asl a
  sta t0
  dey
  lda (block_ptr),y
  tax
  lda block_palette,x
  ora t0
  rts

; --- camera -----------------------------------------------------------------------------------------------------

scroll_camera:
  lda px
  sec
  sbc #SCROLL_LINE
  sta t0
  lda px+1
  sbc #0
  bcc @done                  ; still in the first part of the level
  sta t1
  lda t0
  cmp cam_x
  lda t1
  sbc cam_x+1
  bcc @done                  ; never back
  lda t0
  cmp cam_max
  lda t1
  sbc cam_max+1
  bcs @end
  lda t0
  sta cam_x
  lda t1
  sta cam_x+1
@done:
  rts
@end:
  lda cam_max
  sta cam_x
  lda cam_max+1
  sta cam_x+1
  rts
