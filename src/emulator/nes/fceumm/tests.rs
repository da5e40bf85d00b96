//! A blob is put together chunk by chunk here, in another order than the core's and with chunks that nobody knows, so
//! that nothing can be read by its offset.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{FceummError, Layout, read};

const NROM: Layout = Layout { board: "NROM", registers: &[], work_ram: 0x2000, chr_ram: 0, vram: 0x800 };

type Sections = Vec<(u8, Vec<(&'static str, Vec<u8>)>)>;

/// The least that the reader needs, with values that tell the fields apart.
fn sections() -> Sections {
    let long = |value: u32| value.to_le_bytes().to_vec();
    let count = |value: i32| value.to_le_bytes().to_vec();
    vec![
        (16, vec![("WRAM", vec![0x77; 0x2000])]),
        (
            5,
            vec![
                ("FHCN", count(100 * 48)),
                ("FCNT", vec![2]),
                ("IQFM", vec![0]),
                ("PSG", (0x30..0x40).collect()),
                ("ENCH", vec![0x1F]),
                ("TRIM", vec![1]),
                ("TRIC", vec![9]),
                ("E0D1", vec![4]),
                ("E1D1", vec![1]),
                ("E2D1", vec![16]),
                ("E0DV", vec![15]),
                ("E1DV", vec![2]),
                ("E2DV", vec![3]),
                ("LEN0", long(10)),
                ("LEN1", long(11)),
                ("LEN2", long(12)),
                ("LEN3", long(13)),
                ("SWCT", vec![1, 2]),
                ("CRF1", long(0x123)),
                ("CRF2", long(0x456)),
                ("SIRQ", vec![0x40]),
                ("5ACC", count(55)),
                ("5BIT", vec![3]),
                ("5ADD", long(0x4321)),
                ("5SIZ", long(17)),
                ("5SHF", vec![0xA5]),
                ("5VDM", vec![1]),
                ("5VSP", vec![1]),
                ("5SZL", vec![1]),
                ("5ADL", vec![2]),
                ("5FMT", vec![0x4F]),
                ("RWDA", vec![0x22]),
                ("NEW!", vec![1, 2, 3]),
            ],
        ),
        (99, vec![("WHAT", vec![0; 5])]),
        (
            3,
            vec![
                ("NTAR", (0..0x800).map(|at| (at % 251) as u8).collect()),
                ("PRAM", (0..32).collect()),
                ("SPRA", (0..=255).collect()),
                ("PPUR", vec![0x90, 0x1E, 0x40, 7]),
                ("KOOK", vec![1]),
                ("DEAD", vec![0]),
                ("PSPL", vec![0]),
                ("XOFF", vec![5]),
                ("VTGL", vec![1]),
                ("RADD", vec![0x34, 0x92]),
                ("TADD", vec![0x78, 0x56]),
                ("VBUF", vec![0x99]),
                ("PGEN", vec![0x88]),
            ],
        ),
        (4, vec![("JYRB", vec![2, 8]), ("JOYS", vec![0x81, 1, 0, 0]), ("LSTS", vec![1])]),
        (
            2,
            vec![
                ("JAMM", vec![0]),
                ("IQLB", long(0x200)),
                ("ICoa", long(0)),
                ("ICou", count(-5 * 16)),
                ("TSBS", 123_456_789u64.to_le_bytes().to_vec()),
            ],
        ),
        (
            1,
            vec![
                ("RAM", (0..0x800).map(|at| (at % 253) as u8).collect()),
                ("DB", vec![0x42]),
                ("P", vec![0x53]),
                ("S", vec![0xF0]),
                ("Y", vec![3]),
                ("X", vec![2]),
                ("A", vec![1]),
                ("PC", vec![0x16, 0x80]),
            ],
        ),
    ]
}

fn blob(sections: &Sections) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, chunks) in sections {
        let mut run = Vec::new();
        for (id, bytes) in chunks {
            let mut name = [0; 4];
            name[..id.len()].copy_from_slice(id.as_bytes());
            run.extend_from_slice(&name);
            run.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            run.extend_from_slice(bytes);
        }
        body.push(*kind);
        body.extend_from_slice(&(run.len() as u32).to_le_bytes());
        body.extend_from_slice(&run);
    }
    let mut out = b"FCS\xFF".to_vec();
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&9813u32.to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes());
    out.extend_from_slice(&body);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn chunk<'a>(sections: &'a mut Sections, id: &str) -> &'a mut Vec<u8> {
    &mut sections.iter_mut().flat_map(|(_, chunks)| chunks).find(|(name, _)| *name == id).unwrap().1
}

