//! What all lanes of a cartridge share: what they reached, the newest generation, and who makes the next.
//!
//! A generation is worth while once so many instructions were interpreted for want of it; that number doubles with each,
//! so all of them together cost no more than a constant share of the time. Their size is bounded: a program that
//! reaches more than `MOST_INSTRUCTIONS` loses its translation and begins anew.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, TryLockError, Weak};
use std::{ptr, thread};

use super::code::{Code, Host, host};
use super::graph::slot;
use super::{Image, Passes, REACHED};
use crate::emulator::engine::SWITCHED_OFF;

/// Interpreted for want of the first generation.
const FIRST_THRESHOLD: u64 = 1 << 13;
/// The threshold grows no further: code that comes late in a game is translated too.
const LAST_THRESHOLD: u64 = 1 << 24;
/// More than NROM games have; translated, some megabytes.
const MOST_INSTRUCTIONS: usize = 16_384;
/// Opcodes behind which the program goes on where the stack, a pointer or a vector says: BRK, RTI, RTS, JMP ().
const COMPUTED: [u8; 4] = [0x00, 0x40, 0x60, 0x6C];

/// A process's translations in use. A fork begins with a registry of its own: its parent's may be locked for ever by a
/// thread that only the parent has.
struct Registry {
    process: u32,
    open: Mutex<Vec<Weak<Shared>>>,
}

static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(ptr::null_mut());

impl Registry {
    fn of_this_process() -> &'static Self {
        let process = std::process::id();
        let mut found = REGISTRY.load(Ordering::Acquire);
        loop {
            // SAFETY: it is null or was leaked below, and so lives as long as the process.
            if let Some(registry) = unsafe { found.as_ref() }
                && registry.process == process
            {
                return registry;
            }
            let fresh = Box::into_raw(Box::new(Self { process, open: Mutex::new(Vec::new()) }));
            match REGISTRY.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => found = fresh,
                Err(other) => {
                    // SAFETY: nobody else has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    found = other;
                }
            }
        }
    }
}

pub(super) struct Shared {
    image: Image,
    passes: Passes,
    host: Host,
    process: u32,
    /// Bits by `slot`.
    reached: Vec<AtomicU8>,
    /// Instructions interpreted for want of a translation since the newest generation was begun.
    missed: AtomicU64,
    /// How many of them the next generation is worth.
    threshold: AtomicU64,
    generation: AtomicU64,
    state: Mutex<State>,
    done: Condvar,
}

struct State {
    code: Arc<Code>,
    translating: bool,
    /// This host does not translate.
    refused: bool,
}

