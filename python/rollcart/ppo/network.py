"""Policy and value networks: plain functions over a dictionary of arrays.

"ram": one dense layer over bits, then one of its own for policy and for value. "image": three
convolutions (after Mnih et al., 2015, half as wide) and one dense layer. Weights begin orthogonal, the last
policy layer near 0, so that the first policy is near uniform.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from rollcart.errors import ConfigError

Params = dict[str, Any]

# (name, output channels, kernel, stride)
_CONVOLUTIONS = (("conv0", 16, 8, 4), ("conv1", 32, 4, 2), ("conv2", 32, 3, 1))
_POLICY_GAIN, _HIDDEN_GAIN, _VALUE_GAIN = 0.01, 2.0**0.5, 1.0


def init(seed: int, obs_shape: tuple[int, ...], actions: int, hidden: int) -> Params:
    """First weights, float32. obs_shape: (bits,) or (channels, rows, columns)."""
    layers: list[tuple[str, tuple[int, ...], float]] = []
    if len(obs_shape) == 1:
        layers += [("dense", (obs_shape[0], hidden), _HIDDEN_GAIN)]
        layers += [(f"{head}0", (hidden, hidden), _HIDDEN_GAIN) for head in ("policy", "value")]
    elif len(obs_shape) == 3:
        channels, rows, columns = obs_shape
        for name, outputs, kernel, stride in _CONVOLUTIONS:
            layers.append((name, (outputs, channels, kernel, kernel), _HIDDEN_GAIN))
            channels, rows, columns = outputs, (rows - kernel) // stride + 1, (columns - kernel) // stride + 1
        layers.append(("dense", (channels * rows * columns, hidden), _HIDDEN_GAIN))
    else:
        raise ConfigError(f"the networks read RAM or images; found observations of shape {obs_shape}")
    layers += [("policy", (hidden, actions), _POLICY_GAIN), ("value", (hidden, 1), _VALUE_GAIN)]
    rng = np.random.default_rng(seed)
    params: Params = {}
    for name, shape, gain in layers:
        outputs = shape[0] if len(shape) == 4 else shape[1]
        weights = _orthogonal(rng, outputs, int(np.prod(shape)) // outputs)
        weights = weights.reshape(shape) if len(shape) == 4 else weights.T
        params[f"{name}.w"] = jnp.asarray(gain * weights, jnp.float32)
        params[f"{name}.b"] = jnp.zeros(outputs, jnp.float32)
    return params


def _orthogonal(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    """Rows that are orthonormal, or columns that are where there are fewer of them."""
    tall = (max(rows, columns), min(rows, columns))
    q, r = np.linalg.qr(rng.standard_normal(tall))
    q *= np.sign(np.diag(r))
    return q if rows >= columns else q.T


def apply(params: Params, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logits [batch, actions] and values [batch] of inputs uint8[batch, ...]: bits or pictures."""
    x = obs.astype(jnp.float32)
    if obs.ndim == 2:
        x = jax.nn.relu(_dense(params, "dense", x))
        policy, value = (jax.nn.relu(_dense(params, f"{head}0", x)) for head in ("policy", "value"))
        return _dense(params, "policy", policy), _dense(params, "value", value)[:, 0]
    x = x / 255.0
    for name, _, _, stride in _CONVOLUTIONS:
        x = jax.lax.conv_general_dilated(
            x, params[f"{name}.w"], (stride, stride), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        x = jax.nn.relu(x + params[f"{name}.b"][None, :, None, None])
    x = jax.nn.relu(_dense(params, "dense", x.reshape(len(x), -1)))
    return _dense(params, "policy", x), _dense(params, "value", x)[:, 0]


def _dense(params: Params, name: str, x: jax.Array) -> jax.Array:
    out: jax.Array = x @ params[f"{name}.w"] + params[f"{name}.b"]
    return out


forward = jax.jit(apply)
"""`apply`, compiled once for each shape."""
