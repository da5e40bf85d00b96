//! NTSC timing in the units of the machine: CPU cycles and PPU dots (nesdev wiki, "PPU rendering" and
//! "Cycle reference chart").
//!
//! CPU cycle `c` starts with dot `3 c`, counted from line 0 of the first frame after power-on.

/// PPU dots in one CPU cycle.
pub const DOTS_PER_CYCLE: u64 = 3;
/// Dots in a line.
pub const DOTS_PER_LINE: u32 = 341;
/// Lines in a frame: 0-239 visible, 240 post-render, 241-260 vblank, 261 pre-render.
pub const LINES: u32 = 262;
/// Dots in a frame; odd frames are one shorter while rendering is on.
pub const DOTS_PER_FRAME: u32 = DOTS_PER_LINE * LINES;
/// The line after the picture. A frame of `run_frame` starts and ends here.
pub const POST_RENDER_LINE: u32 = 240;
/// The line in which the vblank flag is set, at `FLAG_DOT`.
pub const VBLANK_LINE: u32 = 241;
/// The line in which the status flags are cleared, at `FLAG_DOT`.
pub const PRE_RENDER_LINE: u32 = 261;
/// The dot at which flags change on those two lines.
pub const FLAG_DOT: u32 = 1;
/// CPU cycles of the longest frame, rounded up, without the overshoot of its last instruction.
pub const CYCLES_PER_FRAME: u64 = 29_781;
/// CPU cycles that the reset sequence takes before the first opcode is fetched.
pub const RESET_CYCLES: u64 = 7;
/// CPU cycles in a second, rounded.
pub const CPU_HZ: u64 = 1_789_773;
