//! Rollcart runs NES cartridges for reinforcement learning.
//!
//! `emulator` is the console.

pub mod emulator;

#[cfg(feature = "python")]
mod py_api;
