; Decimal digits: score, time, high score. Digits lie highest first, one a byte, so that the status bar shows them.

; Add A to score digit X (0 = hundred thousands) and carry upwards. A may be up to 99 above nine.
add_score:
  clc
  adc score,x
@digit:
  cmp #10
  bcc @done
  sbc #10
  sta score,x
  cpx #0
  beq @full
  inc score-1,x
@more_tens:
  lda score,x
  cmp #10
  bcs @digit
  dex
  lda score,x
  jmp @digit
@done:
  sta score,x
  rts
@full:
  rts

reset_score:
  ldx #5
  lda #0
@digit:
  sta score,x
  dex
  bpl @digit
  sta coins
  sta coins+1
  sta helmet
  rts

load_time:
  ldx level
  lda level_time_hundreds - 1,x
  sta time
  lda level_time_tens - 1,x
  sta time+1
  lda level_time_ones - 1,x
  sta time+2
  lda #TIME_UNIT
  sta time_tick
  rts

TIME_UNIT = 20               ; frames

; One frame of the clock; at 000 the cart is lost.
tick_time:
  dec time_tick
  bne @done
  lda #TIME_UNIT
  sta time_tick
  jsr count_down
  jsr time_left
  bne @done
  lda #CAUSE_TIME
  jmp kill_player
@done:
  rts

; Z set when no time is left.
time_left:
  lda time
  ora time+1
  ora time+2
  rts

; time - 1, if any.
count_down:
  jsr time_left
  beq @done
  ldx #2
@digit:
  dec time,x
  bpl @done
  lda #9
  sta time,x
  dex
  bpl @digit
@done:
  rts

; After the goal every unit of time left is worth 50 points.
time_bonus:
  jsr time_left
  beq @done
  lda frame
  and #3
  bne @silent
  lda #SFX_TICK
  sta sfx_request
@silent:
  jsr count_down
  jsr @points
  jsr time_left
  beq @done
  jsr count_down
@points:
  lda #5
  ldx #4
  jmp add_score
@done:
  rts

keep_high_score:
  ldx #0
@compare:
  lda score,x
  cmp high_score,x
  bcc @done
  bne @better
  inx
  cpx #6
  bne @compare
@done:
  rts
@better:
  ldx #5
@copy:
  lda score,x
  sta high_score,x
  dex
  bpl @copy
  rts
