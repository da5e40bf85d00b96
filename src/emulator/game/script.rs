//! Runs a scenario's Lua scripts: Lua 5.1, each episode in an interpreter of its own.
//!
//! ```text
//! data.NAME       a variable's value; an error for a name that nothing has. Whole numbers: fractions are cut off
//! data.NAME = v   writes memory, or makes a variable of the scripts' own; nil and false are 0, true is 1
//! data[address]   the byte at an address of the processor
//! scenario.frame  frames that were judged before this one; scenario.timestep is a quarter of it
//! ```
//!
//! Scripts have Lua's base, string, table and math libraries, without what loads code or draws random numbers: an
//! episode depends on seed and actions alone. What they compute is left to them; when they are called, to `episode`.

use super::{Memory, Program, Source, Variables};
use mlua::{HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard};

/// A script that cannot be loaded, or failed while it ran.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("{0}")]
    Failed(String),
    #[error("the scenario calls {function:?}, but none of its scripts ({scripts}) has a function of that name")]
    NoFunction { function: String, scripts: String },
    #[error(
        "a snapshot cannot carry the values of the scenario's scripts: {reason}; keep them in global variables that hold \
         numbers, texts, booleans and tables of these"
    )]
    NotPortable { reason: String },
}

impl From<mlua::Error> for ScriptError {
    fn from(error: mlua::Error) -> Self {
        // The first line says what and where; a traceback follows.
        let text = error.to_string();
        let text = text.split("\nstack traceback").next().unwrap_or_default().trim();
        Self::Failed(text.trim_start_matches("runtime error: ").trim_start_matches("syntax error: ").to_owned())
    }
}

/// Libraries' functions that scripts do not get.
const LEFT_OUT: [&str; 5] = ["dofile", "loadfile", "load", "loadstring", "require"];
/// Instructions between two looks at how long a call has been running, and the looks that it may live to see.
const BETWEEN_LOOKS: u32 = 100_000;
const MOST_LOOKS: u32 = 100;

/// What the scripts see of the game.
struct Seen {
    variables: Variables,
    added: BTreeMap<String, i64>,
    ram: Vec<u8>,
    work_ram: Vec<u8>,
    written: Vec<(u16, u8)>,
    frame: u64,
    looks: u32,
}

impl Seen {
    fn memory(&self) -> Memory<'_> {
        Memory { ram: &self.ram, work_ram: &self.work_ram }
    }

    fn get(&self, name: &str) -> Option<i64> {
        self.added.get(name).copied().or_else(|| self.variables.named(name).map(|found| found.read(self.memory())))
    }

    fn set(&mut self, name: &str, value: i64) {
        let Some(variable) = self.variables.named(name).filter(|_| !self.added.contains_key(name)) else {
            self.added.insert(name.to_owned(), value);
            return;
        };
        for (address, byte) in variable.written(value) {
            match usize::from(address).checked_sub(0x6000) {
                None => self.ram[usize::from(address)] = byte,
                Some(offset) => self.work_ram[offset] = byte,
            }
            self.written.push((address, byte));
        }
    }
}

/// One episode's interpreter.
pub(super) struct Scripts {
    lua: Lua,
    seen: Arc<Mutex<Seen>>,
    files: String,
    /// Global names that are not the scripts' own.
    given: BTreeSet<String>,
    /// Names of the functions that loading the scripts made, by where they are.
    functions: BTreeMap<usize, String>,
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripts").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Whether a script can be loaded at all.
pub(super) fn check(source: &Source) -> Result<(), ScriptError> {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new())?;
    lua.load(&source.text).set_name(chunk_name(source)).into_function()?;
    Ok(())
}

/// Lua shows a name that begins with `=` as it is.
fn chunk_name(source: &Source) -> String {
    format!("={}", source.name)
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("nothing panics while it holds this")
}

