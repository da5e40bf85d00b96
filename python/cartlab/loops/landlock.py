"""Runs a command that may write only below given folders: `python -I landlock.py DIR... -- COMMAND`.

A script of its own, run by path in the process that is to be confined, so that it needs nothing but the
standard library. Linux's Landlock is kept by the kernel for the process and all its children; reading stays
free. `python -I landlock.py` alone prints the kernel's version of it, 0 where there is none.

Source: the kernel's userspace API documentation, "Landlock: unprivileged access control".
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVS = 38
# WRITE_FILE, REMOVE_*, MAKE_*; then REFER from version 2 and TRUNCATE from version 3 on.
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
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


def confine(folders: list[str]) -> None:
    """From now on this process writes only below `folders`. OSError where the kernel refuses."""
    abi = version()
    access = _BASE | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    rules = _Ruleset(access, 0, _SCOPE_SIGNAL if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    for folder in folders:
        fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        allowed = access if is_folder else access & (_WRITE_FILE | _TRUNCATE)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Beneath(allowed, fd)), 0)
        os.close(fd)
    if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


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
    confine(words[:at])
    os.execvp(words[at + 1], words[at + 1 :])


if __name__ == "__main__":
    main(sys.argv[1:])
