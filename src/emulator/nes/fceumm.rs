//! Reads the states that Stable Retro and other users of FCEUmm's libretro core keep: gzip around the core's blob.
//!
//! Source: RL_CONTRACTS RR22 and states saved by stable-retro 1.0.1. Nothing is found by its offset:
//!
//! ```text
//! "FCS\xFF"  u32 bytes that follow the header  u32 version  u32 0        16-byte header, little-endian like all of it
//! sections:  u8 kind  u32 length                                        1, 2 CPU  3 PPU  4 pads  5 sound  16 board
//!   chunks:  4-byte id  u32 length  bytes
//! ```
//!
//! The core saves at the end of its frame, which is where ours ends: the first instruction boundary at or after the start
//! of line 240, `-ICou / 16` dots later. What it does not save (phases that only sound has, the byte that the DMC read
//! ahead) is invisible to software and takes its quiet value. Writing such states is left to the core.

use std::io::Read;

use flate2::read::GzDecoder;
use thiserror::Error;

use super::state::{
    ApuState, ConsoleState, CpuState, DmcState, EnvelopeState, NoiseState, PadsState, PpuState, PulseState,
    TriangleState,
};
use super::timing;

/// More than any FCEUmm state has; a gzip bomb stops here.
const MOST_BYTES: u64 = 4 << 20;
const MAGIC: &[u8; 4] = b"FCS\xFF";
const HEADER_BYTES: usize = 16;
const SECTION_HEAD: usize = 5;
const CHUNK_HEAD: usize = 8;
/// Dots are counted in sixteenths, and a CPU cycle in forty-eighths of itself.
const COUNT_PER_DOT: i32 = 16;
const COUNT_PER_CYCLE: i32 = 48;

// Bits of IQLB, the interrupt lines.
const LINE_NMI_NEXT: u32 = 0x40;
const LINE_NMI: u32 = 0x80;
const LINES_IRQ: u32 = 0x01 | 0x02 | 0x100 | 0x200;

/// What a cartridge expects of a state, apart from the console's own parts.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// The board's name, for messages.
    pub board: &'a str,
    /// Ids of the chunks that hold the board's registers, in the order of `ConsoleState::board`.
    pub registers: &'a [&'a str],
    /// Bytes of work RAM, 0 without.
    pub work_ram: usize,
    /// Bytes of CHR-RAM, 0 without.
    pub chr_ram: usize,
    /// Bytes of name tables.
    pub vram: usize,
}

/// Why bytes are not an FCEUmm state of this cartridge.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FceummError {
    #[error("expected a gzip'd FCEUmm state, found {found}; {hint}")]
    OtherContainer { found: &'static str, hint: &'static str },
    #[error("expected a gzip'd FCEUmm state, found no gzip header but {found:02X?}; use a .state file of Stable Retro")]
    NotGzip { found: Vec<u8> },
    #[error("the gzip data is damaged or cut short ({why}); copy the state file again")]
    BadGzip { why: String },
    #[error(
        "expected FCEUmm's blob (46 43 53 FF) inside the gzip data, found {found:02X?}; \
         states of other emulator cores cannot be read, save it with FCEUmm"
    )]
    OtherCore { found: Vec<u8> },
    #[error(
        "the FCEUmm state is cut short: {what} ends at byte {expected}, the state has {found}; copy the file again"
    )]
    CutShort { what: String, expected: usize, found: usize },
    #[error("the FCEUmm state has no chunk {id} ({what}); it is damaged or of an unknown version of the core")]
    Missing { id: &'static str, what: &'static str },
    #[error("chunk {id} of the FCEUmm state has {found} bytes, expected {expected}; {hint}")]
    WrongSize { id: String, found: usize, expected: usize, hint: &'static str },
    #[error(
        "the FCEUmm state belongs to another board: this game's is {board} with {expected}, the state has {found}; \
         load it with its own ROM"
    )]
    OtherBoard { board: String, expected: String, found: String },
}

