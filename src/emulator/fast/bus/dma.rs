//! Both DMA units, cycle by cycle (nesdev wiki, "DMA").
//!
//! A DMA halts the CPU in a read cycle, which the CPU then repeats. It reads on even cycles (get) and writes on odd
//! ones (put). The sprite unit moves 256 bytes from a page to $2004; the sample unit reads one byte after a halt
//! and a dummy cycle, and goes first when both want the same cycle.
//!
//! Left to the reference engine: what a halted read of $4000-$401F does to registers there, and aborted sample
//! DMAs.

use super::Bus;

/// Halves (a get, a put) of a sprite DMA.
const OAM_DMA_HALVES: u32 = 512;
/// Cycles that a sample DMA spends before it may read: halt and dummy.
const SAMPLE_WAIT: u8 = 2;

impl Bus {
    /// Before a read at `address`: lets a DMA that is due go first.
    pub(super) fn halt_for_dma(&mut self, address: u16) {
        if self.oam_dma.is_some() || self.sample_due() {
            self.run_dma(address);
        }
    }

    fn sample_due(&self) -> bool {
        self.apu.dma_at() <= self.cycles
    }

    fn run_dma(&mut self, address: u16) {
        let mut page = self.oam_dma.take();
        let mut halves = 0;
        let mut byte = 0;
        let mut sample_wait = SAMPLE_WAIT - u8::from(self.sample_due());
        self.read(address);
        loop {
            let sample_due = self.sample_due();
            if page.is_none() && !sample_due {
                break;
            }
            let get = self.cycles & 1 == 0;
            if sample_due && get && sample_wait == 0 {
                let sample = self.read(self.apu.sample_address());
                self.apu.sample_read(sample, self.cycles - 1);
                sample_wait = SAMPLE_WAIT;
                continue;
            }
            if sample_due {
                sample_wait = sample_wait.saturating_sub(1);
            }
            match page {
                Some(high) if get => {
                    if halves == 0 && self.move_page_at_once(high) {
                        page = None;
                        continue;
                    }
                    byte = self.read(u16::from(high) << 8 | (halves / 2) as u16);
                    halves += 1;
                }
                Some(_) if halves & 1 == 1 => {
                    self.write(0x2004, byte);
                    halves += 1;
                    if halves == OAM_DMA_HALVES {
                        page = None;
                    }
                }
                _ => {
                    self.read(address);
                }
            }
        }
        self.interrupts_changed();
    }

    /// Moves a whole page where nothing can come between: from memory, outside rendering, no sample in sight.
    fn move_page_at_once(&mut self, page: u8) -> bool {
        let after = self.cycles + u64::from(OAM_DMA_HALVES);
        if matches!(page, 0x20..0x60) || self.apu.dma_at() <= after {
            return false;
        }
        let base = u16::from(page) << 8;
        let mut bytes = [0; 256];
        if page < 0x20 {
            bytes.copy_from_slice(&self.ram[usize::from(base & 0x07FF)..][..256]);
        } else {
            bytes = std::array::from_fn(|at| self.peek(base | at as u16));
        }
        if !self.ppu.take_page(&bytes, self.cycles, after) {
            return false;
        }
        self.data_bus = bytes[255];
        self.cycles = after;
        true
    }
}
