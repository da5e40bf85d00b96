//! The emulator's rooms. Who may import whom: `nes` nothing; `cart` nes; `engine` nes and cart; `fast` those
//! three.

pub mod cart;
pub mod engine;
pub mod fast;
pub mod game;
pub mod nes;
