; Objects that meet: walkers each other, and any of them the cart. X is the slot and survives.

; Walkers that run into one another both turn. All pairs of slots, every frame.
objects_collide:
  ldx #SLOTS - 1
@first:
  lda o_type,x
  tay
  lda type_bumps,y
  beq @next
  lda o_state,x
  bne @next
  txa
  tay
  dey
  bmi @next
@second:
  sty other
  lda o_type,y
  beq @apart
  lda o_state,y
  bne @apart
  lda o_ylo,x
  sec
  sbc o_ylo,y
  clc
  adc #12
  cmp #25
  bcs @apart
  lda o_xlo,x
  sec
  sbc o_xlo,y
  sta t0
  lda o_xhi,x
  sbc o_xhi,y
  sta t1
  lda t0
  clc
  adc #13
  sta t0
  lda t1
  adc #0
  bne @apart
  lda t0
  cmp #27
  bcs @apart
  lda o_type,y
  tay
  lda type_bumps,y
  beq @apart
  lda t0                     ; which of them is to the left
  cmp #13
  ldy other
  bcs @first_right
  jsr part                   ; X is left of Y
  jmp @apart
@first_right:
  stx save_x
  sty save_y
  ldx save_y
  ldy save_x
  jsr part
  ldx save_x
@apart:
  ldy other
  dey
  bpl @second
@next:
  dex
  bpl @first
  rts

; The left one, X, goes left from now on and the right one, Y, right. Both survive.
part:
  lda o_vxhi,x
  bmi @left_goes
  jsr object_turn
@left_goes:
  lda o_vxhi,y
  bpl @right_goes
  stx t2
  sty t3
  ldx t3
  jsr object_turn
  ldx t2
  ldy t3
@right_goes:
  rts

; --- meeting the cart -------------------------------------------------------------------------------------------

; Carry set when object X and the cart overlap; then A = 1 if the cart comes down on it, else 0.
object_meets_player:
  lda dying
  bne @no
  lda o_xlo,x
  sec
  sbc px
  sta t0
  lda o_xhi,x
  sbc px+1
  sta t1
  lda t0
  clc
  adc #11
  sta t0
  lda t1
  adc #0
  bne @no
  lda t0
  cmp #23
  bcs @no
  lda py+1
  ora o_yhi,x
  bne @no
  lda o_ylo,x
  sec
  sbc py
  clc
  adc #11
  cmp #33
  bcs @no
  cmp #11 + 13               ; the feet are in its upper part
  bcc @side
  lda on_ground
  bne @side
  lda vy+1
  bmi @side
  lda #1
  sec
  rts
@side:
  lda #0
  sec
  rts
@no:
  clc
  rts

; For enemies that can be stomped: from above they are flattened, else they hurt.
object_fights:
  jsr object_meets_player
  bcc @done
  beq @hurt
  lda #1
  sta o_state,x              ; flattened
  lda #20
  sta o_timer,x
  lda #0
  sec
  sbc #<BOUNCE
  sta vy
  lda #0
  sbc #>BOUNCE
  sta vy+1
  lda #SFX_STOMP
  sta sfx_request
  inc combo
  lda combo
  cmp #5
  bcc @points
  lda #5
@points:
  asl a                      ; 200, 400, ...: in hundreds
  stx save_x
  ldx #3
  jsr add_score
  ldx save_x
@done:
  rts
@hurt:
  lda #CAUSE_ENEMY
  stx save_x
  jsr hurt_player
  ldx save_x
  rts

; For enemies that no one can stomp.
object_hurts:
  jsr object_meets_player
  bcc @done
  lda #CAUSE_ENEMY
  stx save_x
  jsr hurt_player
  ldx save_x
@done:
  rts
