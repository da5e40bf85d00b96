//! The PPU follows its beam: whole lines together, lines that a write split by tiles or dots, and what the sprite 0 hit
//! flag will do.

use super::super::timeline::access_dot;
use super::super::{NEVER, NOBODYS, Ppu, UNKNOWN, mask};
use super::{BACK_TO_LEFT, LAST_FETCH, right_of};
use crate::emulator::nes::timing::{DOTS_PER_LINE, POST_RENDER_LINE, PRE_RENDER_LINE};

impl Ppu {
    /// What the beam depends on has changed: what was foretold is void, and tiles ahead are what they are.
    pub(in super::super) fn beam_changed(&mut self) {
        self.beam.ahead_is_plain = false;
        if self.line != POST_RENDER_LINE {
            self.hit_at = UNKNOWN;
        }
    }

    /// Whether the beam is using memory and counters now, after `sync`.
    pub(in super::super) fn beam_is_busy(&self) -> bool {
        self.rendering() && (self.line < POST_RENDER_LINE || self.line == PRE_RENDER_LINE)
    }

    /// Whether anything is rendered from now, after `sync`, to `dot`.
    pub(in super::super) fn renders_before(&self, dot: u64) -> bool {
        self.beam_is_busy() || dot >= self.frame_start + u64::from(PRE_RENDER_LINE * DOTS_PER_LINE)
    }

    /// Lets the beam pass all dots before `to`, which lies in this frame or at its end.
    #[inline]
    pub(in super::super) fn catch_up(&mut self, to: u64) {
        // Most writes come in vblank.
        if self.line == POST_RENDER_LINE && to < self.frame_start + u64::from(PRE_RENDER_LINE * DOTS_PER_LINE) {
            self.done = self.done.max(to);
        } else {
            self.pass_beam(to);
        }
    }

    fn pass_beam(&mut self, to: u64) {
        while self.done < to {
            match self.line {
                0..POST_RENDER_LINE => self.pass_visible(to),
                PRE_RENDER_LINE => self.pass_pre_render(to),
                _ => self.pass_vblank(to),
            }
        }
    }

    /// Lines 240-260, which count as one here.
    fn pass_vblank(&mut self, to: u64) {
        let pre_render = self.frame_start + u64::from(PRE_RENDER_LINE * DOTS_PER_LINE);
        self.done = to.min(pre_render);
        self.line = POST_RENDER_LINE;
        if self.done == pre_render {
            self.line = PRE_RENDER_LINE;
            self.line_start = pre_render;
        }
    }

    fn line_end(&self) -> u64 {
        self.line_start + u64::from(DOTS_PER_LINE)
    }

    fn pass_visible(&mut self, to: u64) {
        self.drawing |= self.line >= self.draws_from;
        let end = self.line_end();
        let whole = self.done == self.line_start && to >= end;
        if whole && self.beam_jumps && !self.drawing && (self.beam.ahead_is_plain || !self.rendering()) {
            return self.pass_unseen_lines(to);
        }
        if whole && self.beam_jumps && self.notes_lines() && self.rendering() && self.beam.ahead_is_plain {
            return self.pass_noted_lines(to);
        }
        if whole && !self.rendering() {
            self.show_line(self.line);
            self.units.clear();
        } else if whole && self.beam.ahead_is_plain {
            self.show_line(self.line);
            self.fetch_units_of(self.line + 1);
            self.oam_addr = 0;
            self.beam.pass_line();
        } else {
            self.pass_dots(to.min(end));
            if self.done < end {
                return;
            }
        }
        self.done = end;
        self.line_start = end;
        self.line += 1;
    }

    /// All whole lines before `to`, which nobody sees and in which nothing changes.
    fn pass_unseen_lines(&mut self, to: u64) {
        let whole = (to - self.line_start) / u64::from(DOTS_PER_LINE);
        let lines = (whole as u32).min(POST_RENDER_LINE.min(self.draws_from) - self.line);
        if self.rendering() {
            self.beam.pass_lines(lines);
            self.oam_addr = 0;
        }
        self.units.clear();
        self.line += lines;
        self.line_start += u64::from(lines * DOTS_PER_LINE);
        self.done = self.line_start;
    }

    /// All whole lines before `to`, in which nothing changes: they are written down.
    fn pass_noted_lines(&mut self, to: u64) {
        let whole = (to - self.line_start) / u64::from(DOTS_PER_LINE);
        let end = POST_RENDER_LINE.min(self.line + whole as u32);
        let mut note = self.note();
        if let Some(canvas) = &mut self.canvas {
            for line in self.line..end {
                canvas.note(line as usize, note);
                self.beam.next_row();
                self.beam.back_to_left();
                (note.v, note.sprites) = (self.beam.v, Some(self.beam.ctrl));
            }
        }
        self.beam.v = right_of(right_of(self.beam.v));
        self.line_start += u64::from((end - self.line) * DOTS_PER_LINE);
        self.line = end;
        self.fetch_units_of(end);
        self.oam_addr = 0;
        self.done = self.line_start;
    }

    fn pass_pre_render(&mut self, to: u64) {
        // An odd frame lacks the last dot, in which nothing happens.
        let end = self.line_end();
        if self.done == self.line_start && to + 1 >= end {
            if self.rendering() {
                self.beam.pass_pre_render();
                self.oam_addr = 0;
            }
            self.units.clear();
            self.done = to;
        } else {
            self.pass_dots(to.min(end));
        }
    }

