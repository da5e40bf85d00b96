; Cart Runner: an original platformer for NROM-256. This file is the map of the source: ca65 assembles it alone.
; The iNES header and the vectors are here; every idea has its own file.

.include "hardware.inc"
.include "memory.inc"

.segment "HEADER"
  .byte "NES", $1A
  .byte 2, 1                 ; 32 KiB PRG, 8 KiB CHR
  .byte $01, $00             ; vertical mirroring, mapper 0
  .res 8, 0

.segment "RODATA"            ; made by convert.py; first, so that its constants are known below
.include "art.inc"
.include "levels.inc"
.include "screens.inc"
.include "music.inc"

.segment "CODE"
.include "main.s"            ; reset, main loop, NMI
.include "video.s"           ; what is written to the PPU in vblank
.include "pads.s"            ; controllers and random numbers
.include "modes.s"           ; title, intro, play, dying, clear
.include "endings.s"         ; game over, complete
.include "level.s"           ; column stream, block buffer, scrolling
.include "blocks.s"          ; single blocks
.include "player.s"          ; steering, gravity, walls and floors
.include "cart.s"            ; hits, loss, the way home, picture
.include "terrain.s"         ; what the cart does to blocks and they to it
.include "objects.s"         ; six slots: spawn, move
.include "contact.s"         ; objects that meet
.include "actors.s"          ; one routine an object type
.include "motes.s"           ; specks in the air
.include "sprites.s"         ; pictures into the OAM shadow
.include "score.s"           ; digits
.include "sound.s"           ; APU driver
.include "effects.s"         ; sound effects

.segment "TILES"
  .incbin "tiles.chr"

.segment "VECTORS"
  .word nmi, reset, irq
