//! Facts about the console that all engines share, and no behaviour: opcodes, timing, colours, buttons, and
//! the whole state as plain data with its codec. Imports no other room.

mod buttons;
pub mod codec;
pub mod fceumm;
pub mod opcodes;
pub mod palette;
pub mod plain;
pub mod state;
pub mod timing;
pub mod trace;

pub use buttons::Buttons;
pub use state::ConsoleState;
