//! Rollcart runs NES cartridges for reinforcement learning.
//!
//! `emulator` is the console.

pub mod emulator;
pub mod vec_env;

#[cfg(feature = "python")]
mod py_api;
