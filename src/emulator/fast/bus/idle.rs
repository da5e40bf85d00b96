//! Passing over loops that only wait.

use super::Bus;

impl Bus {
    /// A loop of `period` cycles was run once, changes nothing, and ends by interrupt only: runs the turns that
    /// start before the deadline, without executing them.
    #[inline(always)]
    pub(in super::super) fn pass_idle_turns(&mut self, period: u64) {
        if self.idle_skip && self.deadline > self.cycles {
            let turns = (self.deadline - self.cycles).div_ceil(period);
            self.cycles += turns * period;
        }
    }
}
