; The modes after the last life and after the last level. modes.s has the others.

mode_over:
  lda task
  jsr dispatch
  .word @begin, screen_step, wait_for_title

@begin:
  jsr keep_high_score
  lda #SONG_OVER
  sta song_request
  lda #SCREEN_OVER
  jmp screen_begin

COMPLETE_SCORE = $2000 + 20 * 32 + 17

mode_complete:
  lda task
  jsr dispatch
  .word @begin, screen_step, @score, wait_for_start

@begin:
  jsr keep_high_score
  lda #SONG_TITLE
  sta song_request
  lda #SCREEN_COMPLETE
  jmp screen_begin

@score:
  lda #>COMPLETE_SCORE
  jsr queue_byte
  lda #<COMPLETE_SCORE
  jsr queue_byte
  lda #6
  jsr queue_byte
  ldx #0
@digit:
  lda score,x
  jsr queue_byte
  inx
  cpx #6
  bne @digit
  inc task
  rts

wait_for_title:
  inc mode_timer
  lda mode_timer
  cmp #OVER_FRAMES
  beq to_title
wait_for_start:
  lda pad1_new
  and #PAD_START
  bne to_title
  rts

to_title:
  lda #MODE_TITLE
  jmp set_mode
