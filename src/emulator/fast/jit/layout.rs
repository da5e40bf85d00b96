//! Where functions lie in memory, as `layout_seed` varies it: their order and the space between them.
//!
//! Seed 0 is the order of addresses without space. Timing depends on the layout by chance; measuring with several
//! seeds keeps that chance out of a comparison (docs/benchmarking.md, relinked variants).

use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, types::I32};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::Module;

use super::code::refused;

/// The longest padding function, in multiplications.
const MOST_MULTIPLICATIONS: u64 = 64;

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The functions' numbers in the order in which they are placed.
pub(super) struct Order(std::vec::IntoIter<usize>);

impl Order {
    pub(super) fn new(count: usize, seed: u64) -> Self {
        let mut numbers: Vec<_> = (0..count).collect();
        let mut state = seed;
        if seed != 0 {
            for at in (1..count).rev() {
                numbers.swap(at, (next(&mut state) % (at as u64 + 1)) as usize);
            }
        }
        Self(numbers.into_iter())
    }
}

impl Iterator for Order {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0.next()
    }
}

/// Functions that nobody calls.
pub(super) struct Padding {
    state: Option<u64>,
}

impl Padding {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: (seed != 0).then_some(!seed) }
    }

    /// Places one of a size that the seed says.
    pub(super) fn define(&mut self, module: &mut JITModule) -> Result<(), String> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let length = next(state) % MOST_MULTIPLICATIONS;
        let mut context = module.make_context();
        let mut signature = Signature::new(module.isa().default_call_conv());
        signature.params.push(AbiParam::new(I32));
        signature.returns.push(AbiParam::new(I32));
        context.func.signature = signature;
        let mut frontend = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut frontend);
        let block = builder.create_block();
        builder.append_block_params_for_function_params(block);
        builder.switch_to_block(block);
        let mut value = builder.block_params(block)[0];
        for _ in 0..length {
            value = builder.ins().imul(value, value);
        }
        builder.ins().return_(&[value]);
        builder.seal_all_blocks();
        builder.finalize();
        let id = module.declare_anonymous_function(&context.func.signature).map_err(refused)?;
        module.define_function(id, &mut context).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn every_seed_places_every_function_once() {
        for seed in 0..20 {
            let mut order: Vec<_> = Order::new(9, seed).collect();
            assert_eq!(order.iter().copied().eq(0..9), seed == 0, "seed {seed}");
            order.sort_unstable();
            assert!(order.into_iter().eq(0..9), "seed {seed}");
        }
    }
}
