//! A generation of translated code: where it lies, how it is made and entered, and what it covers.
//!
//! Memory is written first and then made executable, never both at once. It is freed with the `Code`, which every
//! lane that may run it holds.

use std::fmt::Display;
use std::time::{Duration, Instant};

use cranelift_codegen::ir::UserFuncName;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};

use super::emit::{self, Program};
use super::graph::{Graph, slot};
use super::layout::{Order, Padding};
use super::{Image, Passes};
use crate::emulator::fast::bus::Bus;
use crate::emulator::fast::cpu::Cpu;

/// How translated code came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Exit {
    /// At an instruction that it does not hold, or before which the deadline has to be looked at.
    Boundary = 0,
    /// Before an instruction that the interpreter has to execute.
    Interpret = 1,
}

/// Gives the code generator, or says why there is none.
pub(super) type Host = fn() -> Result<OwnedTargetIsa, String>;

type Function = unsafe extern "C" fn(*mut Cpu, *mut Bus) -> u32;

/// What a generation is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub instructions: usize,
    pub blocks: usize,
    /// Of machine code.
    pub bytes: usize,
    pub took: Duration,
}

pub(super) struct Code {
    module: Option<JITModule>,
    /// The number of the entry at each address, by `slot`; 0 for none.
    table: Box<[u16; 0x8000]>,
    /// The function of entry number + 1.
    functions: Vec<Function>,
    /// What was reached when this was made, by `slot`.
    known: Vec<u8>,
    pub size: Size,
}

// SAFETY: after it is made nothing in the module is used but its memory, which is not written any more, and which is
// freed by the last owner.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Translates nothing.
    pub(super) fn empty() -> Self {
        Self {
            module: None,
            table: vec![0; 0x8000].try_into().expect("the length is the array's"),
            functions: Vec::new(),
            known: vec![0; 0x8000],
            size: Size::default(),
        }
    }

    /// Translates what was reached.
    ///
    /// # Errors
    /// When this host has no code generator or refuses executable memory: the text says which.
    pub(super) fn translate(image: &Image, reached: &[u8], passes: Passes, host: Host) -> Result<Self, String> {
        let began = Instant::now();
        let mut code = Self::empty();
        code.known = reached.to_vec();
        let graph = Graph::new(image, reached, passes);
        if graph.blocks.is_empty() {
            return Ok(code);
        }
        let entries = code.number_entries(&graph);
        let mut module = JITModule::new(JITBuilder::with_isa(host()?, default_libcall_names()));
        let made = code.define(&mut module, image, &graph, passes, &entries);
        code.module = Some(module);
        made?;
        code.size.instructions = graph.blocks.iter().map(|block| block.instructions.len()).sum();
        code.size.blocks = graph.blocks.len();
        code.size.took = began.elapsed();
        Ok(code)
    }

    /// Numbers the entries from 1, function by function; gives each function's range.
    fn number_entries(&mut self, graph: &Graph) -> Vec<std::ops::Range<u16>> {
        let mut next = 1;
        let mut ranges = Vec::new();
        for function in 0..graph.functions {
            let first = next;
            for block in graph.blocks.iter().filter(|block| block.function == function && block.entry) {
                self.table[slot(block.start)] = next;
                next += 1;
            }
            ranges.push(first..next);
        }
        ranges
    }

    fn define(
        &mut self,
        module: &mut JITModule,
        image: &Image,
        graph: &Graph,
        passes: Passes,
        entries: &[std::ops::Range<u16>],
    ) -> Result<(), String> {
        let call_conv = module.isa().default_call_conv();
        let program = Program { image, graph, table: &self.table, call_conv };
        let mut context = module.make_context();
        let mut frontend = FunctionBuilderContext::new();
        let mut ids = vec![None; entries.len()];
        let mut padding = Padding::new(passes.layout_seed);
        for number in Order::new(entries.len(), passes.layout_seed) {
            padding.define(module)?;
            context.func.signature = emit::signature(call_conv);
            context.func.name = UserFuncName::user(0, number as u32);
            emit::emit(&program, number as u16, entries[number].clone(), &mut context.func, &mut frontend);
            let id = module.declare_anonymous_function(&context.func.signature).map_err(refused)?;
            module.define_function(id, &mut context).map_err(refused)?;
            self.size.bytes += context.compiled_code().map_or(0, |code| code.code_buffer().len());
            module.clear_context(&mut context);
            ids[number] = Some(id);
        }
        module.finalize_definitions().map_err(refused)?;
        for (range, id) in entries.iter().zip(ids) {
            let address = module.get_finalized_function(id.expect("every function was defined"));
            // SAFETY: the function was emitted with this signature, and its memory lives as long as the module.
            let function = unsafe { std::mem::transmute::<*const u8, Function>(address) };
            self.functions.extend(range.clone().map(|_| function));
        }
        Ok(())
    }

    /// The entry at an address.
    #[inline]
    pub(super) fn entry(&self, pc: u16) -> Option<Entry> {
        let number = self.table[slot(pc)];
        (pc >= 0x8000 && number != 0).then_some(Entry(number))
    }

    /// What the translator knew of an address from $8000 on.
    #[inline]
    pub(super) fn known(&self, pc: u16) -> u8 {
        self.known[slot(pc)]
    }

    /// Runs translated code from the entry at the CPU's PC.
    #[inline]
    pub(super) fn run(&self, entry: Entry, cpu: &mut Cpu, bus: &mut Bus) -> Exit {
        let function = self.functions[usize::from(entry.0) - 1];
        // SAFETY: the memory of the function lives as long as `self`. It reads and writes the fields of both, through
        // these pointers alone, and calls `calls` with the bus.
        let how = unsafe { function(cpu, bus) };
        if how == Exit::Interpret as u32 { Exit::Interpret } else { Exit::Boundary }
    }
}

/// A place where translated code may be entered.
#[derive(Clone, Copy)]
pub(super) struct Entry(u16);

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: whoever runs this code borrows it, so nobody does.
            unsafe { module.free_memory() };
        }
    }
}

/// An error as text.
pub(super) fn refused(error: impl Display) -> String {
    format!("{error:#}")
}

/// The code generator for this host.
pub(super) fn host() -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "speed"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("enable_verifier", verify),
        ("unwind_info", "false"),
        // Indices of jump tables are not secret.
        ("enable_table_access_spectre_mitigation", "false"),
    ] {
        flags.set(name, value).map_err(refused)?;
    }
    cranelift_native::builder()?.finish(settings::Flags::new(flags)).map_err(refused)
}