impl Scripts {
    /// Loads the scripts, in whose sight is `memory`.
    pub(super) fn start(program: &Program, variables: &Variables, memory: Memory) -> Result<Self, ScriptError> {
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, LuaOptions::new())?;
        let seen = Arc::new(Mutex::new(Seen {
            variables: variables.clone(),
            added: BTreeMap::new(),
            ram: memory.ram.to_vec(),
            work_ram: memory.work_ram.to_vec(),
            written: Vec::new(),
            frame: 0,
            looks: 0,
        }));
        furnish(&lua, &seen)?;
        let globals = lua.globals();
        let names = globals.pairs::<String, Value>().map(|pair| pair.map(|(name, _)| name));
        let given = names.collect::<Result<_, _>>()?;
        let files: Vec<_> = program.sources.iter().map(|source| source.name.as_str()).collect();
        for source in &program.sources {
            lua.load(&source.text).set_name(chunk_name(source)).exec()?;
        }
        let mut scripts = Self { files: files.join(", "), lua, seen, given, functions: BTreeMap::new() };
        let globals = scripts.own_globals()?.into_iter();
        let function = |(name, value): (String, Value)| Some((value.as_function()?.to_pointer() as usize, name));
        scripts.functions = globals.filter_map(function).collect();
        Ok(scripts)
    }

    /// Shows the scripts what memory is now.
    pub(super) fn show(&mut self, memory: Memory) {
        let mut seen = lock(&self.seen);
        seen.ram.copy_from_slice(memory.ram);
        seen.work_ram.copy_from_slice(memory.work_ram);
        seen.written.clear();
    }

    /// Calls a function; anything but a number or a boolean is 0.
    pub(super) fn call(&mut self, function: &str) -> Result<f64, ScriptError> {
        lock(&self.seen).looks = 0;
        let Value::Function(found) = self.lua.globals().get(function)? else {
            return Err(ScriptError::NoFunction { function: function.into(), scripts: self.files.clone() });
        };
        Ok(match found.call(())? {
            Value::Integer(whole) => whole as f64,
            Value::Number(number) => number,
            Value::Boolean(truth) => f64::from(u8::from(truth)),
            _ => 0.0,
        })
    }

    pub(super) fn next_frame(&mut self) {
        lock(&self.seen).frame += 1;
    }

    /// Writes the values as the scripts left them: data.json's, then those that they added.
    pub(super) fn read(&self, variables: &Variables, added: &[String], values: &mut [i64]) {
        let seen = lock(&self.seen);
        let (known, own) = values.split_at_mut(variables.len());
        variables.read_all(seen.memory(), known);
        for (name, value) in added.iter().zip(own) {
            *value = seen.added.get(name).copied().unwrap_or_default();
        }
    }

    /// What the scripts wrote into memory since they were shown it.
    pub(super) fn written(&self, written: &mut Vec<(u16, u8)>) {
        written.extend_from_slice(&lock(&self.seen).written);
    }
}

/// Gives an interpreter `data` and `scenario`, and takes away what scripts shall not have.
fn furnish(lua: &Lua, seen: &Arc<Mutex<Seen>>) -> mlua::Result<()> {
    let globals = lua.globals();
    for name in LEFT_OUT {
        globals.raw_remove(name)?;
    }
    let math: Table = globals.get("math")?;
    for name in ["random", "randomseed"] {
        math.raw_remove(name)?;
    }
    let at = Arc::clone(seen);
    let get = lua.create_function(move |lua, (_, key): (Table, Value)| {
        let seen = lock(&at);
        if let Some(address) = lua.coerce_number(key.clone())? {
            let byte = if address >= 0.0 { seen.memory().byte(address as usize) } else { None };
            return byte.map(f64::from).ok_or_else(|| at_line(lua, &format!("data[{address}]: no memory is there")));
        }
        let name = key.to_string()?;
        let value = seen.get(&name).map(|value| value as f64);
        value.ok_or_else(|| at_line(lua, &format!("data.{name}: no variable of this name")))
    })?;
    let at = Arc::clone(seen);
    let set = lua.create_function(move |lua, (_, key, value): (Table, Value, Value)| {
        let value = match value {
            Value::Nil => 0,
            Value::Boolean(truth) => i64::from(truth),
            Value::Integer(whole) => whole,
            Value::Number(number) => number as i64,
            other => {
                let text = format!("data takes a number, a boolean or nil, found a {}", other.type_name());
                return Err(at_line(lua, &text));
            }
        };
        lock(&at).set(&key.to_string()?, value);
        Ok(())
    })?;
    globals.set("data", guarded(lua, get, set)?)?;
    let at = Arc::clone(seen);
    let get = lua.create_function(move |lua, (_, name): (Table, String)| {
        let frame = lock(&at).frame;
        match name.as_str() {
            "frame" => Ok(frame as f64),
            "timestep" => Ok((frame / 4) as f64),
            _ => Err(at_line(lua, &format!("scenario.{name}: expected scenario.frame or scenario.timestep"))),
        }
    })?;
    let set = lua.create_function(|_, ()| Ok(()))?;
    globals.set("scenario", guarded(lua, get, set)?)?;
    let at = Arc::clone(seen);
    lua.set_hook(HookTriggers::new().every_nth_instruction(BETWEEN_LOOKS), move |_, _| {
        let mut seen = lock(&at);
        seen.looks += 1;
        if seen.looks > MOST_LOOKS {
            let most = u64::from(BETWEEN_LOOKS) * u64::from(MOST_LOOKS);
            let text = format!("a call ran for more than {most} instructions; does a loop never end?");
            return Err(mlua::Error::RuntimeError(text));
        }
        Ok(VmState::Continue)
    })
}

/// An error with the file and the line of the script that called.
fn at_line(lua: &Lua, text: &str) -> mlua::Error {
    let place = lua.inspect_stack(1, |caller| {
        let file = caller.source().short_src.map(std::borrow::Cow::into_owned);
        format!("{}:{}: ", file.unwrap_or_default(), caller.current_line().unwrap_or_default())
    });
    mlua::Error::RuntimeError(place.unwrap_or_default() + text)
}