    /// Passes dots of one line one by one, or over whole tiles: up to the first write, and where no more pixels are to be
    /// drawn.
    fn pass_dots(&mut self, to: u64) {
        // The picture is nobody's to its end, and its pixels hit nothing more. Where lines below are drawn, what the registers
        // hold here may be shown there.
        let unseen = !self.drawing && self.draws_from == NOBODYS;
        if self.hit && self.beam_jumps && unseen && self.line < POST_RENDER_LINE {
            return self.pass_addresses(to);
        }
        if self.units.are_for(self.line) {
            self.fill_units();
        }
        let mut dot = (self.done - self.line_start) as u32;
        let end = (to - self.line_start) as u32;
        let jumps = self.beam_jumps && self.line < POST_RENDER_LINE;
        if dot == 0 && self.rendering() && self.beam.ahead_is_plain {
            if jumps {
                if self.drawing && end > 1 {
                    // As if nothing changed; what comes after the write is drawn over it.
                    self.draw_line(self.line);
                }
                dot = self.beam.pass_tiles(end, &self.memory);
            } else {
                self.beam.fill(&self.memory);
            }
        }
        while dot < end {
            if jumps && end == DOTS_PER_LINE && dot <= BACK_TO_LEFT && (!self.drawing || dot > LAST_FETCH) {
                self.beam.pass_rest(dot, &self.memory);
                self.pass_sprite_fetches();
                break;
            }
            if jumps && self.rendering() && dot < LAST_FETCH && dot % 8 == 1 && dot + 8 <= end {
                if self.drawing {
                    self.draw_dots(self.line, dot - 1, self.beam.background_of_tile(dot - 1));
                }
                self.beam.pass_tile(&self.memory);
                dot += 8;
                if dot > LAST_FETCH {
                    self.beam.next_row();
                }
                continue;
            }
            if jumps && dot > BACK_TO_LEFT && self.beam.passes_quickly(dot, end) {
                dot = self.beam.pass_behind_picture(dot, end, &self.memory);
                continue;
            }
            if self.drawing && self.line < POST_RENDER_LINE && matches!(dot, 1..=256) {
                self.draw_dot(self.line, dot - 1, self.beam.background(dot - 1));
            }
            self.beam.pass_dot(self.line, dot, &self.memory);
            if dot == BACK_TO_LEFT {
                self.pass_sprite_fetches();
            }
            dot += 1;
        }
        self.done = to;
    }

    /// Passes dots of a visible line by what they do to the address alone.
    fn pass_addresses(&mut self, to: u64) {
        let (dot, end) = ((self.done - self.line_start) as u32, (to - self.line_start) as u32);
        self.beam.pass_address(dot, end);
        if dot <= BACK_TO_LEFT && BACK_TO_LEFT < end {
            self.pass_sprite_fetches();
        }
        self.done = to;
    }

    /// Dots 257-320: sprites of the next line.
    fn pass_sprite_fetches(&mut self) {
        if !self.rendering() {
            self.units.clear();
            return;
        }
        self.oam_addr = 0;
        self.fetch_units_of(self.line + 1);
    }

    /// Foretells from here: the first dot, of those before line 240, at which sprite 0 meets the background.
    pub(in super::super) fn foretell_hit(&self) -> u64 {
        let mut beam = self.beam;
        let (mut line, mut line_start, mut done) = (self.line, self.line_start, self.done);
        // Sprite 0 is in no line before this one.
        let first = u32::from(self.oam[0]) + 1;
        while line < POST_RENDER_LINE {
            let plain = done == line_start && beam.ahead_is_plain;
            if plain && line < first && self.beam_jumps {
                let lines = first.min(POST_RENDER_LINE) - line;
                beam.pass_lines(lines);
                line += lines;
                line_start += u64::from(lines * DOTS_PER_LINE);
                done = line_start;
                continue;
            }
            if plain {
                if let Some(x) = self.sprite_zero(line).meets(&beam, &self.memory) {
                    return line_start + u64::from(x) + 1;
                }
                beam.pass_line();
            } else {
                // A line in which something was changed, to its end.
                let sprite = self.sprite_zero(line);
                for dot in (done - line_start) as u32..DOTS_PER_LINE {
                    if matches!(dot, 1..=255) && sprite.covers(dot - 1, &beam) && beam.background(dot - 1) != 0 {
                        return line_start + u64::from(dot);
                    }
                    beam.pass_dot(line, dot, &self.memory);
                }
            }
            line += 1;
            line_start += u64::from(DOTS_PER_LINE);
            done = line_start;
            if line > u32::from(self.oam[0]) + 17 {
                break;
            }
        }
        NEVER
    }

    /// Brings the hit flag up to `dot`.
    #[inline]
    pub(in super::super) fn settle_hit(&mut self, dot: u64) {
        if self.hit || dot < self.frame_start + u64::from(DOTS_PER_LINE) {
            return;
        }
        if self.hit_at == UNKNOWN {
            self.hit_at = self.next_hit();
        }
        self.hit = self.hit_at <= dot;
    }

    fn next_hit(&self) -> u64 {
        let both = mask::RENDERING;
        let possible = self.beam.mask & both == both && self.line < POST_RENDER_LINE;
        if possible { self.foretell_hit() } else { NEVER }
    }

    /// What $2004 gives while the beam is busy: sprite evaluation has the bus.
    pub(in super::super) fn oam_bus(&self) -> Option<u8> {
        let dot = self.done - self.line_start;
        (self.beam_is_busy() && (1..=64).contains(&dot)).then_some(0xFF)
    }

    /// The state's position is set: which line the beam is in.
    pub(in super::super) fn place_beam(&mut self, cycle: u64) {
        self.done = access_dot(cycle);
        if (POST_RENDER_LINE..PRE_RENDER_LINE).contains(&self.line) {
            self.line_start = self.frame_start + u64::from(POST_RENDER_LINE * DOTS_PER_LINE);
            self.line = POST_RENDER_LINE;
        }
    }
}
