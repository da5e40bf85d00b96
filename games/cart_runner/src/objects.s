; Six object slots: taking one, spawning from the level's list, moving, meeting terrain. Meetings are contact.s.
; X is the slot throughout and survives every routine here. What each type does is actors.s.

SPAWN_AHEAD = 17             ; columns from the left edge of the picture
GRAVITY     = $30
OBJ_FALL_MAX = 4

clear_objects:
  ldx #SLOTS - 1
  lda #0
@slot:
  sta o_type,x
  dex
  bpl @slot
  rts

; X = a fresh slot of type A, carry clear; carry set when none is free.
new_object:
  ldx #SLOTS - 1
@look:
  ldy o_type,x
  beq @found
  dex
  bpl @look
  sec
  rts
@found:
  sta o_type,x
  tay
  lda type_vx_lo,y
  sta o_vxlo,x
  lda type_vx_hi,y
  sta o_vxhi,x
  lda type_vy_lo,y
  sta o_vylo,x
  lda type_vy_hi,y
  sta o_vyhi,x
  lda type_timer,y
  sta o_timer,x
  lda type_sprite,y
  sta o_sprite,x
  lda #0
  sta o_state,x
  sta o_xsub,x
  sta o_ysub,x
  sta o_yhi,x
  sta o_flip,x
  sta o_anim,x
  sta o_ground,x
  sta o_dx,x
  clc
  rts

; Take everything from the level's list whose column comes near the picture. With six slots full it is left out.
spawn_objects:
  lda cam_x
  sta t4
  lda cam_x+1
  ldy #4
@shift:
  lsr a
  ror t4
  dey
  bne @shift
  lda t4
  clc
  adc #SPAWN_AHEAD
  sta t4
@entry:
  ldy #0
  lda (spawn_ptr),y
  cmp #255
  beq @done
  cmp t4
  bcs @done
  sta t5
  iny
  lda (spawn_ptr),y
  sta t6
  and #$0F
  jsr new_object
  bcs @next
  lda t5
  asl a
  asl a
  asl a
  asl a
  sta o_xlo,x
  lda t5
  lsr a
  lsr a
  lsr a
  lsr a
  sta o_xhi,x
  lda t6
  and #$F0
  clc
  adc #FIELD_TOP
  sta o_ylo,x
  sta o_base,x
@next:
  lda spawn_ptr
  clc
  adc #2
  sta spawn_ptr
  bcc @entry
  inc spawn_ptr+1
  bne @entry
@done:
  rts

objects_update:
  ldx #SLOTS - 1
@slot:
  stx slot
  lda o_type,x
  beq @next
  jsr act
  ldx slot
  lda o_type,x
  beq @next
  jsr leave_far_behind
  jsr draw_object
  ldx slot
@next:
  dex
  bpl @slot
  rts

objects_draw:
  ldx #SLOTS - 1
@slot:
  stx slot
  lda o_type,x
  beq @next
  jsr draw_object
  ldx slot
@next:
  dex
  bpl @slot
  rts

draw_object:
  lda o_yhi,x
  bne @below
  lda o_xlo,x
  sec
  sbc cam_x
  sta spr_x
  lda o_xhi,x
  sbc cam_x+1
  sta spr_x+1
  lda o_ylo,x
  sta spr_y
  lda o_flip,x
  sta spr_flip
  lda #0
  sta spr_attr
  lda o_sprite,x
  jmp draw_sprite
@below:
  rts

free_object:
  lda #0
  sta o_type,x
  rts

; Free a slot that is 48 pixels left or 64 right of the picture, or below it.
leave_far_behind:
  lda o_xlo,x
  sec
  sbc cam_x
  sta t0
  lda o_xhi,x
  sbc cam_x+1
  sta t1
  lda t0
  clc
  adc #48
  sta t0
  lda t1
  adc #0
  beq @near
  cmp #1
  bne free_object
  lda t0
  cmp #112
  bcs free_object
@near:
  lda o_yhi,x
  bne free_object
  rts

; --- movement ---------------------------------------------------------------------------------------------------

object_move_x:
  lda o_xlo,x
  sta t0
  ldy #0
  lda o_vxhi,x
  bpl @right
  dey
@right:
  lda o_xsub,x
  clc
  adc o_vxlo,x
  sta o_xsub,x
  lda o_xlo,x
  adc o_vxhi,x
  sta o_xlo,x
  tya
  adc o_xhi,x
  sta o_xhi,x
  lda o_xlo,x
  sec
  sbc t0
  sta o_dx,x
  rts

object_move_y:
  ldy #0
  lda o_vyhi,x
  bpl @down
  dey
@down:
  lda o_ysub,x
  clc
  adc o_vylo,x
  sta o_ysub,x
  lda o_ylo,x
  adc o_vyhi,x
  sta o_ylo,x
  tya
  adc o_yhi,x
  sta o_yhi,x
  rts

object_gravity:
  lda o_vylo,x
  clc
  adc #GRAVITY
  sta o_vylo,x
  bcc @no_carry
  inc o_vyhi,x
@no_carry:
  lda o_vyhi,x
  bmi @done
  cmp #OBJ_FALL_MAX
  bcc @done
  lda #OBJ_FALL_MAX
  sta o_vyhi,x
  lda #0
  sta o_vylo,x
@done:
  rts

; Gravity, vertical move, and standing on what carries. o_ground tells.
object_fall:
  jsr object_gravity
  jsr object_move_y
  lda #0
  sta o_ground,x
  lda o_vyhi,x
  bmi @done
  lda o_yhi,x
  bne @done
  lda #8
  ldy #16
  jsr block_by_object
  and #FLAG_SOLID | FLAG_ONEWAY
  beq @done
  lda o_ylo,x                ; only when the feet just reached the top
  and #$0F
  cmp #8
  bcs @done
  lda o_ylo,x
  and #$F0
  sta o_ylo,x
  lda #0
  sta o_ysub,x
  sta o_vylo,x
  sta o_vyhi,x
  inc o_ground,x
@done:
  rts

; Walk; turn at walls.
object_walk:
  jsr object_move_x
  lda #1
  ldy o_vxhi,x
  bmi @left
  lda #14
@left:
  ldy #8
  jsr block_by_object
  and #FLAG_SOLID
  bne object_turn
  rts

; Turn where the ground ends.
object_mind_ledge:
  lda o_ground,x
  beq @done
  lda #2
  ldy o_vxhi,x
  bmi @left
  lda #13
@left:
  ldy #20
  jsr block_by_object
  and #FLAG_SOLID | FLAG_ONEWAY
  beq object_turn
@done:
  rts

object_turn:
  lda #0
  sec
  sbc o_vxlo,x
  sta o_vxlo,x
  lda #0
  sbc o_vxhi,x
  sta o_vxhi,x
  lda o_flip,x
  eor #$40
  sta o_flip,x
  rts

; A = flags of the block at offset A, Y from object X.
block_by_object:
  clc
  adc o_xlo,x
  sta t0
  lda o_xhi,x
  adc #0
  sta t1
  tya
  clc
  adc o_ylo,x
  sta t2
  stx save_x
  jsr block_at
  ldx save_x
  rts
