//! What translated code calls: accesses that may hit a register, open bus or work RAM, one after the other as the
//! interpreter makes them.
//!
//! Translated code has set the bus's time and data bus to those of the first access, and takes the time back. No
//! DMA can halt these reads: the deadline lies before.

use crate::emulator::fast::bus::Bus;

/// # Safety
/// `bus` is the bus that translated code was entered with, and nothing else uses it during the call: translated code
/// holds the only reference.
pub(super) unsafe extern "C" fn read(bus: *mut Bus, address: u32, _index: u32) -> u32 {
    // SAFETY: as above.
    let bus = unsafe { &mut *bus };
    u32::from(bus.read(address as u16))
}

/// A read at base + index, and before it one in the wrong page if the low byte carries.
///
/// # Safety
/// As `read`.
pub(super) unsafe extern "C" fn read_indexed(bus: *mut Bus, base: u32, index: u32) -> u32 {
    // SAFETY: as above.
    let bus = unsafe { &mut *bus };
    let (base, address) = (base as u16, (base as u16).wrapping_add(index as u16));
    if (base ^ address) & 0xFF00 != 0 {
        dummy_read(bus, base & 0xFF00 | address & 0x00FF);
    }
    u32::from(bus.read(address))
}

/// # Safety
/// As `read`.
pub(super) unsafe extern "C" fn write(bus: *mut Bus, address: u32, _index: u32, value: u32) {
    // SAFETY: as above.
    let bus = unsafe { &mut *bus };
    bus.write(address as u16, value as u8);
}

/// A write at base + index, and before it a read that has not carried yet.
///
/// # Safety
/// As `read`.
pub(super) unsafe extern "C" fn write_indexed(bus: *mut Bus, base: u32, index: u32, value: u32) {
    // SAFETY: as above.
    let bus = unsafe { &mut *bus };
    let (base, address) = (base as u16, (base as u16).wrapping_add(index as u16));
    dummy_read(bus, base & 0xFF00 | address & 0x00FF);
    bus.write(address, value as u8);
}

/// A loop that polls has gone back at `now` to its first instruction, which reads $2002. If that was read `since_read`
/// cycles before, a whole turn has just run: gives the time behind those in which it reads the same, else `now`.
///
/// # Safety
/// As `read`.
pub(super) unsafe extern "C" fn pass_polls(bus: *mut Bus, now: u64, cycles: u32, since_read: u32) -> u64 {
    // SAFETY: as above.
    let bus = unsafe { &*bus };
    let whole = bus.ppu.status_was_read_in(now - u64::from(since_read));
    if whole { bus.after_polls(now, u64::from(cycles)) } else { now }
}

fn dummy_read(bus: &mut Bus, address: u16) {
    if matches!(address >> 13, 1..=3) {
        bus.read(address);
    } else {
        bus.cycles += 1;
    }
}