/// The lock if it is free. In a fork it may never be again, so nothing that a frame does waits for it.
fn lock_if_free<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can be left half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The translation of this ROM with these passes; a new one if no lane has it.
    pub(super) fn open(image: Image, passes: Passes) -> Arc<Self> {
        let mut open = lock(&Registry::of_this_process().open);
        open.retain(|shared| shared.strong_count() > 0);
        let same = |shared: &Arc<Self>| shared.passes == passes && shared.image == image;
        if let Some(shared) = open.iter().filter_map(Weak::upgrade).find(same) {
            return shared;
        }
        let shared = Arc::new(Self::new(image, passes, host));
        open.push(Arc::downgrade(&shared));
        shared
    }

    pub(super) fn new(image: Image, passes: Passes, host: Host) -> Self {
        Self {
            image,
            passes,
            host,
            process: std::process::id(),
            reached: (0..0x8000).map(|_| AtomicU8::new(0)).collect(),
            missed: AtomicU64::new(0),
            threshold: AtomicU64::new(FIRST_THRESHOLD),
            generation: AtomicU64::new(0),
            state: Mutex::new(State { code: Arc::new(Code::empty()), translating: false, refused: false }),
            done: Condvar::new(),
        }
    }

    /// The same, without a thread that translates: nobody but `settle` does.
    #[cfg(test)]
    pub(super) fn settled_only(self) -> Self {
        self.threshold.store(u64::MAX / 2, Ordering::Relaxed);
        self
    }

    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn newest(&self) -> (u64, Arc<Code>) {
        let state = lock(&self.state);
        (self.generation(), Arc::clone(&state.code))
    }

    /// The newest generation, if nobody is changing it just now.
    pub(super) fn newest_if_free(&self) -> Option<(u64, Arc<Code>)> {
        lock_if_free(&self.state).map(|state| (self.generation(), Arc::clone(&state.code)))
    }

    /// An instruction was interpreted, or an entry was missing, for want of these bits.
    #[cold]
    pub(super) fn note(&self, pc: u16, bits: u8) {
        let reached = &self.reached[slot(pc)];
        if reached.load(Ordering::Relaxed) & bits != bits {
            reached.fetch_or(bits, Ordering::Relaxed);
        }
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the instruction at an address goes on where no operand says. Code in RAM may.
    #[inline]
    pub(super) fn is_computed(&self, at: u16) -> bool {
        at < 0x8000 || COMPUTED.contains(&self.image.read(at))
    }

    /// Begins a generation on a thread of its own, if the time lost since the last one is worth it.
    #[inline]
    pub(super) fn translate_if_worth_while(this: &Arc<Self>) {
        if this.is_worth_while() {
            Self::translate_apart(this);
        }
    }

    fn is_worth_while(&self) -> bool {
        self.missed.load(Ordering::Relaxed) >= self.threshold.load(Ordering::Relaxed)
    }

    #[cold]
    fn translate_apart(this: &Arc<Self>) {
        let Some(mut state) = lock_if_free(&this.state) else { return };
        // Another lane may have come first.
        if state.translating || state.refused || !this.is_worth_while() {
            return;
        }
        let worker = Arc::clone(this);
        let spawned = thread::Builder::new().name("rollcart-jit".into()).spawn(move || worker.translate());
        // Without a thread the interpreter goes on, and the next frame asks again.
        state.translating = spawned.is_ok();
    }

    /// Returns when everything that was reached before the call is translated, or cannot be.
    pub(super) fn settle(&self) {
        // A fork has no thread of its parent's: nobody would report, and what it locked stays so.
        if self.process != std::process::id() {
            return;
        }
        let mut state = lock(&self.state);
        while state.translating {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.refused || self.missed.load(Ordering::Relaxed) == 0 {
            return;
        }
        state.translating = true;
        drop(state);
        self.translate();
    }

    /// Makes a generation; the caller has set `translating`.
    fn translate(&self) {
        self.missed.store(0, Ordering::Relaxed);
        let reached: Vec<_> = self.reached.iter().map(|bits| bits.load(Ordering::Relaxed)).collect();
        let count = reached.iter().filter(|&&bits| bits & REACHED != 0).count();
        let made = if count > MOST_INSTRUCTIONS {
            self.reached.iter().for_each(|bits| bits.store(0, Ordering::Relaxed));
            Ok(Code::empty())
        } else {
            catch_unwind(AssertUnwindSafe(|| Code::translate(&self.image, &reached, self.passes, self.host)))
                .unwrap_or_else(|_| Err("the translator failed".into()))
        };
        let mut state = lock(&self.state);
        match made {
            Ok(code) => {
                state.code = Arc::new(code);
                let threshold = self.threshold.load(Ordering::Relaxed);
                self.threshold.store((threshold * 2).min(LAST_THRESHOLD), Ordering::Relaxed);
                self.generation.fetch_add(1, Ordering::Release);
            }
            Err(reason) => {
                state.refused = true;
                // Nobody asks again.
                self.threshold.store(u64::MAX, Ordering::Relaxed);
                warn_once(&reason);
            }
        }
        state.translating = false;
        self.done.notify_all();
    }
}

/// Says once in this process that games run without translation.
fn warn_once(reason: &str) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        eprintln!(
            "rollcart: 6502 code is interpreted, since it could not be translated on this host: {reason}. Results are \
             the same, slower; engine_options={{\"jit\": False}} or {SWITCHED_OFF}=jit ends this warning"
        );
    });
}
