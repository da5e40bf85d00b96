//! The CPU's bus: what answers at which address, when interrupts are seen, and how long the CPU may run before
//! anything has to be looked at again (the deadline).
//!
//! ```text
//! $0000-$1FFF  2 KiB RAM, four times        $4020-$5FFF  open bus
//! $2000-$3FFF  PPU registers                $6000-$7FFF  work RAM
//! $4000-$401F  APU, pads, DMA               $8000-$FFFF  PRG-ROM
//! ```
//! `cycles` counts finished cycles: during an access it is the number of the cycle in which the access happens.

mod dma;
#[cfg(feature = "jit")]
pub(super) mod layout;
mod memory;
mod registers;

use std::sync::Arc;

use super::apu::Apu;
use super::interp::idle::after_turns;
use super::pads::Pads;
use super::ppu::Ppu;
use crate::emulator::cart::Cartridge;
pub(super) use memory::WorkRam;

/// A cycle that never comes.
pub(super) const NEVER: u64 = u64::MAX;
/// How long before its end an ordinary instruction polls interrupts: in its last cycle but one.
const POLL_SLACK: u8 = 2;
/// An interrupt sequence does not poll; what came after it took its vector is seen one instruction later.
pub(super) const SEQUENCE_SLACK: u8 = 4;
/// No instruction and no interrupt sequence takes longer without a DMA.
const LONGEST_INSTRUCTION: u64 = 8;

/// What interrupts the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    Nmi,
    Irq,
}

pub(super) struct Bus {
    pub cycles: u64,
    /// The CPU runs freely while `cycles` is below.
    pub deadline: u64,
    /// The last value on the data bus.
    pub data_bus: u8,
    pub ram: [u8; 2048],
    /// Where the windows from $8000 on start in PRG-ROM, in 8 KiB.
    prg_banks: [u8; 4],
    cart: Arc<Cartridge>,
    pub work_ram: WorkRam,
    pub ppu: Ppu,
    pub apu: Apu,
    pub pads: Pads,
    pub oam_dma: Option<u8>,
    /// The instruction that ended at this cycle polled earlier than usual, by `poll_slack`.
    pub late_poll_at: u64,
    poll_slack: u8,
    /// The instruction that ended at this cycle changed I after its poll; what I was then.
    mask_late_at: u64,
    mask_before: bool,
    /// From which cycle to which the IRQ line was held by a source that is quiet now.
    irq_was: (u64, u64),
    pub idle_skip: bool,
    pub poll_skip: bool,
    /// The deadline stays where an access moved no interrupt and no DMA.
    pub kept_deadlines: bool,
    /// Somebody wants to know what the PPU's part of the time is.
    pub probed: bool,
}

impl Bus {
    pub(super) fn new(cart: &Arc<Cartridge>, ram_fill: u8) -> Self {
        Self {
            cycles: 0,
            deadline: 0,
            data_bus: 0,
            ram: [ram_fill; 2048],
            prg_banks: memory::prg_banks(cart),
            cart: Arc::clone(cart),
            work_ram: WorkRam::new(cart, ram_fill),
            ppu: Ppu::new(cart),
            apu: Apu::new(),
            pads: Pads::default(),
            oam_dma: None,
            late_poll_at: NEVER,
            poll_slack: POLL_SLACK,
            mask_late_at: NEVER,
            mask_before: false,
            irq_was: (NEVER, NEVER),
            idle_skip: true,
            poll_skip: true,
            kept_deadlines: true,
            probed: false,
        }
    }

    /// Becomes equal to that of another console with the same cartridge; switches stay.
    pub(super) fn copy_from(&mut self, other: &Self) {
        let Self {
            cycles,
            deadline,
            data_bus,
            ram,
            prg_banks,
            cart: _,
            work_ram,
            ppu,
            apu,
            pads,
            oam_dma,
            late_poll_at,
            poll_slack,
            mask_late_at,
            mask_before,
            irq_was,
            idle_skip: _,
            poll_skip: _,
            kept_deadlines: _,
            probed: _,
        } = other;
        self.cycles = *cycles;
        self.deadline = *deadline;
        self.data_bus = *data_bus;
        self.ram = *ram;
        self.prg_banks = *prg_banks;
        self.work_ram.copy_from(work_ram);
        self.ppu.copy_from(ppu);
        self.apu = *apu;
        self.pads = *pads;
        self.oam_dma = *oam_dma;
        self.late_poll_at = *late_poll_at;
        self.poll_slack = *poll_slack;
        self.mask_late_at = *mask_late_at;
        self.mask_before = *mask_before;
        self.irq_was = *irq_was;
    }

    /// Bytes outside of this structure that belong to this console alone.
    pub(super) fn heap_bytes(&self) -> usize {
        let memory = &self.ppu.memory;
        memory.vram.len() + memory.chr_ram.len() + self.work_ram.own_bytes()
    }

    /// A bus equal to this one.
    pub(super) fn twin(&self) -> Self {
        let mut twin = Self::new(&self.cart, 0);
        twin.copy_from(self);
        twin
    }

    /// Forgets shifted polls of the past, after time was set.
    pub(super) fn forget_polls(&mut self) {
        self.late_poll_at = NEVER;
        self.mask_late_at = NEVER;
        self.irq_was = (NEVER, NEVER);
    }

