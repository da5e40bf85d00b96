//! A frame's events and where the CPU's cycles fall among the dots.
//!
//! In CPU cycle `c` a register is read or written just after dot `3 c`, and the NMI line is looked at after dot
//! `3 c + 1`. So a read in the dot before vblank is set keeps it from being set; reads in that dot and the next
//! see it set and keep the NMI away; one dot later the NMI comes all the same.

use super::super::bus::NEVER;
use super::{NOBODYS, Ppu, UNKNOWN, ctrl};
use crate::emulator::nes::timing::{
    DOTS_PER_CYCLE, DOTS_PER_FRAME, DOTS_PER_LINE, FLAG_DOT, POST_RENDER_LINE, PRE_RENDER_LINE, VBLANK_LINE,
};

/// The dot of the pre-render line at which an odd frame looks whether rendering is on.
const SKIP_DOT: u32 = 338;

/// What happens next in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The vblank flag is set.
    Vblank,
    /// The three flags are cleared.
    FlagsCleared,
    /// The length of the frame is settled.
    LengthSettled,
    /// The next frame begins.
    NextFrame,
}

/// Dots are counted from a frame before power-on, so that states may stand anywhere in a frame at any cycle.
pub(super) const FIRST_DOT: u64 = DOTS_PER_FRAME as u64;

/// The dot after which a register access of this CPU cycle happens.
#[inline]
pub(super) fn access_dot(cycle: u64) -> u64 {
    FIRST_DOT + cycle * DOTS_PER_CYCLE
}

/// The last dot that has passed at the boundary before `cycle`.
fn last_dot_before(cycle: u64) -> u64 {
    access_dot(cycle) - 1
}

/// The first cycle whose accesses see what happens at `dot`.
#[inline]
pub(super) fn first_cycle_seeing(dot: u64) -> u64 {
    dot.saturating_sub(FIRST_DOT).div_ceil(DOTS_PER_CYCLE)
}

/// The cycle in which the CPU's NMI input first sees a line that falls at `dot`.
fn nmi_cycle(dot: u64) -> u64 {
    first_cycle_seeing(dot - 1)
}

const fn dot_of(line: u32, dot: u32) -> u64 {
    (line * DOTS_PER_LINE + dot) as u64
}

/// The first cycle at or after the start of line 240 of the frame that starts at this dot.
fn post_render_after(frame_start: u64) -> u64 {
    first_cycle_seeing(frame_start + dot_of(POST_RENDER_LINE, 0))
}

/// A cycle at which `run_frame` stops.
pub(in super::super) enum Stop {
    /// The first one at or after the next start of line 240.
    End(u64),
    /// That one or the one before it; by then it is known.
    EndAtLeast(u64),
    /// By then the frame's length is settled.
    Unsettled(u64),
}

impl Ppu {
    /// When an event of the current frame happens. The next frame's start is only known once settled.
    pub(super) fn time_of(&self, event: Event) -> u64 {
        self.frame_start
            + match event {
                Event::Vblank => dot_of(VBLANK_LINE, FLAG_DOT),
                Event::FlagsCleared => dot_of(PRE_RENDER_LINE, FLAG_DOT),
                Event::LengthSettled => dot_of(PRE_RENDER_LINE, SKIP_DOT),
                Event::NextFrame => u64::from(DOTS_PER_FRAME),
            }
    }

    fn expect(&mut self, event: Event) {
        self.event = event;
        self.event_at = self.time_of(event);
    }

    /// Lets time pass up to and with `dot`.
    #[inline]
    pub(super) fn pass_events(&mut self, dot: u64) {
        while self.event_at <= dot {
            self.pass_event();
        }
    }

    fn pass_event(&mut self) {
        match self.event {
            Event::Vblank => {
                self.vblank = !self.vblank_suppressed;
                self.expect(Event::FlagsCleared);
            }
            Event::FlagsCleared => {
                self.vblank = false;
                self.vblank_suppressed = false;
                self.hit = false;
                self.overflow = false;
                self.hit_at = UNKNOWN;
                self.overflow_at = NEVER;
                self.warming_up = false;
                self.expect(Event::LengthSettled);
            }
            Event::LengthSettled => {
                self.expect(Event::NextFrame);
                if self.odd_frame && self.rendering() {
                    self.event_at -= 1;
                }
            }
            Event::NextFrame => {
                let start = self.event_at;
                self.catch_up(start);
                self.frame_start = start;
                self.done = start;
                self.line = 0;
                self.line_start = start;
                self.odd_frame = !self.odd_frame;
                self.overflow_from = start;
                self.hit_at = UNKNOWN;
                self.overflow_at = UNKNOWN;
                self.expect(Event::Vblank);
            }
        }
    }

    /// Before a register changes in `cycle`: everything up to then happens with the old value.
    #[inline(always)]
    pub(super) fn sync(&mut self, cycle: u64) {
        let dot = access_dot(cycle);
        // Most accesses come in vblank, where between two events nothing happens.
        let quiet = self.event_at.min(self.frame_start + dot_of(PRE_RENDER_LINE, 0));
        if self.line != POST_RENDER_LINE || dot + 1 >= quiet {
            self.sync_to(dot);
        }
    }

    #[inline(never)]
    fn sync_to(&mut self, dot: u64) {
        self.pass_events(dot);
        self.settle_hit(dot);
        self.catch_up(dot + 1);
    }

