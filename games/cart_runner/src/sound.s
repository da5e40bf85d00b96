; The sound driver: four channels of a song and one effect, written to the APU every frame.
; Song format: convert_music.py. Effects: effects.s. Source: the reference pages on the APU's registers.
; The game asks by song_request (a song, or $FF for silence) and sfx_request; both are cleared here.

CH_PULSE1   = 0
CH_PULSE2   = 1
CH_TRIANGLE = 2
CH_NOISE    = 3
REST        = 1

sound_init:
  lda #$0F
  sta SNDCHN
  lda #$08                   ; sweep units off
  sta PULSE1+1
  sta PULSE2+1
silence:
  lda #$30
  sta PULSE1
  sta PULSE2
  sta NOISE
  lda #$80
  sta TRIANGLE
  lda #0
  sta song
  rts

sound_update:
  lda song_request
  beq @same_song
  jsr start_song
@same_song:
  lda sfx_request
  beq @same_effect
  jsr start_effect
@same_effect:
  lda paused
  bne @effects               ; the song waits while the game is paused
  lda song
  beq @effects
  ldx #3
@channel:
  dec ch_timer,x
  bne @holds
  jsr next_note
@holds:
  dex
  bpl @channel
  jsr play_pulse1
  jsr play_pulse2
  jsr play_triangle
  jsr play_noise
  ldx #3
@age:
  inc ch_age,x
  bne @young
  dec ch_age,x               ; stays at 255
@young:
  dex
  bpl @age
@effects:
  jsr play_effect
  jmp play_crash

; --- songs ------------------------------------------------------------------------------------------------------

start_song:
  ldx #0
  stx song_request
  cmp #$FF
  beq silence
  sta song
  tay
  lda song_loops - 1,y
  sta song_loop
  dey
  tya
  asl a
  asl a
  tay                        ; four streams a song
@channel:
  lda song_lo,y
  sta ch_lo,x
  sta ch_start_lo,x
  lda song_hi,y
  sta ch_hi,x
  sta ch_start_hi,x
  lda #1
  sta ch_timer,x
  sta ch_pitch,x             ; REST
  lda #0
  sta ch_age,x
  iny
  inx
  cpx #4
  bne @channel
  rts

; Read channel X's stream up to its next note or rest.
next_note:
  lda ch_lo,x
  sta sound_ptr
  lda ch_hi,x
  sta sound_ptr+1
  ldy #0
  lda (sound_ptr),y
  beq @end
  inc ch_lo,x
  bne @no_carry
  inc ch_hi,x
@no_carry:
  cmp #$80
  bcs @length
  sta ch_pitch,x
  lda ch_length,x
  sta ch_timer,x
  tya
  sta ch_age,x
  rts
@length:
  and #$7F
  sta ch_length,x
  bpl next_note              ; always
@end:
  lda song_loop
  beq @stop
  lda ch_start_lo,x
  sta ch_lo,x
  lda ch_start_hi,x
  sta ch_hi,x
  jmp next_note
@stop:
  lda #REST
  sta ch_pitch,x
  sta ch_timer,x             ; looks again every frame
  rts

; Y = 0-15, the note's age in steps of four frames.
.macro note_step channel
  lda ch_age + channel
  lsr a
  lsr a
  cmp #15
  bcc :+
  lda #15
: tay
.endmacro

play_pulse1:
  ldx ch_pitch + CH_PULSE1
  cpx #REST
  beq @rest
  note_step CH_PULSE1
  lda lead_volume,y
  ora #%10110000             ; half duty, constant volume
  sta PULSE1
  lda ch_age + CH_PULSE1
  bne @done
  lda period_lo,x
  sta PULSE1+2
  lda period_hi,x
  sta PULSE1+3
@done:
  rts
@rest:
  lda #$30
  sta PULSE1
  rts

play_pulse2:
  lda sfx_timer
  bne @done                  ; an effect has the channel
  ldx ch_pitch + CH_PULSE2
  cpx #REST
  beq @rest
  note_step CH_PULSE2
  lda back_volume,y
  ora #%01110000             ; quarter duty
  sta PULSE2
  lda ch_age + CH_PULSE2
  bne @done
  lda period_lo,x
  sta PULSE2+2
  lda period_hi,x
  sta PULSE2+3
  sta pulse2_hi
@done:
  rts
@rest:
  lda #$30
  sta PULSE2
  rts

play_triangle:
  ldx ch_pitch + CH_TRIANGLE
  cpx #REST
  beq @rest
  lda ch_timer + CH_TRIANGLE
  cmp #2
  bcc @rest                  ; a short gap between notes
  lda ch_age + CH_TRIANGLE
  bne @done
  lda #$FF
  sta TRIANGLE
  lda period_lo,x
  sta TRIANGLE+2
  lda period_hi,x
  sta TRIANGLE+3
@done:
  rts
@rest:
  lda #$80
  sta TRIANGLE
  rts

play_noise:
  lda crash_timer
  bne @done
  ldx ch_pitch + CH_NOISE
  cpx #REST
  beq @rest
  lda drum_volume - 2,x
  sec
  sbc ch_age + CH_NOISE
  bcs @audible
  lda #0
@audible:
  ora #$30
  sta NOISE
  lda ch_age + CH_NOISE
  bne @done
  lda drum_period - 2,x
  sta NOISE+2
  lda #$08
  sta NOISE+3
@done:
  rts
@rest:
  lda #$30
  sta NOISE
  rts

lead_volume:
  .byte 9, 8, 7, 6, 6, 5, 5, 4, 4, 3, 3, 3, 2, 2, 2, 1
back_volume:
  .byte 6, 5, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1, 1, 0, 0
drum_volume:                 ; kick, snare, hat
  .byte 10, 9, 5
drum_period:
  .byte $0D, $07, $02