/// What begins with these bytes is known and is not a gzip'd FCEUmm state.
const OTHER_CONTAINERS: [(&[u8], &str, &str); 3] = [
    (
        b"#RZIP",
        "RetroArch's compressed container (#RZIP)",
        "switch savestate compression off and gzip the core's state",
    ),
    (b"RASTATE", "RetroArch's container (RASTATE)", "save it with Stable Retro, or gzip the core's own state"),
    (MAGIC, "an FCEUmm state that is not compressed", "gzip the file"),
];

/// The state in the bytes of a .state file.
///
/// # Errors
/// When the bytes are no gzip'd FCEUmm state, damaged, or of a cartridge with other memories or another board.
pub fn read(bytes: &[u8], layout: &Layout) -> Result<ConsoleState, FceummError> {
    console(&Chunks::split(&unzip(bytes)?)?, layout)
}

fn unzip(bytes: &[u8]) -> Result<Vec<u8>, FceummError> {
    if let Some(&(_, found, hint)) = OTHER_CONTAINERS.iter().find(|(start, ..)| bytes.starts_with(start)) {
        return Err(FceummError::OtherContainer { found, hint });
    }
    if !bytes.starts_with(&[0x1F, 0x8B]) {
        return Err(FceummError::NotGzip { found: bytes[..bytes.len().min(4)].to_vec() });
    }
    let mut blob = Vec::new();
    (GzDecoder::new(bytes).take(MOST_BYTES).read_to_end(&mut blob))
        .map_err(|error| FceummError::BadGzip { why: error.to_string() })?;
    Ok(blob)
}

/// The kinds of section that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Cpu = 1,
    CpuMore = 2,
    Ppu = 3,
    Pads = 4,
    Sound = 5,
    Board = 16,
}

struct Chunk<'a> {
    section: u8,
    id: String,
    bytes: &'a [u8],
}

struct Chunks<'a>(Vec<Chunk<'a>>);

impl<'a> Chunks<'a> {
    fn split(blob: &'a [u8]) -> Result<Self, FceummError> {
        if !blob.starts_with(MAGIC) {
            return Err(FceummError::OtherCore { found: blob[..blob.len().min(8)].to_vec() });
        }
        let end = piece(blob, 4, 4, "its header")?;
        let end = HEADER_BYTES.saturating_add(number(end));
        piece(blob, HEADER_BYTES, end - HEADER_BYTES, "its body")?;
        let mut chunks = Vec::new();
        let mut at = HEADER_BYTES;
        while at < end {
            let head = piece(blob, at, SECTION_HEAD, "the head of a section")?;
            let (section, length) = (head[0], number(&head[1..]));
            at += SECTION_HEAD;
            let body = piece(blob, at, length, "a section")?;
            at += length;
            let mut inner = 0;
            while inner < body.len() {
                let head = piece(body, inner, CHUNK_HEAD, "the head of a chunk")?;
                let id: String = head[..4].iter().filter(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect();
                let length = number(&head[4..]);
                inner += CHUNK_HEAD;
                let bytes = piece(body, inner, length, &format!("chunk {id}"))?;
                inner += length;
                chunks.push(Chunk { section, id, bytes });
            }
        }
        Ok(Self(chunks))
    }

    fn find(&self, section: Section, id: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|chunk| chunk.section == section as u8 && chunk.id == id).map(|chunk| chunk.bytes)
    }

    fn array<const N: usize>(&self, section: Section, id: &'static str) -> Result<[u8; N], FceummError> {
        let bytes = self.find(section, id).ok_or(FceummError::Missing { id, what: "a part of the console" })?;
        <[u8; N]>::try_from(bytes).map_err(|_| FceummError::WrongSize {
            id: id.into(),
            found: bytes.len(),
            expected: N,
            hint: "it is damaged or of an unknown version of the core",
        })
    }

    fn byte(&self, section: Section, id: &'static str) -> Result<u8, FceummError> {
        Ok(self.array::<1>(section, id)?[0])
    }

