"""PPO on JAX over `rollcart.NesVectorEnv`: `rollcart train` and `rollcart rollout`. Needs the extra `ppo`.

The parts, lowest first: `settings` (what a run is), `gae`, `stopwatch` and `features` (numpy), `network`,
`collector` (plays a rollout), `learner` (the clipped update), `checkpoint`, `trainer` (the loop), and `show`
(curve and video).

The algorithm is that of Schulman et al., "Proximal Policy Optimization Algorithms" (2017), with generalised
advantage estimation (Schulman et al., 2016).
"""
