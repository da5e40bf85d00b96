; The cart outside its own steering: hits, the fall after a loss, the way home, its picture.
; Speed and terrain are player.s.

; A hit: the helmet takes it, or the cart is lost for cause A. Nothing while safe_timer runs.
hurt_player:
  ldx safe_timer
  bne @safe
  ldx helmet
  beq @lost
  ldx #0
  stx helmet
  ldx #100
  stx safe_timer
  ldx #SFX_HURT
  stx sfx_request
@safe:
  rts
@lost:
  jmp kill_player

; Dying: up, then down out of the picture, through everything.
player_fall_out:
  lda py+1
  bne @done
  lda vy
  clc
  adc #$30
  sta vy
  bcc @no_carry
  inc vy+1
@no_carry:
  jmp move_y
@done:
  rts

; Clear: the cart rolls into the depot on its own and stops in the door.
player_roll_home:
  lda #0
  sta pad1
  sta pad1_new
  sta vx+1
  lda px
  sec
  sbc goal_x
  cmp #HOME_DISTANCE         ; at the goal it is a few pixels past it
  lda #0
  bcs @stop
  lda #HOME_SPEED
@stop:
  sta vx
  jmp player_update

HOME_DISTANCE = 12
HOME_SPEED    = $D0

; --- picture ----------------------------------------------------------------------------------------------------

player_draw:
  lda safe_timer             ; blinks after a hit
  and #2
  bne @hidden
  lda py+1
  bne @hidden
  lda px
  sec
  sbc cam_x
  sta spr_x
  lda px+1
  sbc cam_x+1
  sta spr_x+1
  lda py
  sta spr_y
  lda facing
  sta spr_flip
  lda helmet
  beq @bare
  lda #2                     ; sprite palette 2 in place of 0
@bare:
  sta spr_attr
  lda dying
  bne @lost
  lda on_ground
  beq @jumping
  lda wheel
  lsr a
  lsr a
  lsr a
  and #1
  clc
  adc #SPRITE_CART_A
  jmp draw_sprite
@jumping:
  lda #SPRITE_CART_JUMP
  jmp draw_sprite
@lost:
  lda #SPRITE_CART_LOST
  jmp draw_sprite
@hidden:
  rts
