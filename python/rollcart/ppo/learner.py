"""The update of PPO: clipped surrogate loss over shuffled minibatches, some epochs, in one compiled call.

Masked rows (an environment's resets) weigh nothing in any mean. Advantages are normalised in each minibatch
over its rows that count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rollcart.ppo import network
from rollcart.ppo.settings import Settings


class Batch(NamedTuple):
    """R rows: obs uint8[R, ...], everything else [R]; mask 1 where a row is a transition, 0 where not."""

    obs: Any
    actions: Any
    log_probs: Any
    advantages: Any
    returns: Any
    mask: Any


Update = Callable[[network.Params, Any, Batch, jax.Array], tuple[network.Params, Any, dict[str, jax.Array]]]


def optimizer(settings: Settings) -> optax.GradientTransformation:
    """Adam under a limit of the gradient's norm; the rate falls linearly to 0 over the run."""
    updates = settings.iterations * settings.epochs * settings.minibatches
    rate = optax.linear_schedule(settings.learning_rate, 0.0, updates)
    return optax.chain(optax.clip_by_global_norm(settings.max_grad_norm), optax.adam(rate, eps=1e-5))


def loss(params: network.Params, batch: Batch, settings: Settings) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The loss of a minibatch, and its parts."""
    rows = jnp.maximum(batch.mask.sum(), 1.0)

    def mean(x: jax.Array) -> jax.Array:
        out: jax.Array = (x * batch.mask).sum() / rows
        return out

    centred = batch.advantages - mean(batch.advantages)
    advantages = centred / (jnp.sqrt(mean(centred**2)) + 1e-8)
    logits, values = network.apply(params, batch.obs)
    all_log_probs = jax.nn.log_softmax(logits)
    log_probs = jnp.take_along_axis(all_log_probs, batch.actions[:, None], 1)[:, 0]
    log_ratio = log_probs - batch.log_probs
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1.0 - settings.clip, 1.0 + settings.clip)
    policy_loss = -mean(jnp.minimum(ratio * advantages, clipped * advantages))
    value_loss = 0.5 * mean((values - batch.returns) ** 2)
    entropy = -mean((jnp.exp(all_log_probs) * all_log_probs).sum(1))
    total = policy_loss + settings.value_weight * value_loss - settings.entropy * entropy
    parts = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "kl": mean(ratio - 1.0 - log_ratio),
        "clipped_share": mean((jnp.abs(ratio - 1.0) > settings.clip).astype(jnp.float32)),
    }
    return total, parts


@lru_cache(maxsize=8)
def make_update(settings: Settings) -> Update:
    """The compiled update (one for equal settings), which also gives the means of the loss's parts."""
    step = optimizer(settings)
    gradient = jax.grad(partial(loss, settings=settings), has_aux=True)

    def minibatch(carry: Any, rows: jax.Array, batch: Batch) -> Any:
        params, state = carry
        grads, parts = gradient(params, jax.tree.map(lambda x: x[rows], batch))
        updates, state = step.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), parts

    @jax.jit
    def update(params: network.Params, state: Any, batch: Batch, key: jax.Array) -> Any:
        rows = len(batch.actions)
        keys = jax.random.split(key, settings.epochs)
        order = jax.vmap(lambda k: jax.random.permutation(k, rows))(keys)
        order = order.reshape(settings.epochs * settings.minibatches, -1)
        (params, state), parts = jax.lax.scan(partial(minibatch, batch=batch), (params, state), order)
        return params, state, jax.tree.map(jnp.mean, parts)

    return update
