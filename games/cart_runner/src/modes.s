; The game's modes, each a table of tasks. A frame runs one task of one mode.
; The modes decide what happens next; player.s, objects.s and level.s do it. The two ends are endings.s.

MODE_TITLE    = 0
MODE_INTRO    = 1
MODE_LOAD     = 2
MODE_PLAY     = 3
MODE_DYING    = 4
MODE_CLEAR    = 5
MODE_OVER     = 6
MODE_COMPLETE = 7

LEVELS        = 4
START_LIVES   = 3
INTRO_FRAMES  = 100
DYING_FRAMES  = 110
CLEAR_FRAMES  = 150
OVER_FRAMES   = 250

game_frame:
  lda game_mode
  jsr dispatch
  .word mode_title, mode_intro, mode_load, mode_play, mode_dying, mode_clear, mode_over, mode_complete

; Enter mode A at task 0.
set_mode:
  sta game_mode
  lda #0
  sta task
  sta mode_timer
  rts

; --- full-screen pictures ---------------------------------------------------------------------------------------

; Turn the picture off and start to draw screen A; screen_step does the work over 16 frames.
screen_begin:
  sta screen_no
  lda #MASK_HIDE
  sta ppu_mask
  lda #0
  sta split_on
  sta hud_on
  sta screen_row
  sta column_due
  inc task
  jmp clear_sprites

; Queue 64 more bytes of the screen. When all 1,024 are there: palette, picture on, next task.
screen_step:
  lda screen_row
  cmp #16
  beq @shown
  ldx screen_no
  lsr a
  lsr a
  sta t0
  clc
  adc #$20
  jsr queue_byte
  lda screen_row
  and #3
  lsr a
  ror a
  ror a
  sta t1
  jsr queue_byte
  lda #64
  jsr queue_byte
  lda screen_lo,x
  clc
  adc t1
  sta data_ptr
  lda screen_hi,x
  adc t0
  sta data_ptr+1
  ldy #0
  ldx queue_len
@byte:
  lda (data_ptr),y
  sta queue,x
  inx
  iny
  cpy #64
  bne @byte
  stx queue_len
  inc screen_row
  rts
@shown:
  ldx screen_no
  lda screen_palette_lo,x
  sta data_ptr
  lda screen_palette_hi,x
  sta data_ptr+1
  jsr load_palette
  lda #MASK_SHOW
  sta ppu_mask
  inc task
  rts

; --- title ------------------------------------------------------------------------------------------------------

TITLE_DIGIT = $2000 + 22 * 32 + 19   ; where the title shows the chosen level
TITLE_HIGH  = $2000 + 18 * 32 + 17
TITLE_RAIL_Y = 208 - 24

mode_title:
  lda task
  jsr dispatch
  .word @begin, screen_step, @scores, @wait

@begin:
  lda #SONG_TITLE
  sta song_request
  lda #1
  sta level
  lda #0
  sta px
  sta dying
  sta cleared
  lda #SCREEN_TITLE
  jmp screen_begin

@scores:
  lda #>TITLE_HIGH
  jsr queue_byte
  lda #<TITLE_HIGH
  jsr queue_byte
  lda #6
  jsr queue_byte
  ldx #0
@digit:
  lda high_score,x
  jsr queue_byte
  inx
  cpx #6
  bne @digit
  inc task
  rts

@wait:
  jsr random_byte            ; the wait for START seeds the game
  lda pad1_new
  and #PAD_START
  bne @start
  lda pad1_new
  and #PAD_UP
  beq @not_up
  lda level
  cmp #LEVELS
  bcs @not_up
  inc level
  jsr menu_sound
@not_up:
  lda pad1_new
  and #PAD_DOWN
  beq @not_down
  lda level
  cmp #2
  bcc @not_down
  dec level
  jsr menu_sound
@not_down:
  lda #>TITLE_DIGIT
  jsr queue_byte
  lda #<TITLE_DIGIT
  jsr queue_byte
  lda #1
  jsr queue_byte
  lda level
  jsr queue_byte
  jsr clear_sprites          ; a cart rolls along the rail
  inc px
  lda px
  sta spr_x
  lda #0
  sta spr_x+1
  sta spr_flip
  sta spr_attr
  lda #TITLE_RAIL_Y
  sta spr_y
  lda px
  lsr a
  lsr a
  and #1
  clc
  adc #SPRITE_CART_A
  jmp draw_sprite

@start:
  lda #START_LIVES
  sta lives
  jsr reset_score
  lda #SFX_COIN
  sta sfx_request
  lda #MODE_INTRO
  jmp set_mode

menu_sound:
  lda #SFX_BUMP
  sta sfx_request
  rts

; --- level intro and loading ------------------------------------------------------------------------------------

INTRO_LEVEL = $2000 + 12 * 32 + 19
INTRO_NAME  = $2000 + 14 * 32 + 8
INTRO_LIVES = $2000 + 18 * 32 + 18

mode_intro:
  lda task
  jsr dispatch
  .word @begin, screen_step, @numbers, @wait

