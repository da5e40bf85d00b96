//! Where translated code finds the bus's fields, in bytes from the start of a `Bus`.

use std::mem::offset_of;

use super::Bus;

const fn offset(bytes: usize) -> i32 {
    assert!(bytes < 1 << 20, "an instruction's displacement holds the offset");
    bytes as i32
}

pub(in super::super) const CYCLES: i32 = offset(offset_of!(Bus, cycles));
pub(in super::super) const DEADLINE: i32 = offset(offset_of!(Bus, deadline));
pub(in super::super) const DATA_BUS: i32 = offset(offset_of!(Bus, data_bus));
pub(in super::super) const RAM: i32 = offset(offset_of!(Bus, ram));
pub(in super::super) const LATE_POLL_AT: i32 = offset(offset_of!(Bus, late_poll_at));
pub(in super::super) const POLL_SLACK: i32 = offset(offset_of!(Bus, poll_slack));
