"""Runs a command that may write only below given folders, and that cannot read below hidden ones:
`python -I landlock.py [--hide DIR | --read DIR]... DIR... -- COMMAND`.

A script of its own, run by path in the process that is to be confined, so that it needs nothing but the
standard library. Linux's Landlock is kept by the kernel for the process and all its children. It knows
allowed places only, so hiding a folder means to allow whatever lies beside it and beside each folder above
it: those folders themselves cannot be listed, and what appears in them later cannot be read. A writable
folder, or one for reading, may lie in a hidden one. `python -I landlock.py` alone prints the kernel's version
of it, 0 where there is none.

Source: the kernel's userspace API documentation, "Landlock: unprivileged access control".
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVS = 38
# WRITE_FILE, REMOVE_*, MAKE_*; then REFER from version 2 and TRUNCATE from version 3 on.
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_BASE = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
# From version 6 on: no signal to a process outside, so that the harness cannot be killed.
_SCOPE_SIGNAL = 1 << 1

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


def version() -> int:
    """The kernel's Landlock version, 0 where it has none or it is switched off."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def beside(hidden: list[str]) -> list[str]:
    """What has to be allowed for reading so that all but the hidden folders is: the entries beside each of
    them and beside the folders above. Links are left out: where they lead is allowed or hidden by itself.
    """
    places = [Path(path).resolve() for path in hidden]
    inner = {str(above) for place in places for above in place.parents}
    closed = {*map(str, places), *inner}
    found = []
    for folder in sorted(inner):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue  # nobody reads there anyway
        found += [e.path for e in entries if not e.is_symlink() and e.path not in closed]
    return found


def confine(folders: list[str], hidden: list[str], readable: list[str]) -> None:
    """From now on this process writes only below `folders` and reads nothing below `hidden` but what lies
    below `folders` and `readable`. OSError where the kernel refuses.
    """
    abi = version()
    access = _BASE | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    reading = _READ if hidden else 0
    rules = _Ruleset(access | reading, 0, _SCOPE_SIGNAL if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    for folder in folders:
        _allow(ruleset, folder, access | reading)
    for place in [*readable, *beside(hidden)] if hidden else ():
        try:
            _allow(ruleset, place, reading)
        except OSError:
            continue  # gone since it was listed, or nothing that can be opened
    if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, place: str, wanted: int) -> None:
    fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            wanted &= _WRITE_FILE | _TRUNCATE | _EXECUTE | _READ_FILE
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Beneath(wanted, fd)), 0)
    finally:
        os.close(fd)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def main(words: list[str]) -> None:
    """The command line above."""
    if not words:
        print(version())
        return
    at = words.index("--")
    places: list[str] = words[:at]
    asked: dict[str, list[str]] = {"--hide": [], "--read": []}
    while places and places[0] in asked:
        asked[places[0]].append(places[1])
        places = places[2:]
    confine(places, asked["--hide"], asked["--read"])
    os.execvp(words[at + 1], words[at + 1 :])


if __name__ == "__main__":
    main(sys.argv[1:])