@begin:
  lda #$FF
  sta song_request
  lda #0
  sta dying
  sta cleared
  jsr load_time
  lda #SCREEN_INTRO
  jmp screen_begin

@numbers:
  lda #>INTRO_LEVEL
  jsr queue_byte
  lda #<INTRO_LEVEL
  jsr queue_byte
  lda #1
  jsr queue_byte
  lda level
  jsr queue_byte
  lda #>INTRO_NAME
  jsr queue_byte
  lda #<INTRO_NAME
  jsr queue_byte
  lda #16
  jsr queue_byte
  ldx level
  lda level_name_lo - 1,x
  sta data_ptr
  lda level_name_hi - 1,x
  sta data_ptr+1
  ldy #0
  ldx queue_len
@glyph:
  lda (data_ptr),y
  sta queue,x
  inx
  iny
  cpy #16
  bne @glyph
  stx queue_len
  lda #>INTRO_LIVES
  jsr queue_byte
  lda #<INTRO_LIVES
  jsr queue_byte
  lda #1
  jsr queue_byte
  lda lives
  jsr queue_byte
  lda #1
  sta hud_on
  inc task
  rts

@wait:
  jsr clear_sprites
  lda #0
  sta spr_x+1
  sta spr_flip
  sta spr_attr
  lda #100
  sta spr_x
  lda #132
  sta spr_y
  lda #SPRITE_CART_A
  jsr draw_sprite
  inc mode_timer
  lda mode_timer
  cmp #INTRO_FRAMES
  bne @stay
  lda #MODE_LOAD
  jsr set_mode
@stay:
  rts

mode_load:
  lda task
  jsr dispatch
  .word @begin, @columns, @begin_play

@begin:
  lda #MASK_HIDE
  sta ppu_mask
  jsr clear_sprites
  jsr load_level
  inc task
  rts

@columns:                    ; the streamer draws the first screen too, a tile column a frame
  jsr stream_column
  lda column_due
  bne @stay
  inc task
@stay:
  rts

@begin_play:
  ldx level
  lda level_music - 1,x
  sta song_request
  lda #MASK_SHOW
  sta ppu_mask
  lda #1
  sta split_on
  lda #MODE_PLAY
  jsr set_mode
  jsr sprites_begin
  jmp player_draw

; --- play -------------------------------------------------------------------------------------------------------

mode_play:
  lda pad1_new
  and #PAD_START
  beq @no_toggle
  lda paused
  eor #1
  sta paused
  lda #SFX_PAUSE
  sta sfx_request
@no_toggle:
  lda paused
  bne @paused
  jsr sprites_begin
  jsr tick_time
  jsr player_update
  jsr touch_terrain
  jsr scroll_camera
  jsr spawn_objects
  jsr fortress_shots
  jsr hurry_up
  jsr objects_update
  jsr objects_collide
  jsr player_draw
  jsr draw_progress
  jsr update_motes
  jsr draw_motes
  jsr stream_column
  jsr shine_coins
  jmp check_goal
@paused:
  rts

check_goal:
  lda dying
  bne @no
  lda px
  sec
  sbc goal_x
  lda px+1
  sbc goal_x+1
  bcc @no
  lda #1
  sta cleared
  lda #SONG_CLEAR
  sta song_request
  lda #MODE_CLEAR
  jmp set_mode
@no:
  rts

; Begin to die for cause A (see death_cause), once.
kill_player:
  ldx dying
  bne @already
  sta death_cause
  inc dying
  dec lives
  lda #0
  sta helmet
  sta vx
  sta vx+1
  sta vy
  lda #$FB
  sta vy+1
  lda #SONG_LOST
  sta song_request
  lda #MODE_DYING
  jmp set_mode
@already:
  rts

CAUSE_PIT    = 1
CAUSE_ENEMY  = 2
CAUSE_HAZARD = 3
CAUSE_TIME   = 4

mode_dying:
  jsr sprites_begin
  lda mode_timer
  cmp #16                    ; a short stop, then the cart leaves the picture
  bcc @still
  jsr player_fall_out
@still:
  jsr objects_draw
  jsr player_draw
  jsr draw_progress
  jsr draw_motes
  inc mode_timer
  lda mode_timer
  cmp #DYING_FRAMES
  bne @stay
  ldx lives
  beq @over
  lda #MODE_INTRO
  jmp set_mode
@over:
  lda #MODE_OVER
  jmp set_mode
@stay:
  rts

mode_clear:
  jsr sprites_begin
  jsr player_roll_home
  jsr time_bonus
  jsr objects_draw
  jsr player_draw
  jsr draw_progress
  jsr update_motes
  jsr draw_motes
  jsr shine_coins
  inc mode_timer
  lda mode_timer
  cmp #CLEAR_FRAMES
  bcc @stay
  jsr time_left              ; wait for the last of the bonus
  bne @again
  lda level
  cmp #LEVELS
  bcs @complete
  inc level
  lda #MODE_INTRO
  jmp set_mode
@complete:
  lda #MODE_COMPLETE
  jmp set_mode
@again:
  dec mode_timer
@stay:
  rts
