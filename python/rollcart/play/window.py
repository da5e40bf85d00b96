"""The window: a session's picture at a whole number of screen pixels, keys and pads, messages, help.

Needs pygame (the extra `play`). Sound is not there: the engine's APU is only what software can see of it.
"""

from __future__ import annotations

import os
from typing import Any

from rollcart import _extras, pictures
from rollcart.errors import ConfigError
from rollcart.play import keys
from rollcart.play.pacing import Pacer
from rollcart.play.session import Session

ROWS, COLUMNS = 224, 240
SCALES = range(1, 9)
_MESSAGE_FRAMES = 150
_TEXT, _SHADE, _RED = (255, 255, 255), (0, 0, 0, 190), (230, 40, 40)


class Window:
    """Shows a session until it ends. Call `run`, which always leaves pygame closed."""

    def __init__(
        self, session: Session, inputs: keys.Inputs, *, scale: int = 3, fullscreen: bool = False
    ) -> None:
        if scale not in SCALES:
            raise ConfigError(f"scale: expected {SCALES[0]} to {SCALES[-1]}, found {scale}")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        self._pygame = _extras.need("pygame", "play", "a window")
        self._session, self._inputs = session, inputs
        self._scale, self._fullscreen = scale, fullscreen
        self._help = False
        self._message, self._message_left = "", 0
        self._pads: dict[int, Any] = {}
        self._fonts: dict[int, Any] = {}

    def run(self, frames: int | None = None, *, pacer: Pacer | None = None) -> None:
        """Plays until the session ends, or for so many refreshes. Raises ConfigError without a display."""
        pygame = self._pygame
        try:
            pygame.display.init()
            # What SDL falls back to where there is no display: it would play on with nobody to see it.
            if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
                raise pygame.error("SDL found no display")
            pygame.font.init()
            pygame.joystick.init()
            self._open()
        except pygame.error as error:
            pygame.quit()
            raise ConfigError(
                f"no window can be opened ({error}); play needs a display. On a machine without one, "
                "`rollcart record` makes pictures and videos, and SDL_VIDEODRIVER=dummy plays unseen"
            ) from None
        pygame.display.set_caption(f"{self._session.game.name} - F1 shows help")
        pacer = pacer or Pacer(pictures.NTSC_FPS)
        try:
            self._session.say("F1 shows what the keys do")
            while self._session.running and (frames is None or frames > 0):
                self._refresh()
                pacer.wait()
                frames = None if frames is None else frames - 1
        finally:
            self._session.quit()
            pygame.quit()

    def _open(self) -> None:
        pygame = self._pygame
        flags = pygame.FULLSCREEN if self._fullscreen else pygame.RESIZABLE
        size = (0, 0) if self._fullscreen else (COLUMNS * self._scale, ROWS * self._scale)
        self._screen = pygame.display.set_mode(size, flags)
        pygame.mouse.set_visible(not self._fullscreen)

    def _refresh(self) -> None:
        for event in self._pygame.event.get():
            self._take(event)
        held = self._inputs.holds
        if self._session.running and not self._help:
            self._session.tick(self._inputs.pads(), rewinding=held("REWIND"), fast=held("FAST"))
        self._draw()
        self._pygame.display.flip()

    # ---------------------------------------------------------------------------------------- events

    def _take(self, event: Any) -> None:
        pygame, inputs = self._pygame, self._inputs
        if event.type == pygame.QUIT:
            self._session.quit()
        elif event.type == pygame.KEYDOWN:
            self._do(inputs.press(pygame.key.name(event.key)))
        elif event.type == pygame.KEYUP:
            inputs.release(pygame.key.name(event.key))
        elif event.type == pygame.WINDOWFOCUSLOST:
            inputs.release_all()
        elif event.type == pygame.JOYDEVICEADDED:
            pad = pygame.joystick.Joystick(event.device_index)
            self._pads[pad.get_instance_id()] = pad
            self._session.say(f"pad {len(self._pads)}: {pad.get_name()}")
        elif event.type == pygame.JOYDEVICEREMOVED:
            self._pads.pop(event.instance_id, None)
            inputs.release_all()
        elif event.type == pygame.JOYBUTTONDOWN:
            self._do(inputs.press(f"pad {self._number(event)} button {event.button}"))
        elif event.type == pygame.JOYBUTTONUP:
            inputs.release(f"pad {self._number(event)} button {event.button}")
        elif event.type == pygame.JOYAXISMOTION and event.axis in (0, 1):
            inputs.axis(self._number(event), event.axis == 1, event.value)
        elif event.type == pygame.JOYHATMOTION:
            inputs.axis(self._number(event), False, event.value[0])
            inputs.axis(self._number(event), True, -event.value[1])

    def _number(self, event: Any) -> int:
        """1 for the pad that came first, and so on."""
        known = list(self._pads)
        return known.index(event.instance_id) + 1 if event.instance_id in known else 1

    def _do(self, command: str | None) -> None:
        if command == "HELP":
            self._help = not self._help
        elif command == "FULLSCREEN":
            self._fullscreen = not self._fullscreen
            self._open()
        elif command in ("LARGER", "SMALLER"):
            self._scale = min(max(self._scale + (1 if command == "LARGER" else -1), SCALES[0]), SCALES[-1])
            self._fullscreen = False
            self._open()
        elif command:
            self._session.command(command)

    # --------------------------------------------------------------------------------------- drawing

    def _draw(self) -> None:
        pygame, screen = self._pygame, self._screen
        picture = pictures.window(self._session.console)
        surface = pygame.image.frombuffer(picture.tobytes(), (COLUMNS, ROWS), "RGB")
        width, height = screen.get_size()
        scale = max(1, min(width // COLUMNS, height // ROWS))
        size = (COLUMNS * scale, ROWS * scale)
        left, top = (width - size[0]) // 2, (height - size[1]) // 2
        screen.fill((0, 0, 0))
        screen.blit(pygame.transform.scale(surface, size), (left, top))
        font = self._font(8 + 5 * scale)
        if self._session.recorder:
            centre = (left + size[0] - 6 * scale, top + size[1] - 6 * scale)
            pygame.draw.circle(screen, _RED, centre, 3 * scale)
        if self._help:
            self._draw_help(font)
        elif text := self._line():
            self._panel([font.render(text, True, _TEXT)], (left, top + size[1]), above=True)

    def _font(self, size: int) -> Any:
        if size not in self._fonts:
            self._fonts[size] = self._pygame.font.Font(None, size)
        return self._fonts[size]

    def _line(self) -> str:
        """What is said at the bottom: the newest message for a while, else what lasts."""
        session = self._session
        if session.messages:
            self._message, self._message_left = session.messages[-1], _MESSAGE_FRAMES
            session.messages.clear()
        if self._message_left > 0:
            self._message_left -= 1
            return self._message
        if session.watching:
            return "movie: {} of {} frames".format(*session.watching)
        return "paused" if session.paused else ""

    def _draw_help(self, font: Any) -> None:
        rows = list(keys.help_lines(self._inputs.bound))
        pressed = [font.render(source, True, _TEXT) for source, _ in rows]
        does = [font.render(what, True, _TEXT) for _, what in rows]
        gap = font.size("  ")[0] + max(line.get_width() for line in pressed)
        lines = []
        for one, other in zip(pressed, does, strict=True):
            line = self._pygame.Surface((gap + other.get_width(), one.get_height()), self._pygame.SRCALPHA)
            line.blit(one, (0, 0))
            line.blit(other, (gap, 0))
            lines.append(line)
        self._panel(lines, (8, 8), above=False)

    def _panel(self, lines: list[Any], corner: tuple[int, int], *, above: bool) -> None:
        """Lines of text on a shade, whose lower left (above) or upper left corner is given."""
        pad = 4
        height = sum(line.get_height() for line in lines)
        width = max(line.get_width() for line in lines)
        shade = self._pygame.Surface((width + 2 * pad, height + 2 * pad), self._pygame.SRCALPHA)
        shade.fill(_SHADE)
        at = pad
        for line in lines:
            shade.blit(line, (pad, at))
            at += line.get_height()
        self._screen.blit(shade, (corner[0], corner[1] - shade.get_height() * above))
