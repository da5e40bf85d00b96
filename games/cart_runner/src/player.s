; The cart: speed from the pad, gravity, walls, floors, ceilings. The rest of it is cart.s.
; Speeds are signed 8.8 pixels a frame. px/py is the top left of the 16x24 picture; the body is 12 wide, 20 high.

WALK_SPEED  = $0150          ; 1.3 pixels a frame
RUN_SPEED   = $0260          ; 2.4
PUSH        = $12            ; gain a frame
BRAKE       = $1A            ; loss a frame against the pad or without it
JUMP_SPEED  = $0450
RUN_JUMP    = $04B0          ; when faster than a walk
RISE_PULL   = $28            ; gravity while A holds the jump
FALL_PULL   = $60
FALL_MAX    = $0460
BOUNCE      = $0380          ; off a stomped enemy

BODY_LEFT   = 2
BODY_RIGHT  = 13
BODY_TOP    = 4
FEET        = 24

reset_player:
  lda #0
  sta px_sub
  sta py_sub
  sta vx
  sta vx+1
  sta vy
  sta vy+1
  sta facing
  sta safe_timer
  sta ride_slot
  sta combo
  sta wheel
  lda #1
  sta on_ground
  rts

player_update:
  lda py
  clc
  adc #FEET
  sta player_feet
  lda safe_timer
  beq @vulnerable
  dec safe_timer
@vulnerable:
  jsr steer
  jsr jump
  jsr move_x
  jsr hit_walls
  jsr move_y
  lda vy+1
  bmi @rising
  jsr land
  jmp check_pit
@rising:
  jmp hit_ceiling

; --- speed ------------------------------------------------------------------------------------------------------

; target_vx from the pad, then vx one step towards it.
steer:
  ldx #0
  lda pad1
  and #PAD_B
  beq @walk
  ldx #2
@walk:
  lda pad1
  and #PAD_LEFT | PAD_RIGHT
  cmp #PAD_RIGHT
  beq @right
  cmp #PAD_LEFT
  beq @left
  lda #0
  sta target_vx
  sta target_vx+1
  beq @approach
@right:
  lda speeds,x
  sta target_vx
  lda speeds+1,x
  sta target_vx+1
  lda #0
  sta facing
  beq @approach
@left:
  lda #0
  sec
  sbc speeds,x
  sta target_vx
  lda #0
  sbc speeds+1,x
  sta target_vx+1
  lda #$40
  sta facing
@approach:
  lda target_vx
  sec
  sbc vx
  sta t0
  lda target_vx+1
  sbc vx+1
  sta t1
  bmi @slower
  ora t0
  beq @done
  ldy #PUSH
  lda vx+1
  bpl @add
  ldy #BRAKE                 ; still rolling to the left
@add:
  jsr @close_enough
  bcs @snap
  tya
  clc
  adc vx
  sta vx
  bcc @done
  inc vx+1
  rts
@slower:
  lda #0                     ; t0/t1 = distance
  sec
  sbc t0
  sta t0
  lda #0
  sbc t1
  sta t1
  ldy #PUSH
  lda vx+1
  bmi @subtract
  ldy #BRAKE
@subtract:
  jsr @close_enough
  bcs @snap
  sty t2
  lda vx
  sec
  sbc t2
  sta vx
  bcs @done
  dec vx+1
@done:
  rts
@snap:
  lda target_vx
  sta vx
  lda target_vx+1
  sta vx+1
  rts
@close_enough:               ; carry set when the step Y reaches the target
  lda t1
  bne @far
  cpy t0
  rts
@far:
  clc
  rts

speeds:
  .word WALK_SPEED, RUN_SPEED

; Start a jump, then gravity: weak while A holds a rising cart, strong otherwise.
jump:
  lda on_ground
  beq @airborne
  lda #0
  sta combo
  lda pad1_new
  and #PAD_A
  beq @airborne
  lda #0
  sta on_ground
  sta ride_slot
  ldx vx+1
  bpl @right
  txa
  eor #$FF
  tax
@right:
  ldy #0
  cpx #>RUN_SPEED            ; whole pixels a frame
  bcc @slow
  ldy #2
@slow:
  lda #0
  sec
  sbc jumps,y
  sta vy
  lda #0
  sbc jumps+1,y
  sta vy+1
  lda #SFX_JUMP
  sta sfx_request
@airborne:
  ldx #FALL_PULL
  lda vy+1
  bpl @pull
  lda pad1
  bpl @pull                  ; A is bit 7
  ldx #RISE_PULL
@pull:
  txa
  clc
  adc vy
  sta vy
  lda vy+1
  adc #0
  sta vy+1
  bmi @done
  lda vy
  cmp #<FALL_MAX
  lda vy+1
  sbc #>FALL_MAX
  bcc @done
  lda #<FALL_MAX
  sta vy
  lda #>FALL_MAX
  sta vy+1
