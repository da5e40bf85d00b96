"""NES games for reinforcement learning."""