    fn word(&self, section: Section, id: &'static str) -> Result<u16, FceummError> {
        Ok(u16::from_le_bytes(self.array(section, id)?))
    }

    fn long(&self, section: Section, id: &'static str) -> Result<u32, FceummError> {
        Ok(u32::from_le_bytes(self.array(section, id)?))
    }

    /// A memory whose size depends on the cartridge.
    fn memory(&self, section: Section, id: &str, size: usize) -> Result<Vec<u8>, FceummError> {
        let bytes = self.find(section, id).unwrap_or_default();
        if bytes.len() == size {
            return Ok(bytes.to_vec());
        }
        Err(FceummError::WrongSize {
            id: id.into(),
            found: bytes.len(),
            expected: size,
            hint: "it belongs to a cartridge with other memories; load it with its own ROM",
        })
    }
}

fn piece<'a>(bytes: &'a [u8], at: usize, length: usize, what: &str) -> Result<&'a [u8], FceummError> {
    let end = at.saturating_add(length);
    bytes.get(at..end).ok_or_else(|| FceummError::CutShort { what: what.into(), expected: end, found: bytes.len() })
}

/// A little-endian number of four bytes.
fn number(bytes: &[u8]) -> usize {
    bytes[..4].iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
}

/// The low byte of a counter that the core keeps in four.
fn low(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

fn console(chunks: &Chunks, layout: &Layout) -> Result<ConsoleState, FceummError> {
    check_board(chunks, layout)?;
    let cpu = cpu(chunks)?;
    let work_ram = match layout.work_ram {
        0 => None,
        size => Some(chunks.memory(Section::Board, "WRAM", size)?),
    };
    let chr_ram = match layout.chr_ram {
        0 => Vec::new(),
        size => chunks.memory(Section::Board, "CHRR", size)?,
    };
    let registers = layout.registers.iter().filter_map(|id| chunks.find(Section::Board, id));
    Ok(ConsoleState {
        frame_count: 0,
        ppu: ppu(chunks, layout, cpu.cycles)?,
        apu: apu(chunks)?,
        pads: pads(chunks)?,
        ram: chunks.array(Section::Cpu, "RAM")?,
        work_ram,
        chr_ram,
        board: registers.flatten().copied().collect(),
        cpu,
    })
}

/// A state fits when the board's section has this board's chunks and no other.
fn check_board(chunks: &Chunks, layout: &Layout) -> Result<(), FceummError> {
    let memories = [(layout.chr_ram > 0, "CHRR"), (layout.work_ram > 0, "WRAM")];
    let mut expected: Vec<&str> = memories.iter().filter(|(has, _)| *has).map(|&(_, id)| id).collect();
    expected.extend(layout.registers);
    let mut found: Vec<&str> =
        chunks.0.iter().filter(|c| c.section == Section::Board as u8).map(|c| c.id.as_str()).collect();
    expected.sort_unstable();
    found.sort_unstable();
    // The core gives every NROM game work RAM, also one whose header denies it.
    found.retain(|&id| layout.work_ram > 0 || id != "WRAM");
    if expected == found {
        return Ok(());
    }
    let list = |ids: &[&str]| if ids.is_empty() { "no chunks".into() } else { ids.join(" ") };
    let (expected, found) = (list(&expected), list(&found));
    Err(FceummError::OtherBoard { board: layout.board.into(), expected, found })
}

fn cpu(chunks: &Chunks) -> Result<CpuState, FceummError> {
    let p = chunks.byte(Section::Cpu, "P")?;
    let lines = chunks.long(Section::CpuMore, "IQLB")?;
    let interrupts_on = p & 0x04 == 0;
    Ok(CpuState {
        pc: chunks.word(Section::Cpu, "PC")?,
        a: chunks.byte(Section::Cpu, "A")?,
        x: chunks.byte(Section::Cpu, "X")?,
        y: chunks.byte(Section::Cpu, "Y")?,
        s: chunks.byte(Section::Cpu, "S")?,
        p: p & 0xCF | 0x20,
        cycles: u64::from_le_bytes(chunks.array(Section::CpuMore, "TSBS")?),
        jammed: chunks.byte(Section::CpuMore, "JAMM")? != 0,
        data_bus: chunks.byte(Section::Cpu, "DB")?,
        nmi_edge: lines & (LINE_NMI | LINE_NMI_NEXT) != 0,
        nmi_polled: lines & LINE_NMI != 0,
        irq_polled: interrupts_on && lines & LINES_IRQ != 0,
        oam_dma: None,
    })
}

fn ppu(chunks: &Chunks, layout: &Layout, cycles: u64) -> Result<PpuState, FceummError> {
    let [ctrl, mask, status, oam_addr] = chunks.array(Section::Ppu, "PPUR")?;
    let count = i32::from_le_bytes(chunks.array(Section::CpuMore, "ICou")?);
    let dots = u32::try_from((-count).max(0) / COUNT_PER_DOT).unwrap_or(0);
    let (line, dot) = (timing::POST_RENDER_LINE + dots / timing::DOTS_PER_LINE, dots % timing::DOTS_PER_LINE);
    let narrow = |value: u32| u16::try_from(value % timing::DOTS_PER_FRAME).unwrap_or(0);
    let mut palette: [u8; 32] = chunks.array(Section::Ppu, "PRAM")?;
    for value in &mut palette {
        *value &= 0x3F;
    }
    // The core keeps the mirrors of entries 0, 4, 8 and 12 nowhere.
    for entry in [0, 4, 8, 12] {
        palette[16 + entry] = palette[entry];
    }
    Ok(PpuState {
        line: narrow(line),
        dot: narrow(dot),
        odd_frame: chunks.byte(Section::Ppu, "KOOK")? & 1 != 0,
        ctrl,
        mask,
        v: chunks.word(Section::Ppu, "RADD")? & 0x7FFF,
        t: chunks.word(Section::Ppu, "TADD")? & 0x7FFF,
        fine_x: chunks.byte(Section::Ppu, "XOFF")? & 7,
        second_write: chunks.byte(Section::Ppu, "VTGL")? != 0,
        vblank: status & 0x80 != 0,
        sprite_zero_hit: status & 0x40 != 0,
        sprite_overflow: status & 0x20 != 0,
        oam_addr,
        read_buffer: chunks.byte(Section::Ppu, "VBUF")?,
        open_bus: chunks.byte(Section::Ppu, "PGEN")?,
        open_bus_driven: [cycles; 3],
        warming_up: chunks.byte(Section::Ppu, "DEAD")? != 0,
        oam: chunks.array(Section::Ppu, "SPRA")?,
        palette,
        vram: chunks.memory(Section::Ppu, "NTAR", layout.vram)?,
    })
}

fn apu(chunks: &Chunks) -> Result<ApuState, FceummError> {
    let sound = Section::Sound;
    let psg: [u8; 16] = chunks.array(sound, "PSG")?;
    let group = |first: usize| [psg[first], psg[first + 1], psg[first + 2], psg[first + 3]];
    let sweeps: [u8; 2] = chunks.array(sound, "SWCT")?;
    let status = chunks.byte(sound, "SIRQ")?;
    let pulse = |index: usize, length, period, envelope| -> Result<PulseState, FceummError> {
        Ok(PulseState {
            registers: group(index * 4),
            length: low(chunks.long(sound, length)?),
            envelope,
            sweep_reload: false,
            sweep_divider: sweeps[index] & 7,
            period: u16::try_from(chunks.long(sound, period)? & 0x7FF).unwrap_or(0),
        })
    };
    let frame_mode = chunks.byte(sound, "IQFM")? << 6;
    Ok(ApuState {
        pulse: [
            pulse(0, "LEN0", "CRF1", envelope(chunks, "E0D1", "E0DV")?)?,
            pulse(1, "LEN1", "CRF2", envelope(chunks, "E1D1", "E1DV")?)?,
        ],
        triangle: TriangleState {
            registers: group(8),
            length: low(chunks.long(sound, "LEN2")?),
            linear: chunks.byte(sound, "TRIC")?,
            linear_reload: chunks.byte(sound, "TRIM")? != 0,
        },
        noise: NoiseState {
            registers: group(12),
            length: low(chunks.long(sound, "LEN3")?),
            envelope: envelope(chunks, "E2D1", "E2DV")?,
        },
        dmc: dmc(chunks, status)?,
        enabled: chunks.byte(sound, "ENCH")? & 0x0F,
        frame_mode,
        frame_five: frame_mode & 0x80 != 0,
        frame_cycle: frame_cycle(chunks, frame_mode)?,
        frame_restart: 0,
        frame_irq: status & 0x40 != 0,
    })
}

fn envelope(chunks: &Chunks, divider: &'static str, decay: &'static str) -> Result<EnvelopeState, FceummError> {
    Ok(EnvelopeState {
        start: false,
        // It counts down to one, the hardware's divider to zero.
        divider: chunks.byte(Section::Sound, divider)?.saturating_sub(1) & 0x0F,
        decay: chunks.byte(Section::Sound, decay)? & 0x0F,
    })
}

fn dmc(chunks: &Chunks, status: u8) -> Result<DmcState, FceummError> {
    let sound = Section::Sound;
    let level = chunks.byte(sound, "RWDA")? & 0x7F;
    let (address_latch, size_latch) = (chunks.byte(sound, "5ADL")?, chunks.byte(sound, "5SZL")?);
    let until = i32::from_le_bytes(chunks.array(sound, "5ACC")?);
    let address = 0x8000 | chunks.long(sound, "5ADD")? & 0x7FFF;
    Ok(DmcState {
        registers: [chunks.byte(sound, "5FMT")?, level, address_latch, size_latch],
        level,
        address: u16::try_from(address).unwrap_or(0x8000),
        bytes_left: u16::try_from(chunks.long(sound, "5SIZ")? & 0x1FFF).unwrap_or(0),
        buffer: (chunks.byte(sound, "5VDM")? != 0).then_some(0),
        shift: chunks.byte(sound, "5SHF")?,
        bits_left: 8 - (chunks.byte(sound, "5BIT")? & 7),
        silent: chunks.byte(sound, "5VSP")? == 0,
        timer: u16::try_from(until.clamp(1, 428)).unwrap_or(1),
        request_in: 0,
        irq: status & 0x80 != 0,
    })
}

/// The core counts down to the frame sequencer's next step; the hardware counts up from the sequence's start.
fn frame_cycle(chunks: &Chunks, frame_mode: u8) -> Result<u16, FceummError> {
    let last = if frame_mode & 0x80 == 0 { 29_829 } else { 37_281 };
    let step = match chunks.byte(Section::Sound, "FCNT")? & 3 {
        0 => last,
        1 => 7_457,
        2 => 14_913,
        _ => 22_371,
    };
    let until = i32::from_le_bytes(chunks.array(Section::Sound, "FHCN")?) / COUNT_PER_CYCLE;
    Ok(u16::try_from((step - until).clamp(0, last)).unwrap_or(0))
}

fn pads(chunks: &Chunks) -> Result<PadsState, FceummError> {
    let held: [u8; 4] = chunks.array(Section::Pads, "JOYS")?;
    let reads: [u8; 2] = chunks.array(Section::Pads, "JYRB")?;
    // After its eight buttons a pad gives ones.
    let left = |port: usize| match u32::from(reads[port]) {
        0 => held[port],
        count @ 1..8 => held[port] >> count | !(0xFF >> count),
        _ => 0xFF,
    };
    Ok(PadsState {
        held: [held[0], held[1]],
        shift: [left(0), left(1)],
        strobe: chunks.byte(Section::Pads, "LSTS")? & 1 != 0,
    })
}

#[cfg(test)]
mod tests;
