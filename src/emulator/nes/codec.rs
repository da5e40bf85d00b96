//! A state as bytes: `RCST`, the layout's version, the ROM's SHA-1, then the plain data of `state`.
//!
//! A state belongs to a ROM: loading one of another game is an error and not a crash a minute later.

use thiserror::Error;

use super::plain::{Plain, PlainError, Reader};
use super::state::ConsoleState;

/// The four bytes with which every saved state starts.
pub const MAGIC: &[u8; 4] = b"RCST";
/// Goes up whenever the plain data of `state` changes.
pub const VERSION: u16 = 1;
const DIGEST_BYTES: usize = 20;

/// Why bytes are not a state of this game.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodecError {
    #[error("not a saved state: expected it to start with RCST, found {found:02X?}; use bytes that save() gave")]
    NotAState { found: Vec<u8> },
    #[error("the state has layout version {found}, this build reads {VERSION}; save it again with this build")]
    OtherVersion { found: u16 },
    #[error("the state belongs to the ROM with SHA-1 {found}, this one has {expected}; load it with its own ROM")]
    OtherRom { found: String, expected: String },
    #[error(transparent)]
    Damaged(#[from] PlainError),
    #[error("{extra} bytes follow the end of the state: it is damaged; save it again")]
    TooLong { extra: usize },
}

/// The bytes of a state. `rom_sha1` is the cartridge's payload digest.
#[must_use]
pub fn encode(state: &ConsoleState, rom_sha1: &[u8; DIGEST_BYTES]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 * 1024);
    out.extend_from_slice(MAGIC);
    VERSION.put(&mut out);
    out.extend_from_slice(rom_sha1);
    state.put(&mut out);
    out
}

/// Whether bytes claim to be a state of ours (as against, say, a gzip'd state of another emulator).
#[must_use]
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The state in `bytes`, which must belong to the ROM with that digest.
///
/// # Errors
/// When the bytes are no state, of another version or ROM, or damaged.
pub fn decode(bytes: &[u8], rom_sha1: &[u8; DIGEST_BYTES]) -> Result<ConsoleState, CodecError> {
    if !is_ours(bytes) {
        return Err(CodecError::NotAState { found: bytes[..bytes.len().min(MAGIC.len())].to_vec() });
    }
    let mut reader = Reader::new(&bytes[MAGIC.len()..]);
    let found = u16::get(&mut reader)?;
    if found != VERSION {
        return Err(CodecError::OtherVersion { found });
    }
    let digest = reader.take(DIGEST_BYTES)?;
    if digest != rom_sha1 {
        return Err(CodecError::OtherRom { found: hex(digest), expected: hex(rom_sha1) });
    }
    let state = ConsoleState::get(&mut reader)?;
    match reader.left() {
        0 => Ok(state),
        extra => Err(CodecError::TooLong { extra }),
    }
}

/// Bytes as lowercase hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).expect("a nibble is below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
