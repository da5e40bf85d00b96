//! `data.json`: the table of named values, `{"info": {name: {"address": int, "type": text, "mask": int?}}}`.
//!
//! Addresses are the processor's. What a value looks like is `decode`'s business.

use super::{GameError, Memory, ValueType};
use serde_json::Value;
use std::sync::Arc;

/// Where work RAM begins in the processor's address space.
const WORK_RAM: u64 = 0x6000;
/// RAM is 2 KiB; its mirrors up to $1FFF are not addresses of Stable Retro.
const RAM_SIZE: u64 = 0x800;

/// One named value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    kind: ValueType,
    mask: Option<i64>,
    block: Block,
    offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Ram,
    WorkRam,
}

impl Variable {
    /// The value now.
    ///
    /// # Panics
    /// If `memory` is smaller than it was said to be when the file was compiled.
    #[must_use]
    pub fn read(&self, memory: Memory) -> i64 {
        let block = match self.block {
            Block::Ram => memory.ram,
            Block::WorkRam => memory.work_ram,
        };
        let value = self.kind.decode(&block[self.offset..]);
        self.mask.map_or(value, |mask| value & mask)
    }

    /// The bytes that make the variable `value`, with their addresses. The mask is for reading alone.
    #[cfg_attr(not(feature = "lua"), allow(dead_code, reason = "only scripts write"))]
    pub(super) fn written(&self, value: i64) -> impl Iterator<Item = (u16, u8)> + use<> {
        let mut bytes = [0; 8];
        self.kind.encode(value, &mut bytes);
        let base = match self.block {
            Block::Ram => 0,
            Block::WorkRam => WORK_RAM as usize,
        };
        let first = base + self.offset;
        bytes.into_iter().take(self.kind.width()).enumerate().map(move |(at, byte)| ((first + at) as u16, byte))
    }
}

/// All values of a game, by name in alphabetical order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(Arc<[Variable]>);

impl Variables {
    pub(super) fn compile(file: &Value, work_ram: usize, warnings: &mut Vec<String>) -> Result<Self, GameError> {
        let info = file.get("info").and_then(Value::as_object).ok_or(GameError::NoInfo)?;
        let mut table = Vec::with_capacity(info.len());
        for (name, entry) in info {
            let missing = |field| GameError::MissingField { name: name.clone(), field };
            let address = entry.get("address").and_then(Value::as_u64).ok_or_else(|| missing("address"))?;
            let text = entry.get("type").and_then(Value::as_str).ok_or_else(|| missing("type"))?;
            let Some(kind) = ValueType::parse(text) else {
                warnings.push(format!(
                    "data.json: variable {name:?} is left out: type {text:?} is not endian, format and width 1-8"
                ));
                continue;
            };
            if let Some((block, offset)) = place(address, kind.width() as u64, work_ram as u64) {
                let mask = entry.get("mask").and_then(Value::as_i64);
                table.push(Variable { name: name.clone(), kind, mask, block, offset });
            } else {
                warnings.push(format!(
                    "data.json: variable {name:?} is left out: address {address:#06x} with {} bytes is outside this \
                     cartridge's memory",
                    kind.width()
                ));
            }
        }
        table.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self(table.into()))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|v| v.name.as_str())
    }

    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|v| v.name.as_str().cmp(name)).ok()
    }

    #[cfg_attr(not(feature = "lua"), allow(dead_code, reason = "only scripts ask by name"))]
    pub(super) fn named(&self, name: &str) -> Option<&Variable> {
        self.index(name).map(|at| &self.0[at])
    }

    /// Writes every value into `values`, in the table's order.
    pub fn read_all(&self, memory: Memory, values: &mut [i64]) {
        for (variable, value) in self.0.iter().zip(values) {
            *value = variable.read(memory);
        }
    }
}

/// The block and offset of `width` bytes at `address`, if they lie inside one block.
fn place(address: u64, width: u64, work_ram: u64) -> Option<(Block, usize)> {
    let end = address.checked_add(width)?;
    let (block, base) = if end <= RAM_SIZE {
        (Block::Ram, 0)
    } else if address >= WORK_RAM && end <= WORK_RAM + work_ram {
        (Block::WorkRam, WORK_RAM)
    } else {
        return None;
    };
    Some((block, usize::try_from(address - base).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::{Game, GameError, Memory};

    fn compile(data: &str, work_ram: usize) -> Result<Game, GameError> {
        Game::compile(data, "{}", &[], work_ram)
    }

    #[test]
    fn values_come_from_ram_and_work_ram_with_their_masks() {
        let data = r#"{"info": {"x": {"address": 1023, "type": ">u2"}, "w": {"address": 24577, "type": "|u1"},
                       "m": {"address": 0, "type": "|u1", "mask": 15}}}"#;
        let game = compile(data, 0x2000).unwrap();
        let (mut ram, mut work_ram) = ([0u8; 2048], [0u8; 0x2000]);
        ram[0] = 0xAB;
        (ram[1023], ram[1024], work_ram[1]) = (1, 2, 7);
        let mut values = [0; 3];
        game.variables.read_all(Memory { ram: &ram, work_ram: &work_ram }, &mut values);
        assert_eq!(game.variables.names().collect::<Vec<_>>(), ["m", "w", "x"]);
        assert_eq!(values, [11, 7, 0x0102]);
    }

    #[test]
    fn a_value_outside_memory_is_left_out_with_a_warning() {
        let data = r#"{"info": {"a": {"address": 2047, "type": "<u2"}, "b": {"address": 24576, "type": "|u1"}}}"#;
        let game = compile(data, 0).unwrap();
        assert!(game.variables.is_empty());
        assert_eq!(game.warnings.len(), 2);
    }

    #[test]
    fn a_variable_without_address_or_type_is_named() {
        let error = compile(r#"{"info": {"lives": {"type": "|u1"}}}"#, 0).unwrap_err();
        assert_eq!(error, GameError::MissingField { name: "lives".into(), field: "address" });
        assert_eq!(compile("{}", 0).unwrap_err(), GameError::NoInfo);
    }
}
