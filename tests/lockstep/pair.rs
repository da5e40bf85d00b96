//! Two consoles with the same cartridge: one interprets everything and passes over nothing, the other translates.

use std::sync::Arc;

use rollcart::emulator::cart::Cartridge;
use rollcart::emulator::engine::{Draw, Engine, EngineOptions, JitOptions};
use rollcart::emulator::fast::Fast;
use rollcart::emulator::nes::{Buttons, ConsoleState};

pub(crate) struct Pair {
    plain: Fast,
    pub(crate) translated: Fast,
    options: EngineOptions,
    cart: Arc<Cartridge>,
}

impl Pair {
    /// Both just switched on.
    pub(crate) fn new(cart: &Arc<Cartridge>, options: EngineOptions) -> Self {
        let jit = JitOptions { on: false, ..options.jit };
        let plain = EngineOptions { jit, idle_skip: false, poll_skip: false, kept_deadlines: false, ..options };
        let start = |options| Fast::new(Arc::clone(cart), &options).expect("the board is supported");
        Self { plain: start(plain), translated: start(options), options, cart: Arc::clone(cart) }
    }

    pub(crate) fn load(&mut self, state: &ConsoleState) {
        for console in [&mut self.plain, &mut self.translated] {
            console.import(state).expect("the state is of this cartridge");
        }
    }

    pub(crate) fn state(&self) -> ConsoleState {
        self.plain.export()
    }

    /// A frame on both; panics at the first difference.
    pub(crate) fn frame(&mut self, pads: [Buttons; 2], draw: Draw, what: &str) {
        self.plain.run_frame(pads, draw);
        self.translated.run_frame(pads, draw);
        let found = self.plain.export().first_difference(&self.translated.export());
        assert_eq!(found, None, "{what}, frame {} (interpreted != translated)", self.plain.frame_count());
        if draw == Draw::Picture {
            let (plain, translated) = (self.plain.frame(), self.translated.frame());
            assert!(plain == translated, "{what}, frame {}: the pictures differ", self.plain.frame_count());
        }
    }

    /// Puts the translating console's state through a new one.
    pub(crate) fn reload(&mut self) {
        let state = self.translated.export();
        self.translated = Fast::new(Arc::clone(&self.cart), &self.options).expect("the board is supported");
        self.translated.import(&state).expect("the state is of this cartridge");
    }
}
