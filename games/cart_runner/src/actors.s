; One routine an object type, and the table of what each starts with.
; To add a type: a name in convert.py (OBJECTS), a row in each table below, a word in `act`, a sprite in art/.

;               none grub  beetle bat  urchin hopper ember lift_h lift_v drop cinder helmet spark shard
type_vx_lo:
  .byte         $00, $80,  $80,  $30,  $40,   $00,   $00,  $C0,   $00,   $00, $60,   $80,   $00,  $00
type_vx_hi:
  .byte         $00, $FF,  $FF,  $FF,  $FF,   $00,   $00,  $00,   $00,   $00, $FE,   $00,   $00,  $00
type_vy_lo:
  .byte         $00, $00,  $00,  $00,  $00,   $00,   $00,  $00,   $40,   $00, $00,   $00,   $80,  $00
type_vy_hi:
  .byte         $00, $00,  $00,  $00,  $00,   $00,   $00,  $00,   $FF,   $00, $00,   $FE,   $FC,  $FD
type_timer:
  .byte         0,   0,    0,    0,    0,     30,    50,   96,    80,    0,   0,     0,     26,   26
type_sprite:
  .byte         0,   SPRITE_GRUB_A, SPRITE_BEETLE_A, SPRITE_BAT_A, SPRITE_URCHIN_A, SPRITE_HOPPER_A, SPRITE_EMBER_A
  .byte         SPRITE_LIFT, SPRITE_LIFT, SPRITE_LIFT, SPRITE_CINDER_A, SPRITE_HELMET, SPRITE_SPARK, SPRITE_SHARD

type_bumps:                  ; turns when it meets another that does
  .byte         0,   1,    1,    0,    1,     0,     0,   0,     0,      0,   0,     0,     0,   0

act:
  jsr dispatch
  .word act_none, act_grub, act_beetle, act_bat, act_urchin, act_hopper, act_ember
  .word act_lift_h, act_lift_v, act_lift_drop, act_cinder, act_helmet, act_spark, act_spark

act_none:
  rts

; Two pictures in turn, A the first, every eight frames.
animate:
  sta o_sprite,x
  inc o_anim,x
  lda o_anim,x
  and #8
  beq @done
  inc o_sprite,x
@done:
  rts

; A flattened enemy of picture A lies for a while. Carry set when that is all for this frame.
lie_flat:
  ldy o_state,x
  beq @alive
  sta o_sprite,x
  dec o_timer,x
  bne @lies
  jsr free_object
@lies:
  sec
  rts
@alive:
  clc
  rts

act_grub:                    ; walks, falls off ledges
  lda #SPRITE_GRUB_FLAT
  jsr lie_flat
  bcs @done
  jsr object_fall
  jsr object_walk
  lda #SPRITE_GRUB_A
  jsr animate
  jmp object_fights
@done:
  rts

act_beetle:                  ; walks, turns at ledges
  lda #SPRITE_BEETLE_FLAT
  jsr lie_flat
  bcs @done
  jsr object_fall
  jsr object_walk
  jsr object_mind_ledge
  lda #SPRITE_BEETLE_A
  jsr animate
  jmp object_fights
@done:
  rts

act_urchin:                  ; rolls; spikes all round
  jsr object_fall
  jsr object_walk
  jsr object_mind_ledge
  lda #SPRITE_URCHIN_A
  jsr animate
  jmp object_hurts

act_bat:                     ; flies left in waves
  lda #SPRITE_BAT_FLAT
  jsr lie_flat
  bcs @falls
  jsr object_move_x
  inc o_timer,x
  lda o_timer,x
  lsr a
  and #31
  tay
  lda wave,y
  clc
  adc o_base,x
  sta o_ylo,x
  lda #SPRITE_BAT_A
  jsr animate
  jmp object_fights
@falls:
  lda o_type,x
  beq @gone
  jsr object_gravity
  jmp object_move_y
@gone:
  rts

wave:                        ; 18 * sin, 32 steps
  .byte 0, 4, 7, 10, 13, 15, 17, 18, 18, 18, 17, 15, 13, 10, 7, 4
  .byte 0, 252, 249, 246, 243, 241, 239, 238, 238, 238, 239, 241, 243, 246, 249, 252

act_hopper:                  ; sits, then hops towards the cart
  lda #SPRITE_HOPPER_FLAT
  jsr lie_flat
  bcs @done
  jsr object_fall
  lda #SPRITE_HOPPER_B
  sta o_sprite,x
  lda o_ground,x
  beq @in_air
  lda #SPRITE_HOPPER_A
  sta o_sprite,x
  dec o_timer,x
  bne @fight
  lda #45
  sta o_timer,x
  lda #$80
  sta o_vylo,x
  lda #$FC                   ; -3.5
  sta o_vyhi,x
  lda #$E0
  sta o_vxlo,x
  lda #$00
  sta o_vxhi,x
  lda #$40
  sta o_flip,x
  lda o_xlo,x
  cmp px
  lda o_xhi,x
  sbc px+1
  bcc @fight                 ; the cart is to the right
  jsr object_turn
  jmp @fight
@in_air:
  jsr object_walk
@fight:
  jmp object_fights
@done:
  rts

act_ember:                   ; leaps out of the lava and falls back
  lda o_state,x
  bne @flying
  lda #240
  sta o_ylo,x
  dec o_timer,x
  bne @done
  inc o_state,x
  lda #$60
  sta o_vylo,x
  lda #$FA                   ; -5.6
  sta o_vyhi,x