@done:
  rts

jumps:
  .word JUMP_SPEED, RUN_JUMP

; --- movement ---------------------------------------------------------------------------------------------------

move_x:
  ldy #0
  lda vx+1
  bpl @right
  dey
@right:
  lda px_sub
  clc
  adc vx
  sta px_sub
  lda px
  adc vx+1
  sta px
  tya
  adc px+1
  sta px+1
  lda px                     ; not out of the picture to the left: px - cam_x is signed, px may be -1
  cmp cam_x
  lda px+1
  sbc cam_x+1
  bpl @wheel
  lda cam_x
  sta px
  lda cam_x+1
  sta px+1
  lda #0
  sta vx
  sta vx+1
@wheel:
  lda vx
  asl a
  lda vx+1
  rol a
  clc
  adc wheel
  sta wheel
  rts

move_y:
  ldy #0
  lda vy+1
  bpl @down
  dey
@down:
  lda py_sub
  clc
  adc vy
  sta py_sub
  lda py
  adc vy+1
  sta py
  tya
  adc py+1
  sta py+1
  bpl @done
  lda #0                     ; not above the status bar
  sta py
  sta py+1
  sta vy
  sta vy+1
@done:
  rts

; --- terrain ----------------------------------------------------------------------------------------------------

; A = flags of the block at offset X, Y from the cart's corner.
block_by_player:
  txa
  clc
  adc px
  sta t0
  lda px+1
  adc #0
  sta t1
  tya
  clc
  adc py
  sta t2
  lda py+1
  adc #0
  beq @inside
  lda #0
  sta hit_block
  rts
@inside:
  jmp block_at

hit_walls:
  lda vx+1
  bmi @left
  ora vx
  beq @none
  ldx #BODY_RIGHT
  ldy #BODY_TOP + 4
  jsr block_by_player
  and #FLAG_SOLID
  bne @stop_right
  ldx #BODY_RIGHT
  ldy #FEET - 4
  jsr block_by_player
  and #FLAG_SOLID
  beq @none
@stop_right:
  lda t0
  and #$F0
  sec
  sbc #BODY_RIGHT + 1
  sta px
  lda t1
  sbc #0
  sta px+1
  jmp @stop
@left:
  ldx #BODY_LEFT
  ldy #BODY_TOP + 4
  jsr block_by_player
  and #FLAG_SOLID
  bne @stop_left
  ldx #BODY_LEFT
  ldy #FEET - 4
  jsr block_by_player
  and #FLAG_SOLID
  beq @none
@stop_left:
  lda t0
  ora #$0F                   ; last pixel of the block; the body starts one further
  sec
  sbc #BODY_LEFT - 1
  sta px
  lda t1
  sta px+1
@stop:
  lda #0
  sta vx
  sta vx+1
  sta px_sub
@none:
  rts

; Stand on a solid block, or on a one-way block that the feet were above before this frame.
land:
  lda #0
  sta on_ground
  ldx #BODY_LEFT + 1
  jsr @floor
  bcs @landed
  ldx #BODY_RIGHT - 1
  jsr @floor
  bcc @air
@landed:
  lda t2
  and #$F0
  sec
  sbc #FEET
  sta py
  lda #0
  sta py_sub
  sta vy
  sta vy+1
  lda #1
  sta on_ground
  lda hit_block
  tax
  lda block_flags,x
  and #FLAG_HAZARD
  beq @air
  lda #CAUSE_HAZARD
  jmp hurt_player
@air:
  rts

@floor:                      ; carry set when the block below offset X carries
  ldy #FEET
  jsr block_by_player
  and #FLAG_SOLID | FLAG_ONEWAY
  beq @no
  and #FLAG_SOLID
  bne @yes
  lda t2                     ; block top
  and #$F0
  cmp player_feet
  bcs @yes
@no:
  clc
  rts
@yes:
  sec
  rts

check_pit:
  lda py+1
  bne @below
  lda py
  cmp #236
  bcc @done
@below:
  lda #CAUSE_PIT
  jmp kill_player
@done:
  rts

hit_ceiling:
  lda #0
  sta on_ground
  ldx #8
  ldy #BODY_TOP
  jsr block_by_player
  and #FLAG_SOLID
  bne @bump
  ldx #BODY_LEFT + 2
  ldy #BODY_TOP
  jsr block_by_player
  and #FLAG_SOLID
  bne @bump
  ldx #BODY_RIGHT - 2
  ldy #BODY_TOP
  jsr block_by_player
  and #FLAG_SOLID
  beq @none
@bump:
  lda t2
  and #$F0
  clc
  adc #16 - BODY_TOP
  sta py
  lda #0
  sta py_sub
  sta vy
  sta vy+1
  jmp bump_block
@none:
  rts