    /// A frame of `run_frame` begins before `cycle`: foretells its NMI, and draws from the next line 0 on if asked to.
    pub(in super::super) fn begin_frame(&mut self, cycle: u64, draw: bool) {
        self.pass_events(last_dot_before(cycle));
        self.drawing = false;
        self.draws_from = NOBODYS;
        if draw {
            let whole = self.line >= POST_RENDER_LINE;
            let canvas = self.canvas.get_or_insert_default();
            // A line's sprites are fetched in the one before.
            let first = if self.beam_jumps { canvas.seen_from.saturating_sub(1) } else { 0 };
            canvas.begin(whole, first);
            self.draws_from = first as u32;
        }
        if self.event == Event::Vblank && self.nmi_at == NEVER && self.beam.ctrl & ctrl::NMI != 0 {
            self.nmi_at = self.coming_nmi();
        }
    }

    /// A frame of `run_frame` ends before `cycle`: everything that belongs to it has happened.
    pub(in super::super) fn end_frame(&mut self, cycle: u64) {
        let last = last_dot_before(cycle);
        self.pass_events(last);
        self.settle_overflow(last);
        self.sync_to(last);
        self.beam.forget_line();
        self.units.clear();
    }

    /// The cycle in which the NMI of this frame's vblank would be seen.
    fn coming_nmi(&self) -> u64 {
        if self.vblank_suppressed { NEVER } else { nmi_cycle(self.time_of(Event::Vblank)) }
    }

    /// $2000 is written in `cycle`: bit 7 makes or breaks the NMI line.
    pub(super) fn switch_nmi(&mut self, on: bool, cycle: u64) {
        let was_on = self.beam.ctrl & ctrl::NMI != 0;
        // A flag that is cleared before the NMI input looks makes no edge.
        let ends = self.event == Event::FlagsCleared && self.event_at <= access_dot(cycle) + 1;
        if on && !was_on {
            if self.vblank && !ends {
                self.nmi_at = self.nmi_at.min(cycle);
            } else if self.event == Event::Vblank && self.nmi_at == NEVER {
                self.nmi_at = self.coming_nmi();
            }
        } else if !on && was_on && self.nmi_at >= cycle {
            self.nmi_at = NEVER;
        }
    }

    /// $2002 is read in `cycle`, after `pass_events`: gives the vblank flag, and keeps it away.
    pub(super) fn take_vblank(&mut self, cycle: u64) -> bool {
        let dot = access_dot(cycle);
        if self.event == Event::Vblank && dot + 1 == self.event_at {
            self.vblank_suppressed = true;
            if self.nmi_at >= cycle {
                self.nmi_at = NEVER;
            }
        }
        let vblank = std::mem::take(&mut self.vblank);
        if vblank && self.nmi_at >= cycle {
            self.nmi_at = NEVER;
        }
        vblank
    }

    /// Where `run_frame` stops next, from the boundary before `cycle` on. `at_least`: while the frame's length is not
    /// settled, the earliest end will do.
    pub(in super::super) fn next_stop(&mut self, cycle: u64, at_least: bool) -> Stop {
        self.pass_events(last_dot_before(cycle));
        let start = if access_dot(cycle) < self.frame_start + dot_of(POST_RENDER_LINE, 0) {
            self.frame_start
        } else if self.event == Event::NextFrame {
            self.event_at
        } else if !at_least {
            return Stop::Unsettled(first_cycle_seeing(self.time_of(Event::LengthSettled)) + 1);
        } else if self.odd_frame {
            // It may lack its last dot.
            return Stop::EndAtLeast(post_render_after(self.time_of(Event::NextFrame) - 1));
        } else {
            self.time_of(Event::NextFrame)
        };
        Stop::End(post_render_after(start))
    }

    /// The first cycle at or after the start of this frame's line 240, asked before `cycle`.
    pub(in super::super) fn post_render_cycle(&mut self, cycle: u64) -> u64 {
        self.pass_events(last_dot_before(cycle));
        post_render_after(self.frame_start)
    }

    /// Line and dot with which `cycle` starts.
    pub(super) fn position(&self, cycle: u64) -> (u16, u16) {
        let into = access_dot(cycle) - self.frame_start;
        ((into / u64::from(DOTS_PER_LINE)) as u16, (into % u64::from(DOTS_PER_LINE)) as u16)
    }

    /// Puts the boundary before `cycle` at this line and dot; flags and registers are set already.
    pub(super) fn set_position(&mut self, line: u16, dot: u16, odd_frame: bool, cycle: u64) {
        let here = access_dot(cycle);
        self.frame_start = here - dot_of(u32::from(line), u32::from(dot));
        self.odd_frame = odd_frame;
        self.vblank_suppressed = false;
        self.expect(Event::Vblank);
        for event in [Event::FlagsCleared, Event::LengthSettled, Event::NextFrame] {
            if self.event_at < here {
                self.expect(event);
            }
        }
        self.line = u32::from(line);
        self.line_start = here - u64::from(dot);
        self.place_beam(cycle);
        self.hit_at = UNKNOWN;
        self.overflow_at = UNKNOWN;
        self.overflow_from = here;
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST_DOT, first_cycle_seeing, nmi_cycle};

    #[test]
    fn vblank_is_seen_by_the_first_access_after_its_dot() {
        assert_eq!([9, 10, 11, 12].map(|dot| first_cycle_seeing(FIRST_DOT + dot)), [3, 4, 4, 4]);
    }

    #[test]
    fn the_nmi_input_looks_one_dot_after_an_access() {
        assert_eq!([9, 10, 11, 12].map(|dot| nmi_cycle(FIRST_DOT + dot)), [3, 3, 4, 4]);
    }
}