@flying:
  jsr object_gravity_light
  jsr object_move_y
  lda o_vyhi,x
  bmi @draw
  lda o_ylo,x
  cmp #238
  bcc @draw
  lda #0
  sta o_state,x
  lda #70
  sta o_timer,x
  rts
@draw:
  lda #SPRITE_EMBER_A
  jsr animate
  jmp object_hurts
@done:
  rts

object_gravity_light:
  lda o_vylo,x
  clc
  adc #$20
  sta o_vylo,x
  bcc @done
  inc o_vyhi,x
@done:
  rts

; --- lifts ------------------------------------------------------------------------------------------------------

act_lift_h:                  ; to and fro
  dec o_timer,x
  bne @move
  lda type_timer + OBJ_LIFT_H
  sta o_timer,x
  jsr object_turn
  lda #0
  sta o_flip,x
@move:
  jsr object_move_x
  jmp carry_player

act_lift_v:                  ; up and down
  dec o_timer,x
  bne @move
  lda type_timer + OBJ_LIFT_V
  sta o_timer,x
  lda #0
  sec
  sbc o_vylo,x
  sta o_vylo,x
  lda #0
  sbc o_vyhi,x
  sta o_vyhi,x
@move:
  jsr object_move_y
  jmp carry_player

act_lift_drop:               ; sinks below a cart
  lda ride_slot
  beq @move
  sec
  sbc #1
  cmp slot
  bne @move
  lda o_vyhi,x
  cmp #2
  bcs @move
  lda o_vylo,x
  adc #$08
  sta o_vylo,x
  bcc @move
  inc o_vyhi,x
@move:
  jsr object_move_y
  jmp carry_player

LIFT_WIDTH = 32

; Take a riding cart along; let one land. ride_slot = slot + 1 while it rides.
carry_player:
  lda dying
  bne @done
  inx
  cpx ride_slot
  bne @stranger
  dex
  ldy #0
  lda o_dx,x
  bpl @right
  dey
@right:
  clc
  adc px
  sta px
  tya
  adc px+1
  sta px+1
  inx
@stranger:
  dex
  lda vy+1
  bmi @off
  lda py+1
  ora o_yhi,x
  bne @off
  lda py                     ; feet from 2 above to 7 below the top
  clc
  adc #FEET + 2
  sec
  sbc o_ylo,x
  cmp #10
  bcs @off
  lda px                     ; body over it: -13 < px - x < 30
  sec
  sbc o_xlo,x
  sta t0
  lda px+1
  sbc o_xhi,x
  sta t1
  lda t0
  clc
  adc #BODY_RIGHT
  sta t0
  lda t1
  adc #0
  bne @off
  lda t0
  cmp #LIFT_WIDTH + BODY_RIGHT - BODY_LEFT
  bcs @off
  lda o_ylo,x
  sec
  sbc #FEET
  sta py
  lda #0
  sta py_sub
  sta vy
  sta vy+1
  lda #1
  sta on_ground
  inx
  stx ride_slot
  dex
@done:
  rts
@off:
  inx
  cpx ride_slot
  bne @not_riding
  lda #0
  sta ride_slot
@not_riding:
  dex
  rts

; --- shots, pickups, effects ------------------------------------------------------------------------------------

; The fortress shoots cinders from the right at the height of the cart, at random times.
fortress_shots:
  ldx level
  lda level_embers - 1,x
  beq @done
  dec ember_timer
  bne @done
  jsr random_byte
  and #63
  clc
  adc #110
  sta ember_timer
  lda cam_x+1                ; not on the first screen, not at the goal
  beq @done
  lda cam_x
  cmp cam_max
  lda cam_x+1
  sbc cam_max+1
  bcs @done
  lda #OBJ_CINDER
  jsr new_object
  bcs @done
  lda cam_x
  clc
  adc #250
  sta o_xlo,x
  lda cam_x+1
  adc #0
  sta o_xhi,x
  lda rng+1
  and #15
  clc
  adc py
  sta o_ylo,x
  lda #SFX_CINDER
  sta sfx_request
@done:
  rts

; Whoever dawdles gets a bat at the height of the cart, every 256 frames in which the picture stands still.
hurry_up:
  lda cam_x
  cmp cam_last
  bne @moved
  inc idle_frames
  bne @done
  lda cam_x                  ; not at the goal
  cmp cam_max
  lda cam_x+1
  sbc cam_max+1
  bcs @done
  lda #OBJ_BAT
  jsr new_object
  bcs @done
  lda cam_x
  clc
  adc #252
  sta o_xlo,x
  lda cam_x+1
  adc #0
  sta o_xhi,x
  lda py
  sta o_ylo,x
  sta o_base,x
@done:
  rts
@moved:
  lda #0
  sta idle_frames
  rts

act_cinder:
  jsr object_move_x
  lda #SPRITE_CINDER_A
  jsr animate
  jmp object_hurts

act_helmet:                  ; rolls away until taken
  jsr object_fall
  jsr object_walk
  jsr object_meets_player
  bcc @done
  lda #1
  sta helmet
  lda #SFX_LIFE
  sta sfx_request
  jsr free_object
  stx save_x
  lda #1
  ldx #2
  jsr add_score
  ldx save_x
@done:
  rts

act_spark:                   ; rises, falls, ends
  jsr object_gravity
  jsr object_move_y
  dec o_timer,x
  bne @done
  jsr free_object
@done:
  rts