#[test]
fn every_part_of_the_console_is_found_by_its_chunk() {
    let state = read(&gzip(&blob(&sections())), &NROM).unwrap();
    let cpu = &state.cpu;
    assert_eq!((cpu.pc, cpu.a, cpu.x, cpu.y, cpu.s, cpu.p), (0x8016, 1, 2, 3, 0xF0, 0x63));
    assert_eq!((cpu.cycles, cpu.data_bus, cpu.irq_polled, cpu.nmi_edge), (123_456_789, 0x42, true, false));
    assert_eq!(state.ram[0x700], (0x700 % 253) as u8);
    assert_eq!(state.work_ram, Some(vec![0x77; 0x2000]));
    let ppu = &state.ppu;
    assert_eq!((ppu.line, ppu.dot, ppu.odd_frame), (240, 5, true));
    assert_eq!((ppu.ctrl, ppu.mask, ppu.oam_addr), (0x90, 0x1E, 7));
    assert_eq!((ppu.vblank, ppu.sprite_zero_hit, ppu.sprite_overflow), (false, true, false));
    assert_eq!((ppu.v, ppu.t, ppu.fine_x, ppu.second_write), (0x1234, 0x5678, 5, true));
    assert_eq!((ppu.read_buffer, ppu.open_bus, ppu.warming_up), (0x99, 0x88, false));
    assert_eq!((ppu.palette[0x10], ppu.palette[0x11], ppu.palette[0x1C]), (0, 0x11, 0x0C));
    assert_eq!(ppu.oam[200], 200);
    let apu = &state.apu;
    assert_eq!((apu.enabled, apu.frame_mode, apu.frame_irq), (0x0F, 0, true));
    assert_eq!(apu.frame_cycle, 14_913 - 100);
    assert_eq!(apu.pulse[1].registers, [0x34, 0x35, 0x36, 0x37]);
    assert_eq!((apu.pulse[1].length, apu.pulse[1].period, apu.pulse[1].sweep_divider), (11, 0x456, 2));
    assert_eq!((apu.pulse[0].envelope.divider, apu.pulse[0].envelope.decay), (3, 15));
    assert_eq!((apu.triangle.length, apu.triangle.linear, apu.triangle.linear_reload), (12, 9, true));
    assert_eq!((apu.noise.length, apu.noise.registers), (13, [0x3C, 0x3D, 0x3E, 0x3F]));
    let dmc = &apu.dmc;
    assert_eq!((dmc.address, dmc.bytes_left, dmc.bits_left, dmc.timer), (0xC321, 17, 5, 55));
    assert_eq!((dmc.registers, dmc.level, dmc.irq, dmc.silent), ([0x4F, 0x22, 2, 1], 0x22, false, false));
    assert_eq!(state.pads.held, [0x81, 1]);
    assert_eq!((state.pads.shift, state.pads.strobe), ([0xE0, 0xFF], true));
}

#[test]
fn other_containers_are_named() {
    let raw = blob(&sections());
    for (bytes, named) in
        [(&b"#RZIPv\x01#rest"[..], "#RZIP"), (&b"RASTATE\x01rest"[..], "RASTATE"), (&raw[..], "not compressed")]
    {
        let text = read(bytes, &NROM).unwrap_err().to_string();
        assert!(text.contains(named), "{text}");
    }
    assert_eq!(read(b"PK\x03\x04", &NROM), Err(FceummError::NotGzip { found: b"PK\x03\x04".to_vec() }));
    assert_eq!(read(b"", &NROM), Err(FceummError::NotGzip { found: Vec::new() }));
    let other = read(&gzip(b"SNES9X state"), &NROM);
    assert_eq!(other, Err(FceummError::OtherCore { found: b"SNES9X s".to_vec() }));
}

#[test]
fn a_cut_anywhere_is_an_error_and_never_a_panic() {
    let whole = blob(&sections());
    for length in (0..600).chain((600..whole.len()).step_by(97)) {
        assert!(read(&gzip(&whole[..length]), &NROM).is_err(), "cut at {length}");
    }
    let zipped = gzip(&whole);
    for length in 0..zipped.len() {
        assert!(read(&zipped[..length], &NROM).is_err(), "gzip cut at {length}");
    }
}

#[test]
fn lengths_that_reach_past_the_end_are_errors() {
    let whole = blob(&sections());
    for at in (4..8).chain(17..21).chain(25..29) {
        let mut damaged = whole.clone();
        damaged[at] = 0xFF;
        assert!(read(&gzip(&damaged), &NROM).is_err(), "length byte {at}");
    }
}

#[test]
fn a_missing_or_misshapen_chunk_is_named() {
    let mut without = sections();
    for (_, chunks) in &mut without {
        chunks.retain(|(id, _)| *id != "KOOK");
    }
    let text = read(&gzip(&blob(&without)), &NROM).unwrap_err().to_string();
    assert!(text.contains("KOOK"), "{text}");
    let mut short = sections();
    chunk(&mut short, "SPRA").pop();
    let text = read(&gzip(&blob(&short)), &NROM).unwrap_err().to_string();
    assert!(text.contains("SPRA") && text.contains("255") && text.contains("256"), "{text}");
}

#[test]
fn a_state_of_another_board_is_refused_by_name() {
    let mut mmc1 = sections();
    mmc1[0].1.push(("DREG", vec![0; 4]));
    let text = read(&gzip(&blob(&mmc1)), &NROM).unwrap_err().to_string();
    assert!(text.contains("NROM") && text.contains("DREG"), "{text}");
    let with_chr_ram = Layout { chr_ram: 0x2000, ..NROM };
    let text = read(&gzip(&blob(&sections())), &with_chr_ram).unwrap_err().to_string();
    assert!(text.contains("CHRR"), "{text}");
}
