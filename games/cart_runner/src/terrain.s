; What the cart and the blocks do to each other: coins, lava, crates, bricks, and the coins' shine.

; Four points of the body against coins and lava.
touch_terrain:
  lda #3
  sta t6
@point:
  ldy t6
  ldx body_x,y
  lda body_y,y
  tay
  jsr block_by_player
  tax
  and #FLAG_COIN
  bne @coin
  txa
  and #FLAG_HAZARD | FLAG_SOLID
  cmp #FLAG_HAZARD
  bne @next
  lda #CAUSE_HAZARD
  jmp kill_player            ; no helmet helps against lava
@coin:
  lda #BLOCK_EMPTY
  jsr replace_block
  jmp give_coin              ; one a frame keeps vblank short
@next:
  dec t6
  bpl @point
  rts

body_x:
  .byte 4, 11, 4, 11
body_y:
  .byte 9, 9, 20, 20

; The head hit the block that block_by_player found last.
bump_block:
  ldx hit_block
  lda block_flags,x
  and #FLAG_CRATE | FLAG_PRIZE | FLAG_BRICK
  beq @hard
  cmp #FLAG_BRICK
  beq @brick
  cmp #FLAG_PRIZE
  beq @prize
  lda #BLOCK_CRATE_USED
  jsr replace_block
  jsr give_coin
  lda #OBJ_SPARK
  jmp spawn_above_block
@prize:
  lda #BLOCK_CRATE_USED
  jsr replace_block
  lda #SFX_PRIZE
  sta sfx_request
  lda #OBJ_HELMET
  jmp spawn_above_block
@brick:
  lda #BLOCK_EMPTY
  jsr replace_block
  lda #5
  ldx #4
  jsr add_score
  jsr crash_sound
  lda #OBJ_SHARD
  jmp spawn_at_block
@hard:
  lda #SFX_BUMP
  sta sfx_request
  rts

; Object A one block above the block at t0/t1, t2 (or in it), if a slot is free.
spawn_above_block:
  jsr new_object
  bcs no_room
  lda t2
  and #$F0
  sec
  sbc #16
  bcs place_at_block         ; always: the field starts below line 16
spawn_at_block:
  jsr new_object
  bcs no_room
  lda t2
  and #$F0
place_at_block:
  sta o_ylo,x
  lda t0
  and #$F0
  sta o_xlo,x
  lda t1
  sta o_xhi,x
no_room:
  rts

; One coin: 100 points; a hundred coins are a life.
give_coin:
  lda #SFX_COIN
  sta sfx_request
  lda #1
  ldx #3
  jsr add_score
  inc coins+1
  lda coins+1
  cmp #10
  bcc @done
  lda #0
  sta coins+1
  inc coins
  lda coins
  cmp #10
  bcc @done
  lda #0
  sta coins
  lda #SFX_LIFE
  sta sfx_request
  lda lives
  cmp #9
  bcs @done
  inc lives
@done:
  rts

; Every eighth frame another shade for colour 3 of background palette 3.
shine_coins:
  lda frame
  and #7
  ora queue_len              ; not when vblank has blocks to draw
  bne @done
  inc coin_shine
  lda #$3F
  jsr queue_byte
  lda #$0E
  jsr queue_byte
  lda #1
  jsr queue_byte
  lda coin_shine
  and #7
  tax
  lda shine,x
  jmp queue_byte
@done:
  rts

shine:
  .byte $27, $27, $27, $27, $28, $38, $28, $27