/// An empty table that asks `get` for every key and gives every value to `set`.
fn guarded(lua: &Lua, get: mlua::Function, set: mlua::Function) -> mlua::Result<Table> {
    let (table, meta) = (lua.create_table()?, lua.create_table()?);
    meta.set("__index", get)?;
    meta.set("__newindex", set)?;
    table.set_metatable(Some(meta))?;
    Ok(table)
}

/// A value of a global variable.
#[derive(Serialize, Deserialize)]
enum Kept {
    Truth(bool),
    /// The bits of a 64-bit float.
    Number(u64),
    Text(Vec<u8>),
    /// The function that had this name when the scripts were loaded.
    Function(String),
    Table(Vec<(Kept, Kept)>),
}

#[derive(Serialize, Deserialize)]
struct KeptScripts {
    globals: BTreeMap<String, Kept>,
    added: BTreeMap<String, i64>,
    frame: u64,
}

impl Scripts {
    fn own_globals(&self) -> mlua::Result<BTreeMap<String, Value>> {
        let globals = self.lua.globals();
        let pairs = globals.pairs::<String, Value>();
        pairs.filter(|pair| pair.as_ref().map_or(true, |(name, _)| !self.given.contains(name))).collect()
    }

    /// The scripts' values as bytes.
    pub(super) fn save(&self, program: &Program) -> Result<Vec<u8>, ScriptError> {
        if let Some(reason) = &program.hidden {
            return Err(ScriptError::NotPortable { reason: reason.clone() });
        }
        let globals = self.own_globals()?;
        let mut tables = HashSet::new();
        let kept = globals.iter().map(|(name, value)| Ok((name.clone(), self.keep(name, value, &mut tables)?)));
        let kept = kept.collect::<Result<_, ScriptError>>()?;
        let seen = lock(&self.seen);
        let kept = KeptScripts { globals: kept, added: seen.added.clone(), frame: seen.frame };
        Ok(serde_json::to_vec(&kept).expect("numbers and bytes are JSON"))
    }

    fn keep(&self, name: &str, value: &Value, tables: &mut HashSet<*const c_void>) -> Result<Kept, ScriptError> {
        let refused = |what: &str| ScriptError::NotPortable { reason: format!("{name} {what}") };
        Ok(match value {
            Value::Boolean(truth) => Kept::Truth(*truth),
            Value::Integer(whole) => Kept::Number((*whole as f64).to_bits()),
            Value::Number(number) => Kept::Number(number.to_bits()),
            Value::String(text) => Kept::Text(text.as_bytes().to_vec()),
            Value::Function(function) => {
                let known = self.functions.get(&(function.to_pointer() as usize));
                Kept::Function(known.cloned().ok_or_else(|| refused("is a function of another's making"))?)
            }
            Value::Table(table) => {
                if !tables.insert(table.to_pointer()) || table.metatable().is_some() {
                    return Err(refused("is a table that is shared, holds itself or has a metatable"));
                }
                let pairs = table.pairs::<Value, Value>().map(|pair| {
                    let (key, value) = pair?;
                    Ok((self.keep(name, &key, tables)?, self.keep(name, &value, tables)?))
                });
                Kept::Table(pairs.collect::<Result<_, ScriptError>>()?)
            }
            other => return Err(refused(&format!("is a {}", other.type_name()))),
        })
    }

    /// The interpreter that [`Scripts::save`] was asked for.
    pub(super) fn restored(
        program: &Program,
        variables: &Variables,
        memory: Memory,
        saved: &[u8],
    ) -> Result<Self, ScriptError> {
        let damaged = |_| ScriptError::Failed("the values of the scripts are damaged".into());
        let kept: KeptScripts = serde_json::from_slice(saved).map_err(damaged)?;
        let mut scripts = Self::start(program, variables, memory)?;
        let fresh = scripts.own_globals()?;
        for name in fresh.keys() {
            scripts.lua.globals().raw_remove(name.as_str())?;
        }
        for (name, value) in &kept.globals {
            scripts.lua.globals().raw_set(name.as_str(), give(&scripts.lua, value, &fresh)?)?;
        }
        // What loading the scripts did to memory is not done again.
        scripts.show(memory);
        let mut seen = lock(&scripts.seen);
        (seen.added, seen.frame) = (kept.added, kept.frame);
        drop(seen);
        Ok(scripts)
    }
}

fn give(lua: &Lua, kept: &Kept, fresh: &BTreeMap<String, Value>) -> mlua::Result<Value> {
    Ok(match kept {
        Kept::Truth(truth) => Value::Boolean(*truth),
        Kept::Number(bits) => Value::Number(f64::from_bits(*bits)),
        Kept::Text(bytes) => Value::String(lua.create_string(bytes)?),
        Kept::Function(name) => {
            fresh.get(name).cloned().ok_or_else(|| mlua::Error::RuntimeError(format!("no function {name}")))?
        }
        Kept::Table(pairs) => {
            let table = lua.create_table()?;
            for (key, value) in pairs {
                table.raw_set(give(lua, key, fresh)?, give(lua, value, fresh)?)?;
            }
            Value::Table(table)
        }
    })
}
