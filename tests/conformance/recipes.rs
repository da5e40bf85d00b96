//! `recipes.json`: how to run each test ROM and where its verdict is.

use std::path::Path;

use serde::Deserialize;

/// A number that the file writes as `"0x00F0"`.
fn hex<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let text = String::deserialize(from)?;
    u16::from_str_radix(text.trim_start_matches("0x"), 16).map_err(serde::de::Error::custom)
}

/// A byte, or the list of words of which the screen must show one.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum PassValue {
    Byte(u8),
    Words(Vec<String>),
}

/// Text that must stand in a name table for the verdict to count.
#[derive(Clone, Deserialize)]
pub(crate) struct ConfirmText {
    #[serde(deserialize_with = "hex")]
    pub(crate) nametable: u16,
    pub(crate) ascii: String,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Recipe {
    pub(crate) rom: String,
    pub(crate) mapper: u16,
    pub(crate) kind: String,
    /// Upper bound from power-on.
    pub(crate) frames: u32,
    #[serde(default = "zero", deserialize_with = "hex")]
    pub(crate) result_addr: u16,
    pub(crate) pass_value: Option<PassValue>,
    pub(crate) confirm_text: Option<ConfirmText>,
    pub(crate) pass_text: Option<String>,
    pub(crate) map: Option<String>,
}

fn zero() -> u16 {
    0
}

#[derive(Deserialize)]
struct File {
    recipes: Vec<Recipe>,
}

pub(crate) fn read(folder: &Path) -> Vec<Recipe> {
    let text = std::fs::read_to_string(folder.join("recipes.json")).expect("recipes.json can be read");
    serde_json::from_str::<File>(&text).expect("recipes.json has the form that this test knows").recipes
}
