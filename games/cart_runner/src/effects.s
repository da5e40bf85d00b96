; Sound effects: short lists of steps on pulse 2, and a crash on noise.
; A step: frames, volume and duty ($4004), period low, period high. A zero ends the list.

SFX_BUMP   = 1
SFX_JUMP   = 2
SFX_TICK   = 3
SFX_PAUSE  = 4
SFX_CINDER = 5
SFX_STOMP  = 6
SFX_COIN   = 7
SFX_HURT   = 8
SFX_PRIZE  = 9
SFX_LIFE   = 10

; The higher number wins while one plays.
start_effect:
  tax
  lda #0
  sta sfx_request
  lda sfx_timer
  beq @take
  cpx sfx_rank
  bcc @done
@take:
  stx sfx_rank
  lda sfx_table_lo - 1,x
  sta sfx_lo
  lda sfx_table_hi - 1,x
  sta sfx_hi
  lda #1
  sta sfx_timer
  lda #$FF
  sta pulse2_hi
@done:
  rts

play_effect:
  lda sfx_timer
  beq @done
  dec sfx_timer
  bne @done
  lda sfx_lo
  sta sound_ptr
  lda sfx_hi
  sta sound_ptr+1
  ldy #0
  lda (sound_ptr),y
  beq @over
  sta sfx_timer
  iny
  lda (sound_ptr),y
  sta PULSE2
  iny
  lda (sound_ptr),y
  sta PULSE2+2
  iny
  lda (sound_ptr),y
  cmp pulse2_hi              ; a write restarts the wave with a click
  beq @same_high
  sta pulse2_hi
  sta PULSE2+3
@same_high:
  lda sfx_lo
  clc
  adc #4
  sta sfx_lo
  bcc @done
  inc sfx_hi
@done:
  rts
@over:
  lda #$30
  sta PULSE2
  lda #REST                  ; the song comes back with its next note
  sta ch_pitch + CH_PULSE2
  rts

; Broken bricks.
crash_sound:
  lda #18
  sta crash_timer
  rts

play_crash:
  lda crash_timer
  beq @done
  dec crash_timer
  lsr a
  ora #$30
  sta NOISE
  lda crash_timer
  and #3
  ora #$08
  sta NOISE+2
  lda #$08
  sta NOISE+3
@done:
  rts

sfx_table_lo:
  .byte <sfx_bump, <sfx_jump, <sfx_tick, <sfx_pause, <sfx_cinder, <sfx_stomp, <sfx_coin, <sfx_hurt, <sfx_prize
  .byte <sfx_life
sfx_table_hi:
  .byte >sfx_bump, >sfx_jump, >sfx_tick, >sfx_pause, >sfx_cinder, >sfx_stomp, >sfx_coin, >sfx_hurt, >sfx_prize
  .byte >sfx_life

sfx_bump:
  .byte 2, $B6, $80, $03,  2, $B4, $00, $04,  2, $B2, $80, $04,  0
sfx_jump:
  .byte 2, $76, $A0, $01,  2, $76, $70, $01,  2, $75, $48, $01,  2, $75, $20, $01
  .byte 2, $74, $00, $01,  2, $73, $E0, $00,  2, $72, $C4, $00,  0
sfx_tick:
  .byte 1, $B5, $60, $00,  1, $B3, $60, $00,  0
sfx_pause:
  .byte 5, $76, $A8, $00,  5, $76, $D5, $00,  5, $76, $A8, $00,  8, $75, $7E, $00,  0
sfx_cinder:
  .byte 2, $36, $40, $02,  2, $36, $C0, $02,  2, $35, $20, $03,  2, $34, $C0, $03,  3, $32, $60, $04,  0
sfx_stomp:
  .byte 2, $B8, $C0, $00,  2, $B7, $00, $01,  2, $B6, $60, $01,  2, $B5, $E0, $01,  2, $B3, $A0, $02,  0
sfx_coin:
  .byte 4, $B7, $8E, $00,  4, $B7, $6A, $00,  4, $B6, $54, $00,  4, $B4, $54, $00,  6, $B2, $54, $00,  0
sfx_hurt:
  .byte 3, $B8, $00, $02,  3, $B7, $80, $02,  3, $B7, $00, $02,  3, $B6, $80, $02,  3, $B5, $00, $03
  .byte 3, $B4, $80, $03,  3, $B2, $00, $04,  0
sfx_prize:
  .byte 3, $76, $FD, $00,  3, $76, $E1, $00,  3, $76, $C9, $00,  3, $76, $BD, $00,  3, $76, $A9, $00
  .byte 3, $76, $96, $00,  3, $75, $86, $00,  6, $74, $7E, $00,  0
sfx_life:
  .byte 4, $B7, $A9, $00,  4, $B7, $86, $00,  4, $B7, $6A, $00,  4, $B7, $54, $00,  4, $B6, $43, $00
  .byte 4, $B6, $35, $00,  8, $B4, $35, $00,  0
