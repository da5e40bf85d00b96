//! What translated code calls: accesses that may hit a register, open bus or work RAM, one after the other as the
//! interpreter makes them.
//!
//! Translated code has set the bus's time and data bus to those of the first access, and takes the time back. No
//! DMA can halt these reads: the deadline lies before.

use crate::emulator::fast::bus::Bus;

/// What reads the register at an address: `(bus, cycle) -> value`.
pub(super) fn reader(address: u16) -> Option<*const ()> {
    let call: unsafe extern "C" fn(*mut Bus, u64) -> u32 = match address {
        0x2000..0x4000 => match address & 7 {
            2 => read_ppu::<2>,
            4 => read_ppu::<4>,
            7 => read_ppu::<7>,
            _ => read_ppu::<0>,
        },
        0x4015 => read_apu,
        0x4016 => read_pad::<0>,
        0x4017 => read_pad::<1>,
        _ => return None,
    };
    Some(call as *const ())
}

/// What writes the register at an address: `(bus, cycle, value)`.
pub(super) fn writer(address: u16) -> Option<*const ()> {
    let call: unsafe extern "C" fn(*mut Bus, u64, u32) = match address {
        0x2000..0x4000 => [
            write_ppu::<0>,
            write_ppu::<1>,
            write_ppu::<2>,
            write_ppu::<3>,
            write_ppu::<4>,
            write_ppu::<5>,
            write_ppu::<6>,
            write_ppu::<7>,
        ][usize::from(address & 7)],
        0x4000..=0x400F => [
            write_channel::<0>,
            write_channel::<1>,
            write_channel::<2>,
            write_channel::<3>,
            write_channel::<4>,
            write_channel::<5>,
            write_channel::<6>,
            write_channel::<7>,
            write_channel::<8>,
            write_channel::<9>,
            write_channel::<10>,
            write_channel::<11>,
            write_channel::<12>,
            write_channel::<13>,
            write_channel::<14>,
            write_channel::<15>,
        ][usize::from(address & 15)],
        0x4015 => write_enable,
        0x4016 => write_strobe,
        _ => return None,
    };
    Some(call as *const ())
}

/// # Safety
/// As `read`.
unsafe extern "C" fn read_ppu<const REGISTER: u16>(bus: *mut Bus, cycle: u64) -> u32 {
    // SAFETY: as above.
    u32::from(unsafe { &mut *bus }.read_ppu::<REGISTER>(cycle))
}

/// # Safety
/// As `read`.
unsafe extern "C" fn write_ppu<const REGISTER: u16>(bus: *mut Bus, cycle: u64, value: u32) {
    // SAFETY: as above.
    unsafe { &mut *bus }.write_ppu::<REGISTER>(value as u8, cycle);
}

/// A read of $4015 whose operand left $40 on the data bus.
///
/// # Safety
/// As `read`.
unsafe extern "C" fn read_apu(bus: *mut Bus, cycle: u64) -> u32 {
    // SAFETY: as above.
    u32::from(unsafe { &mut *bus }.read_apu(cycle))
}

/// # Safety
/// As `read`.
unsafe extern "C" fn write_channel<const REGISTER: u16>(bus: *mut Bus, cycle: u64, value: u32) {
    // SAFETY: as above.
    unsafe { &mut *bus }.write_channel(REGISTER, value as u8, cycle);
}

/// A write of $4015.
///
/// # Safety
/// As `read`.
unsafe extern "C" fn write_enable(bus: *mut Bus, cycle: u64, value: u32) {
    // SAFETY: as above.
    unsafe { &mut *bus }.write_apu(0x4015, value as u8, cycle);
}

/// A read of a pad whose operand left $40 on the data bus.
///
/// # Safety
/// As `read`.
unsafe extern "C" fn read_pad<const PORT: usize>(bus: *mut Bus, cycle: u64) -> u32 {
    // SAFETY: as above.
    u32::from(unsafe { &mut *bus }.pads.read(PORT, cycle) | 0x40)
}

/// # Safety
/// As `read`.
unsafe extern "C" fn write_strobe(bus: *mut Bus, _cycle: u64, value: u32) {
    // SAFETY: as above.
    unsafe { &mut *bus }.pads.strobe(value & 1 != 0);
}

/// A write of $4014 by an instruction in front of `next`; the bus has the time before and after.
///
/// # Safety
/// As `read`.
pub(super) unsafe extern "C" fn write_oam_dma(bus: *mut Bus, next: u32, _index: u32, value: u32) {
    // SAFETY: as above.
    unsafe { &mut *bus }.write_oam_dma(value as u8, next as u16);
}

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
