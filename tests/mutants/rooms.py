"""Which tests hold the rules of which file: `make mutants` tries a removal against these alone.

To add a room: a row of what it is (a file or a folder), the folder of its tests below tests/python, and their
names, quick ones first; for Rust also `cargo:FILTER`, the unit tests whose paths begin so.
"""

from __future__ import annotations

ROOMS: dict[str, tuple[str, ...]] = {}


def _room(what: str, folder: str, tests: str) -> None:
    ROOMS[what] = tuple(
        name if name.startswith("cargo:") else f"tests/python/{folder}/test_{name}.py"
        for name in tests.split()
    )


_room("python/cartlab/decide.py", "cartlab", "decide verify")
_room(
    "python/cartlab/ledger",
    "cartlab",
    "ledger glance verify exchange company round round_records cli_records cli_edges faults",
)
_room(
    "python/cartlab/measure",
    "cartlab",
    "clocks contention witnesses commands measure layouts adversary legacy_run adversary_outside",
)
_room(
    "python/cartlab/sources",
    "cartlab",
    "ref_rules export_rules build_rules tool_rules lineage sources layouts checks adversary cli_edges",
)

# The environment. Rows of files come before the row of their folder: the first that fits is taken.
_LANES = "vec_infos vec_autoreset rg_every_mode vec_observe vec_snapshot vec_seeding vec_sending vec_life"
_room("src/vec_env/observe", "rollcart", "cargo:vec_env::observe vec_observe vec_spaces retro_parity")
_room("src/vec_env/observe.rs", "rollcart", "vec_observe cargo:vec_env::observe user_reports vec_sequences")
_room("src/vec_env/config", "rollcart", "cargo:vec_env::config vec_spaces vec_observe vec_autoreset")
_room(
    "src/vec_env/config.rs",
    "rollcart",
    "cargo:vec_env::config vec_spaces vec_observe vec_autoreset retro_parity",
)
_room("src/vec_env/actions.rs", "rollcart", "cargo:vec_env::actions vec_spaces retro_parity")
_room("src/vec_env/rng.rs", "rollcart", "cargo:vec_env::rng vec_seeding")
_room("src/vec_env/crew.rs", "rollcart", "cargo:vec_env::crew vec_life")
_room("src/vec_env/deal.rs", "rollcart", "cargo:vec_env::deal vec_seeding vec_life")
_room("src/vec_env/threads.rs", "rollcart", "cargo:vec_env::threads vec_life user_reports")
_room("src/vec_env/log.rs", "rollcart", "lane_movies")
_room("src/vec_env/snapshot.rs", "rollcart", "vec_snapshot game_rules vec_sequences")
_room("src/vec_env/kept.rs", "rollcart", "vec_snapshot game_rules vec_sequences lane_movies")
_room(
    "src/vec_env",
    "rollcart",
    f"{_LANES} vec_lives user_reports discovery scripts game_rules lane_movies vec_sequences retro_parity",
)
_room("python/rollcart/mixed_env.py", "rollcart", "vec_mixed")
_room("python/rollcart/spaces.py", "rollcart", "vec_spaces vec_sending")
_room(
    "python/rollcart/_buffers.py", "rollcart", "vec_observe vec_spaces vec_snapshot vec_gymnasium vec_sending"
)
_room("python/rollcart/_traffic.py", "rollcart", "vec_sending puffer_lanes")
_room("python/rollcart/_sending.py", "rollcart", "vec_sending puffer_lanes")
_room(
    "python/rollcart/_setup.py", "rollcart", "vec_seeding vec_spaces vec_snapshot games vec_mixed vec_infos"
)
_room("python/rollcart/env.py", "rollcart", "vec_gymnasium vec_spaces user_reports")
_room(
    "python/rollcart/vector_env.py",
    "rollcart",
    f"{_LANES} vec_lives user_reports vec_spaces vec_gymnasium mistakes lane_movies vec_mixed",
)


# Rules whose removal changes nothing that anybody could see: (file, what the runner calls it) -> why. These
# are not drawn.
EQUIVALENT: dict[tuple[str, str], str] = {
    ("python/cartlab/sources/lineage.py", "operand: tip not in covered"): "saves a second walk down a line",
}


def room_of(file: str) -> str | None:
    """The row that a file lies in."""
    return next((room for room in ROOMS if file == room or file.startswith(room + "/")), None)
