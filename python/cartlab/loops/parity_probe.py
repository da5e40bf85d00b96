"""Compares one kernel with its baseline: `python parity_probe.py SPEC.json`, run in the experiment's folder.

A script of its own: it runs by path beside the candidate's code and imports the standard library, what the
fixture brings, and torch or numpy only where the outputs are theirs. One line says how it went:
`PARITY_OK target=<name>` on stdout with exit code 0, or `PARITY_FAIL target=<name> kind=<kind> detail=<...>`
on stderr with exit code 1, never a bare traceback. The kinds are signature, shape, numerical and error.

The fixture is called once for each seed; seeds are the harness's, set in random, numpy and torch before the
call. A fixture that takes a `seed` argument gets it. A kernel that changes its inputs or hands one of them
out as its result is not the same function as one that does not.
"""

import importlib
import inspect
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_DETAIL = 200


class Fail(Exception):
    """kind and detail of a failure."""


def load(spec: str) -> Any:
    """The object that `module:attr` names."""
    module, attr = spec.split(":", 1)
    found = importlib.import_module(module)
    for part in attr.split("."):
        found = getattr(found, part)
    return found


def seeded(fixture: Callable[..., Any], seed: int) -> tuple[Any, Any]:
    """The fixture's (args, kwargs) under one seed."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    takes_seed = "seed" in inspect.signature(fixture).parameters
    args, kwargs = fixture(seed=seed) if takes_seed else fixture()
    return args, kwargs


def kind_of(value: Any) -> str | None:
    """`torch`, `numpy`, or None for what is no tensor."""
    for name, attr in (("torch", "Tensor"), ("numpy", "ndarray")):
        module = sys.modules.get(name)
        if module is not None and isinstance(value, getattr(module, attr)):
            return name
    return None


def copied(value: Any) -> Any:
    """A value whose tensors are copies."""
    kind = kind_of(value)
    if kind == "torch":
        return value.detach().clone()
    if kind == "numpy":
        return value.copy()
    if isinstance(value, (list, tuple)):
        return type(value)(copied(one) for one in value)
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    return value


def tensors(value: Any) -> Iterator[Any]:
    """All tensors in a value."""
    if kind_of(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors(one)


def same_memory(a: Any, b: Any) -> bool:
    """Do two tensors share their storage."""
    if kind_of(a) != kind_of(b):
        return False
    if kind_of(a) == "torch":
        return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.numel() > 0)
    return bool(sys.modules["numpy"].shares_memory(a, b))


def unequal(a: Any, b: Any, atol: float, rtol: float) -> str:
    """Why two tensors of one shape and dtype differ by more than the tolerance, or an empty text."""
    if kind_of(a) == "torch":
        try:
            sys.modules["torch"].testing.assert_close(a, b, atol=atol, rtol=rtol)
        except AssertionError as error:
            return str(error).splitlines()[0]
        return ""
    numpy = sys.modules["numpy"]
    if a.dtype.kind not in "biufc":
        return "" if numpy.array_equal(a, b) else "elements differ"
    wide = numpy.complex128 if a.dtype.kind == "c" else numpy.float64
    x, y = a.astype(wide), b.astype(wide)
    wrong = ~numpy.isclose(x, y, atol=atol, rtol=rtol)
    if not wrong.any():
        return ""
    worst = (
        float(numpy.nanmax(numpy.abs(x - y)[wrong])) if not numpy.isnan(x - y)[wrong].all() else float("nan")
    )
    return f"{int(wrong.sum())} of {wrong.size} elements differ, by up to {worst:g}"


def compare(spec: dict[str, Any], seed: int) -> None:
    """One seed; raises Fail."""
    new, base, fixture = load(spec["new_module"]), load(spec["baseline_module"]), load(spec["fixture"])
    if str(inspect.signature(new)) != str(inspect.signature(base)):
        raise Fail("signature", f"new{inspect.signature(new)} vs baseline{inspect.signature(base)}")
    args, kwargs = seeded(fixture, seed)
    own_args, own_kwargs = copied(args), copied(kwargs)
    out_new, out_base = new(*args, **kwargs), base(*own_args, **own_kwargs)
    fresh_args, fresh_kwargs = seeded(fixture, seed)
    kind = kind_of(out_new)
    if kind is None or kind != kind_of(out_base):
        raise Fail("shape", "non-tensor output")
    if out_new.shape != out_base.shape:
        raise Fail("shape", f"shape {tuple(out_new.shape)} vs {tuple(out_base.shape)}")
    if out_new.dtype != out_base.dtype:
        raise Fail("shape", f"dtype {out_new.dtype} vs {out_base.dtype}")
    if why := unequal(out_new, out_base, spec["atol"], spec["rtol"]):
        raise Fail("numerical", why)
    # What the baseline leaves alone and hands out anew, the kernel has to as well.
    triples = zip(
        tensors((args, kwargs)),
        tensors((own_args, own_kwargs)),
        tensors((fresh_args, fresh_kwargs)),
        strict=False,
    )
    for at, (mine, theirs, clean) in enumerate(triples):
        if mine.shape == clean.shape and not unequal(theirs, clean, 0, 0) and unequal(mine, clean, 0, 0):
            raise Fail("numerical", f"input {at} was changed in place")
        if same_memory(out_new, mine) and not same_memory(out_base, theirs):
            raise Fail("numerical", f"the output shares memory with input {at}")


def main(path: str) -> int:
    """Read the target and the seeds, compare, say one line."""
    spec = json.loads(Path(path).read_text(encoding="utf-8"))
    # The experiment's folder comes first, as in the document's own check; ours is not on the path at all.
    sys.path[0] = str(Path.cwd())
    try:
        for seed in spec["seeds"]:
            compare(spec, seed)
    except Fail as fail:
        kind, detail = fail.args
    except BaseException as error:
        kind, detail = "error", f"{type(error).__name__}: {error}"
    else:
        print(f"PARITY_OK target={spec['name']}")
        return 0
    detail = " ".join(str(detail).split())[:_DETAIL]
    print(f"PARITY_FAIL target={spec['name']} kind={kind} detail={detail}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
