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

fn dummy_read(bus: &mut Bus, address: u16) {
    if matches!(address >> 13, 1..=3) {
        bus.read(address);
    } else {
        bus.cycles += 1;
    }
}
