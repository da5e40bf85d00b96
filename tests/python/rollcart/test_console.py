"""`rollcart.Console`: what it gives, what it refuses and how it says so."""

from __future__ import annotations

import copy
import gzip
import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest

import rollcart
from rollcart.errors import ConfigError, RomError, StateError, UnsupportedBoard

# Shows another colour each frame and counts frames in RAM: enough of a game here.
ROM = Path(__file__).resolve().parents[2] / "roms/colours.nes"


def other_game() -> bytes:
    rom = bytearray(ROM.read_bytes())
    rom[0x2000] ^= 0xFF
    return bytes(rom)


def everything(console: rollcart.Console) -> bytes:
    return console.save() + console.rgb().tobytes()


def test_a_rom_comes_as_path_text_or_bytes() -> None:
    consoles = [
        rollcart.Console(rom) for rom in (ROM, str(ROM), ROM.read_bytes(), bytearray(ROM.read_bytes()))
    ]
    for console in consoles:
        console.step(frames=30)
    assert len({everything(console) for console in consoles}) == 1


def test_memories_and_pictures_have_their_documented_form() -> None:
    console = rollcart.Console(ROM)
    console.step(frames=10)
    for array, shape in [
        (console.ram, (2048,)),
        (console.work_ram, (8192,)),
        (console.vram(), (2048,)),
        (console.oam(), (256,)),
        (console.palette_ram(), (32,)),
        (console.frame(), (240, 256)),
        (console.rgb(), (240, 256, 3)),
    ]:
        assert array.dtype == np.uint8 and array.shape == shape and array.flags.c_contiguous
    cpu = console.cpu
    assert cpu.p & 0x30 == 0x20
    assert cpu.cycles > 9 * 29_780  # the first frame after power-on is short
    assert repr(cpu).startswith("CpuRegisters(pc=0x")


def test_arrays_are_copies() -> None:
    console = rollcart.Console(ROM)
    console.step(frames=10)
    before = everything(console)
    for array in (
        console.ram,
        console.vram(),
        console.oam(),
        console.palette_ram(),
        console.frame(),
        console.rgb(),
    ):
        array[:] = 0x55
    assert everything(console) == before


def test_a_hard_reset_is_a_new_console_that_ran_no_frame() -> None:
    console = rollcart.Console(ROM, ram_fill=0x12)
    new = everything(console)
    assert console.frame_count == 0 and not console.frame().any() and (console.ram == 0x12).all()
    console.step(frames=25)
    assert console.frame_count == 25
    console.reset()
    assert everything(console) == new


def test_a_soft_reset_keeps_ram_and_the_frame_count() -> None:
    console = rollcart.Console(ROM)
    console.step(frames=25)
    console.poke(0x0700, 0x99)
    ram = console.ram
    console.reset(soft=True)
    assert np.array_equal(console.ram, ram)
    assert console.frame_count == 25
    console.step(frames=25)
    assert console.peek(0x0700) == 0x99


def test_frames_run_at_once_are_frames_run_one_by_one() -> None:
    at_once, one_by_one = rollcart.Console(ROM), rollcart.Console(ROM)
    at_once.step(3, frames=600, buttons2=0x80)
    for _ in range(600):
        one_by_one.step(3, buttons2=0x80)
    assert everything(at_once) == everything(one_by_one)


def test_a_saved_state_goes_on_as_the_console_did() -> None:
    console, other = rollcart.Console(ROM), rollcart.Console(ROM)
    console.step(frames=100)
    saved = console.save()
    assert saved[:4] == b"RCST"
    other.load(saved)
    assert other.save() == saved and other.frame_count == 100
    for _ in range(50):
        console.step(1)
        other.step(1)
        assert everything(console) == everything(other)


def test_a_state_brings_its_work_ram_whatever_a_console_was_filled_with() -> None:
    for fill in (0xFF, 0x00, 0x5A):
        saved = rollcart.Console(ROM, ram_fill=fill).save()
        for other_fill in (0x00, 0xFF):
            other = rollcart.Console(ROM, ram_fill=other_fill)
            other.poke(0x6123, 0x77)
            other.load(saved)
            assert (other.work_ram == fill).all() and other.save() == saved


def test_the_registers_are_also_a_row_in_their_documented_order() -> None:
    console = rollcart.Console(ROM)
    console.step(frames=3)
    cpu = console.cpu
    assert tuple(cpu) == (cpu.pc, cpu.a, cpu.x, cpu.y, cpu.s, cpu.p, cpu.cycles) and len(cpu) == 7
    with pytest.raises(IndexError):
        cpu[7]


def test_any_object_of_bytes_is_a_state() -> None:
    console = rollcart.Console(ROM)
    console.step(frames=9)
    saved = console.save()
    for form in (bytearray, memoryview):
        other = rollcart.Console(form(ROM.read_bytes()))
        other.load(form(saved))
        assert other.save() == saved


