//! What a batch takes from the allocator: nothing in a step, and little for a lane.
//!
//! One test, since the counts are of the whole process, but for the thread that waits for the test: it may print.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rollcart::emulator::cart::Cartridge;
use rollcart::emulator::game::Game;
use rollcart::vec_env::{Batch, Buffers, Config, Start};
use serde_json::{Value, json};

/// Memory of a lane, its observations aside.
const MOST_BYTES_A_LANE: usize = 16 << 10;
/// What the allocator has beside the lanes' own figures: arrays of the batch, tables of its threads.
const BATCH_BYTES_A_LANE: usize = 512;
const LANES: usize = 8;
const STEPS: u32 = 120;
const FRAME_BYTES: usize = 84 * 84;
const STACK: usize = 4;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// The thread that allocated first, the process's: its allocations are not counted while a test has a thread of its own.
static WAITING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Each thread has one, so its address names the thread.
    static THREAD: u8 = const { 0 };
}

fn this_thread() -> usize {
    THREAD.with(|name| std::ptr::from_ref(name) as usize)
}

// SAFETY: everything is handed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let this = this_thread();
        let waiting = WAITING.compare_exchange(0, this, Ordering::SeqCst, Ordering::SeqCst);
        if waiting.is_err_and(|waiting| waiting != this) {
            ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        }
        BYTES.fetch_add(layout.size(), Ordering::SeqCst);
        // SAFETY: as asked.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: as asked.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn file(name: &str) -> Vec<u8> {
    let folder = "python/rollcart/data/stable/CartRunner-Nes-v0";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(name: &str) -> String {
    String::from_utf8(file(name)).expect("the game's files are text")
}

/// The bundled game's four levels on `lanes` lanes.
fn batch(lanes: usize, options: &Value) -> Batch {
    let cart = Arc::new(Cartridge::parse(&file("rom.nes")).expect("the bundled game is a cartridge"));
    let game = Game::compile(&text("data.json"), &text("scenario.json"), &[], 0x2000).expect("its files are in order");
    let mut all = json!({"num_envs": lanes, "noop_reset_max": 30, "max_episode_steps": 100});
    let rows = options.as_object().expect("options are an object").clone();
    all.as_object_mut().expect("so are these").extend(rows);
    let config = Config::read(all, None).expect("the options are in order");
    let start = |level| {
        let name = format!("Level{level}");
        Start::read(&name, Some(&file(&format!("{name}.state"))), &cart).expect("the level is a state")
    };
    Batch::new(&cart, config, game, (1..=4).map(start).collect()).expect("the batch can be made")
}

/// A batch that is being played at random.
struct Played {
    batch: Batch,
    image: Vec<u8>,
    actions: Vec<i64>,
    random: u64,
}

impl Played {
    /// Resets all lanes.
    fn begin(lanes: usize, options: &Value) -> Self {
        let mut game = Self {
            batch: batch(lanes, options),
            image: vec![0; lanes * STACK * FRAME_BYTES],
            actions: vec![0; lanes],
            random: 1,
        };
        let seeds: Vec<_> = (0..lanes as u64).map(Some).collect();
        let buffers = Buffers { image: &mut game.image, ram: &mut [] };
        game.batch.reset(None, &seeds, None, false, buffers, &mut || false).expect("lanes can be reset");
        game
    }

    fn steps(&mut self, count: u32) {
        for _ in 0..count {
            for action in &mut self.actions {
                self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *action = (self.random >> 33) as i64 % 36;
            }
            let buffers = Buffers { image: &mut self.image, ram: &mut [] };
            self.batch.step(None, &self.actions, buffers, &mut || false).expect("lanes can be stepped");
        }
    }
}

#[test]
fn a_step_allocates_nothing_and_a_lane_is_small() {
    assert_ne!(WAITING.load(Ordering::SeqCst), 0, "the allocator is not the counting one");
    if WAITING.load(Ordering::SeqCst) == this_thread() {
        // The test runs on the process's own thread: nobody waits. No thread has this name.
        WAITING.store(1, Ordering::SeqCst);
    }
    // Without translation, which allocates on a thread of its own whenever enough was reached.
    for (threads, mode) in [(1, "NextStep"), (3, "SameStep")] {
        let options = json!({"num_threads": threads, "autoreset_mode": mode, "engine_options": {"jit": false}});
        let mut game = Played::begin(LANES, &options);
        game.steps(STEPS);
        let (allocations, before) = (ALLOCATIONS.load(Ordering::SeqCst), game.batch.profile());
        game.steps(STEPS);
        let (allocations, after) = (ALLOCATIONS.load(Ordering::SeqCst) - allocations, game.batch.profile());
        let episodes = after.work.episodes - before.work.episodes;
        assert_eq!(allocations, 0, "{options}");
        assert!(episodes > 0, "{options}: no episode ended among the steps that were counted");
    }

    let options = json!({"num_threads": 1, "engine_options": {"jit": false}});
    let bytes_of = |lanes| {
        let before = BYTES.load(Ordering::SeqCst);
        let mut game = Played::begin(lanes, &options);
        game.steps(20);
        (BYTES.load(Ordering::SeqCst) - before, game.batch.profile().lane_bytes)
    };
    let ((few, _), (many, figure)) = (bytes_of(8), bytes_of(40));
    // The lane's own, and its place in the caller's array.
    let observations = 2 * STACK * FRAME_BYTES;
    let measured = (many - few) / 32 - observations;
    println!("a lane: {measured} bytes from the allocator, {figure} by profile()");
    assert!(measured <= MOST_BYTES_A_LANE, "{measured}");
    assert!(
        measured.abs_diff(figure) <= BATCH_BYTES_A_LANE,
        "{measured} from the allocator, {figure} by its own count"
    );
}