    /// A read that a DMA may halt.
    pub(super) fn read_with_dma(&mut self, address: u16) -> u8 {
        self.halt_for_dma(address);
        self.read(address)
    }

    pub(super) fn read(&mut self, address: u16) -> u8 {
        let value = match address >> 13 {
            0 => self.ram[usize::from(address & 0x07FF)],
            4.. => self.prg(address),
            _ => return self.read_register(address),
        };
        self.cycles += 1;
        self.data_bus = value;
        value
    }

    pub(super) fn write(&mut self, address: u16, value: u8) {
        self.data_bus = value;
        if address < 0x2000 {
            self.ram[usize::from(address & 0x07FF)] = value;
        } else {
            self.write_register(address, value);
        }
        self.cycles += 1;
    }

    /// Memory without side effects.
    pub(super) fn peek(&self, address: u16) -> u8 {
        match address {
            0x0000..0x2000 => self.ram[usize::from(address & 0x07FF)],
            0x6000..0x8000 => self.work_ram.read(address).unwrap_or(self.data_bus),
            0x8000.. => self.prg(address),
            _ => self.data_bus,
        }
    }

    /// Makes the CPU stop at the next instruction boundary to look at interrupts and deadlines again.
    pub(super) fn interrupts_changed(&mut self) {
        self.deadline = 0;
    }

    /// After a turn of a loop that polls $2002 and ended before `now`: the time behind the whole turns in which it reads the
    /// same. Never the last one before the deadline: what a read leaves behind is the last one's, so that has to be made.
    pub(super) fn after_polls(&self, now: u64, cycles: u64) -> u64 {
        after_turns(now, self.deadline.saturating_sub(cycles).min(self.ppu.status_steady_until()), cycles)
    }

    /// The instruction that ends before `cycle` polled `slack` cycles before its end.
    #[inline(always)]
    pub(super) fn late_poll(&mut self, cycle: u64, slack: u8) {
        self.late_poll_at = cycle;
        self.poll_slack = slack;
    }

    /// The instruction that ends before `cycle` changes I, but was polled with `before`.
    pub(super) fn mask_changed_late(&mut self, cycle: u64, before: bool) {
        self.mask_late_at = cycle;
        self.mask_before = before;
        self.interrupts_changed();
    }

    /// Takes an NMI whose edge came before `cycle`.
    pub(super) fn take_nmi(&mut self, cycle: u64) -> bool {
        let seen = self.ppu.nmi_at < cycle;
        if seen {
            self.ppu.nmi_at = NEVER;
        }
        seen
    }

    /// What the instruction that ended now saw when it polled. `masked` is I as it is now.
    pub(super) fn poll(&self, masked: bool) -> Option<Interrupt> {
        let slack = if self.late_poll_at == self.cycles { self.poll_slack } else { POLL_SLACK };
        let polled = self.cycles.saturating_sub(u64::from(slack));
        let masked = if self.mask_late_at == self.cycles { self.mask_before } else { masked };
        let was_low = self.irq_was.0 <= polled && polled < self.irq_was.1;
        if self.ppu.nmi_at <= polled {
            Some(Interrupt::Nmi)
        } else if !masked && (self.apu.irq_at() <= polled || was_low) {
            Some(Interrupt::Irq)
        } else {
            None
        }
    }

    /// The next cycle at which the CPU has to stop, but after one instruction at the earliest.
    pub(super) fn next_deadline(&self, masked: bool, stop: u64) -> u64 {
        let slack = u64::from(POLL_SLACK);
        let irq = if masked { NEVER } else { self.apu.irq_at().saturating_add(slack) };
        let nmi = self.ppu.nmi_at.saturating_add(slack);
        stop.min(irq).min(nmi).min(self.dma_deadline()).max(self.cycles + 1)
    }

    /// From this instruction boundary on reads may be halted.
    fn dma_deadline(&self) -> u64 {
        if self.oam_dma.is_some() { 0 } else { self.apu.dma_at().saturating_sub(LONGEST_INSTRUCTION) }
    }

    /// Whether the next instruction may meet a DMA.
    pub(super) fn dma_is_near(&self) -> bool {
        self.dma_deadline() <= self.cycles
    }

    /// Whether an interrupt is to be taken now, and whether an NMI edge waits (for states).
    pub(super) fn pending(&self, masked: bool) -> (Option<Interrupt>, bool) {
        (self.poll(masked), self.ppu.nmi_at < self.cycles)
    }

    /// Sets up pending interrupts as `pending` told them.
    pub(super) fn set_pending(&mut self, polled: Option<Interrupt>, nmi_edge: bool) {
        self.forget_polls();
        let seen = self.cycles.saturating_sub(u64::from(POLL_SLACK));
        match (polled, nmi_edge) {
            (Some(Interrupt::Nmi), _) => self.ppu.nmi_at = seen,
            (_, true) => {
                self.ppu.nmi_at = self.cycles.saturating_sub(1);
            }
            _ => {}
        }
        match polled {
            Some(Interrupt::Irq) => {
                self.irq_was = (seen, self.cycles);
                self.mask_changed_late(self.cycles, false);
            }
            // Whatever holds the IRQ line, this boundary's poll did not see it.
            _ => self.mask_changed_late(self.cycles, true),
        }
    }
}
