//! Where a thread's time goes, for those who ask: code that can tell is generic over a probe, and with the silent one it
//! is the code without.
//!
//! Time belongs to the innermost part that has begun and not ended. Each look at the clock takes time itself; that is
//! taken off again, half from the part before it and half from the one behind.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// What a lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Instructions of the CPU, and all that they do but the PPU's work.
    Cpu,
    /// The PPU without pictures: time, registers, scrolling, sprite flags; and lines that must be drawn at once.
    Ppu,
    /// Lines of pictures, from what was noted of them.
    Draw,
    /// From lines to observations, and these to where the caller wants them.
    Observe,
}

pub const PARTS: usize = 4;

/// Tells what part is at work.
pub trait Probe: Copy {
    /// Whether it tells anything.
    const ON: bool;

    /// Does a part's work.
    fn span<T>(part: Part, work: impl FnOnce() -> T) -> T;
}

/// Tells nothing and costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

/// Reads the clock where a part begins and where it ends.
#[derive(Clone, Copy, Debug)]
pub struct Clocked;

impl Probe for Silent {
    const ON: bool = false;

    #[inline(always)]
    fn span<T>(_: Part, work: impl FnOnce() -> T) -> T {
        work()
    }
}

impl Probe for Clocked {
    const ON: bool = true;

    fn span<T>(part: Part, work: impl FnOnce() -> T) -> T {
        let outer = CLOCK.with(|clock| change(clock, Some(part)));
        let result = work();
        CLOCK.with(|clock| change(clock, outer));
        result
    }
}

/// What each part took, in the order of `Part`, and behind them what looking at the clock took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent(pub [Duration; PARTS + 1]);

impl std::ops::Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|part| self.0[part] + other.0[part]))
    }
}

/// A thread's clock: the part at work, since when, and what was spent since `take`.
#[derive(Clone, Copy)]
struct Clock {
    now: Option<Part>,
    since: Option<Instant>,
    spent: [Duration; PARTS],
    /// Half looks by part; and all looks.
    looks: [u32; PARTS],
    changes: u32,
}

thread_local! {
    static CLOCK: Cell<Clock> =
        const { Cell::new(Clock { now: None, since: None, spent: [Duration::ZERO; PARTS], looks: [0; PARTS], changes: 0 }) };
}

/// Another part is at work from now on; gives the one before.
fn change(clock: &Cell<Clock>, part: Option<Part>) -> Option<Part> {
    let now = Instant::now();
    let mut state = clock.get();
    let before = state.now;
    if let (Some(before), Some(since)) = (before, state.since) {
        state.spent[before as usize] += now - since;
    }
    for part in [before, part].into_iter().flatten() {
        state.looks[part as usize] += 1;
    }
    state.changes += 1;
    clock.set(Clock { now: part, since: Some(now), ..state });
    before
}

/// How long one look at the clock takes: the shortest of some runs, since others get the processor too.
pub fn cost_of_a_look() -> Duration {
    const LOOKS: u32 = 256;
    let clock = Cell::new(CLOCK.get());
    let run = |_| {
        let began = Instant::now();
        (0..LOOKS).for_each(|look| {
            change(&clock, if look % 2 == 0 { Some(Part::Cpu) } else { None });
        });
        std::hint::black_box(&clock);
        began.elapsed() / LOOKS
    };
    (0..8).map(run).min().unwrap_or_default()
}

/// What this thread's parts took since it was asked last, less what looking cost at `look` each.
pub fn take(look: Duration) -> Spent {
    CLOCK.with(|clock| {
        let state = clock.get();
        clock.set(Clock { spent: [Duration::ZERO; PARTS], looks: [0; PARTS], changes: 0, ..state });
        Spent(std::array::from_fn(|part| match state.spent.get(part) {
            Some(spent) => spent.saturating_sub(look * state.looks[part] / 2),
            None => look * state.changes,
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::{Clocked, PARTS, Part, Probe, Silent, Spent, take};
    use std::time::{Duration, Instant};

    fn work() {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn time_belongs_to_the_innermost_part() {
        let began = Instant::now();
        Clocked::span(Part::Cpu, || {
            work();
            Clocked::span(Part::Ppu, work);
            Silent::span(Part::Draw, work);
        });
        let (spent, all) = (take(Duration::from_nanos(1)).0, began.elapsed());
        let least = Duration::from_millis(2) - Duration::from_nanos(4);
        assert!(spent[Part::Cpu as usize] >= 2 * least && spent[Part::Ppu as usize] >= least, "{spent:?}");
        assert_eq!(spent[Part::Draw as usize], Duration::ZERO);
        assert!(spent.iter().sum::<Duration>() <= all, "{spent:?} of {all:?}");
        // Two parts that begin and end.
        assert_eq!(spent[PARTS], Duration::from_nanos(4));
        assert_eq!(take(Duration::from_nanos(1)), Spent::default());
    }
}