def test_peek_and_poke_reach_memory_and_its_mirrors_without_side_effects() -> None:
    console = rollcart.Console(ROM)
    console.step(frames=50)
    rom = ROM.read_bytes()[16:]
    console.poke(0x0123, 0x45)
    console.poke(0x6ABC, 0x67)
    assert (console.peek(0x0123), console.peek(0x1923), console.ram[0x123]) == (0x45, 0x45, 0x45)
    assert (console.peek(0x6ABC), console.work_ram[0xABC]) == (0x67, 0x67)
    assert [console.peek(addr) for addr in (0x8000, 0xC000, 0xFFFF)] == [rom[0], rom[0], rom[0x3FFF]]
    before = everything(console)
    for addr in range(0x2000, 0x4020):
        console.peek(addr)
    assert everything(console) == before


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda console: console.step(256), "buttons is 256"),
        (lambda console: console.step(-1), "buttons is -1"),
        (lambda console: console.step(0, 1, 999), "buttons2 is 999"),
        (lambda console: console.step(frames=0), "frames is 0"),
        (lambda console: console.step(frames=-3), "frames is -3"),
        (lambda console: console.peek(0x10000), "addr is 65536"),
        (lambda console: console.peek(-1), "addr is -1"),
        (lambda console: console.poke(0x0800, 1), "$0800"),
        (lambda console: console.poke(0x2007, 1), "$2007"),
        (lambda console: console.poke(0x8000, 1), "$8000"),
        (lambda console: console.poke(0x0000, 256), "value is 256"),
        (lambda console: console.step(2**70), "at most 64 bits"),
        (lambda console: console.peek(-(2**70)), "at most 64 bits"),
    ],
)
def test_values_out_of_range_are_refused_and_change_nothing(call: object, said: str) -> None:
    console = rollcart.Console(ROM)
    console.step(frames=5)
    before = everything(console)
    with pytest.raises(ValueError, match="expected") as refused:
        call(console)  # type: ignore[operator]
    assert isinstance(refused.value, ConfigError)
    assert said in str(refused.value)
    assert everything(console) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "reference"}, "later"),
        ({"engine": "quick"}, "quick"),
        ({"ram_fill": 256}, "ram_fill is 256"),
        ({"ram_fill": -1}, "ram_fill is -1"),
    ],
)
def test_options_that_are_not_there_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        rollcart.Console(ROM, **options)


def test_files_that_are_no_rom_are_told_apart(tmp_path: Path) -> None:
    rom = ROM.read_bytes()
    mapper_5 = bytearray(rom)
    mapper_5[6] |= 0x50
    for bytes_, error, said in [
        (b"", RomError, "NES"),
        (b"PK\x03\x04" + rom, RomError, "NES"),
        (rom[:10], RomError, "NES|header|cut"),
        (rom[:-1], RomError, "cut short"),
        (bytes(mapper_5), UnsupportedBoard, "MMC5"),
    ]:
        with pytest.raises(error, match=said):
            rollcart.Console(bytes_)
    assert issubclass(UnsupportedBoard, ValueError) and issubclass(RomError, ValueError)
    with pytest.raises(FileNotFoundError, match=r"absent\.nes"):
        rollcart.Console(tmp_path / "absent.nes")
    with pytest.raises(TypeError, match="path"):
        rollcart.Console(7)  # type: ignore[arg-type]


def test_a_state_of_another_game_is_refused_with_both_digests() -> None:
    console = rollcart.Console(other_game())
    saved = rollcart.Console(ROM).save()
    before = everything(console)
    with pytest.raises(StateError) as refused:
        console.load(saved)
    for rom in (ROM.read_bytes(), other_game()):
        assert hashlib.sha1(rom[16:]).hexdigest() in str(refused.value)
    assert everything(console) == before


def test_damaged_states_are_refused_and_change_nothing() -> None:
    console = rollcart.Console(ROM)
    console.step(frames=40)
    saved = console.save()
    before = everything(console)
    cuts = [saved[:length] for length in range(0, len(saved), 61)]
    for damaged in [
        *cuts,
        saved + b"\0",
        b"#RZIPv1#",
        b"RASTATE\1",
        gzip.compress(b"other core"),
        gzip.compress(b""),
    ]:
        with pytest.raises(StateError):
            console.load(damaged)
        assert everything(console) == before


def test_any_single_damaged_byte_is_refused_or_leads_to_a_console_that_runs() -> None:
    saved = rollcart.Console(ROM).save()
    for at in range(400):
        console = rollcart.Console(ROM)
        damaged = bytearray(saved)
        damaged[at] ^= 0xFF
        try:
            console.load(bytes(damaged))
        except StateError:
            continue
        console.step(frames=2)


def test_u33_copying_and_pickling_a_console_point_at_save_and_load() -> None:
    console = rollcart.Console(ROM)
    rules = rollcart.GameRules('{"info": {}}', "{}")
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"Console cannot be .* save\(\) and load\(\)"):
            use(console)
        with pytest.raises(TypeError, match=r"GameRules cannot be .* make them with the same texts"):
            use(rules)


def test_the_home_folder_of_a_rom_may_be_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a rom \u00e9.nes").write_bytes(Path(ROM).read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("~/a rom \u00e9.nes", Path("~/a rom \u00e9.nes")):
        assert rollcart.Console(path).frame_count == 0
