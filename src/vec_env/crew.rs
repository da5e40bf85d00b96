//! The threads of an environment: asleep between calls, so that another process gets the processor.
//!
//! A call opens a door, wakes who sleeps, works itself, closes the door and waits for those who came in. A thread that got
//! no processor in time finds the door closed, and nobody waits for it: on a busy machine a call is never later than its
//! caller would be alone. Nothing is allocated in a call and no lock is taken.
//!
//! After some work a thread looks at the door a little while before it sleeps: calls that follow each other closely then
//! need no wake-up.

use std::any::Any;
use std::cell::UnsafeCell;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};

/// Looks at what is waited for before sleep: a few microseconds in all.
const LOOKS: u32 = 64;

/// The door's lowest bits count who is inside, then comes whether it is open, then the number of the call.
const INSIDE: u64 = 0xFFFF;
const OPEN: u64 = 0x1_0000;
const CALL_SHIFT: u32 = 17;

/// What the threads do in a call, each with its number, from 1 on; and who waits for them.
struct Job {
    work: *const (dyn Fn(usize) + Sync),
    caller: Thread,
}

struct Shared {
    door: AtomicU64,
    /// Written while the door is closed and nobody inside; read by those inside.
    job: UnsafeCell<Option<Job>>,
    asleep: Box<[AtomicBool]>,
    ended: AtomicBool,
    has_panicked: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is the only part that is not Sync, and the door orders all uses of it: see its comment.
unsafe impl Sync for Shared {}
// SAFETY: `work` points to something that is Sync, and is followed by those inside alone.
unsafe impl Send for Shared {}

/// Threads that wait for calls. Dropping it ends them, and waits for none: after a fork they do not exist.
pub(super) struct Crew {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
}

impl Crew {
    /// Starts `others` threads beside the caller's own.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(super) fn new(others: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            door: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            asleep: (0..others).map(|_| AtomicBool::new(false)).collect(),
            ended: AtomicBool::new(false),
            has_panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut crew = Self { shared, threads: Vec::with_capacity(others) };
        for number in 1..=others {
            let shared = Arc::clone(&crew.shared);
            let builder = thread::Builder::new().name(format!("rollcart-{number}"));
            let handle = builder.spawn(move || shared.serve(number))?;
            crew.threads.push(handle.thread().clone());
        }
        Ok(crew)
    }

    /// Runs `own` here with the first state, and `others` on those threads that come in time, thread n with state n;
    /// returns when all of them are done.
    ///
    /// # Panics
    /// If one of them panicked, with its payload, or if there are fewer states than threads.
    pub(super) fn run<S: Send>(
        &mut self,
        states: &mut [S],
        own: impl FnOnce(&mut S),
        others: impl Fn(usize, &mut S) + Sync,
    ) {
        assert!(states.len() > self.threads.len(), "every thread has a state");
        let (first, rest) = states.split_first_mut().expect("the caller has one");
        if self.threads.is_empty() {
            return own(first);
        }
        let rest = States(rest.as_mut_ptr());
        let work = |number: usize| {
            // SAFETY: `number` is from 1 to the number of threads, below the number of states; a thread comes in once a
            // call, so nobody else has this state; the states outlive the call.
            others(number, unsafe { &mut *rest.at(number - 1) });
        };
        let erased: &(dyn Fn(usize) + Sync) = &work;
        // SAFETY: only the lifetime changes. `Call::drop` returns when nobody is inside any more, and it runs before
        // `work` goes, also when `own` panics.
        let work: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(erased) };
        let call = self.shared.open(Job { work, caller: thread::current() });
        for (asleep, thread) in self.shared.asleep.iter().zip(&self.threads) {
            if asleep.swap(false, Ordering::SeqCst) {
                thread.unpark();
            }
        }
        own(first);
        drop(call);
        if self.shared.has_panicked.swap(false, Ordering::Relaxed) {
            let panic = self.shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
            resume_unwind(panic.expect("it is put there first"));
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.threads.iter().for_each(Thread::unpark);
    }
}

/// The states of the threads.
struct States<S>(*mut S);

impl<S> States<S> {
    /// Where a state is; a method, so that closures hold all of `self`.
    fn at(&self, index: usize) -> *mut S {
        self.0.wrapping_add(index)
    }
}

// SAFETY: each thread uses its own state alone, which may be sent to it.
unsafe impl<S: Send> Sync for States<S> {}

/// An open door; dropping it closes the door and waits for those inside.
struct Call<'a>(&'a Shared);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let door = &self.0.door;
        door.fetch_and(!OPEN, Ordering::AcqRel);
        let mut looks = 0;
        while door.load(Ordering::Acquire) & INSIDE > 0 {
            if looks < LOOKS {
                looks += 1;
                look_again(looks);
            } else {
                thread::park();
            }
        }
    }
}

/// The first looks keep the processor, later ones offer it to others.
fn look_again(looks: u32) {
    if looks < LOOKS / 2 { std::hint::spin_loop() } else { thread::yield_now() }
}

impl Shared {
    fn open(&self, job: Job) -> Call<'_> {
        // SAFETY: the door is closed and nobody inside: the last call has waited for that.
        unsafe { *self.job.get() = Some(job) };
        let call = (self.door.load(Ordering::Relaxed) >> CALL_SHIFT) + 1;
        self.door.store(call << CALL_SHIFT | OPEN, Ordering::SeqCst);
        Call(self)
    }

    /// A thread's life.
    fn serve(&self, number: usize) {
        let mut last = 0;
        while let Some(call) = self.wait(number, last) {
            last = call;
            if self.enter(call) {
                self.work(number);
            }
        }
    }

    /// The number of a call behind `last` whose door is open; `None` when there will be none any more.
    fn wait(&self, number: usize, last: u64) -> Option<u64> {
        let asleep = &self.asleep[number - 1];
        let mut looks = 0;
        loop {
            let door = self.door.load(Ordering::SeqCst);
            if self.ended.load(Ordering::SeqCst) {
                return None;
            }
            if door & OPEN != 0 && door >> CALL_SHIFT != last {
                asleep.store(false, Ordering::Relaxed);
                return Some(door >> CALL_SHIFT);
            }
            looks += 1;
            match looks.cmp(&LOOKS) {
                Less => look_again(looks),
                // One more look follows: who opens the door from now on sees the flag.
                Equal => asleep.store(true, Ordering::SeqCst),
                Greater => {
                    thread::park();
                    looks = LOOKS - 1;
                }
            }
        }
    }

    fn enter(&self, call: u64) -> bool {
        let open = |door: u64| (door & OPEN != 0 && door >> CALL_SHIFT == call).then_some(door + 1);
        self.door.fetch_update(Ordering::AcqRel, Ordering::Relaxed, open).is_ok()
    }

    /// Does the call's work, inside.
    fn work(&self, number: usize) {
        // SAFETY: this thread is inside: the job is not written, and what it points to is still there.
        let Job { work, caller } = unsafe { (*self.job.get()).as_ref().expect("an open door has a job") };
        // SAFETY: as above.
        let work = unsafe { &**work };
        let caller = caller.clone();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(number))) {
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            self.has_panicked.store(true, Ordering::Relaxed);
        }
        // The last one to leave behind a closed door is waited for.
        if self.door.fetch_sub(1, Ordering::AcqRel) & (OPEN | INSIDE) == 1 {
            caller.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Crew;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Lets `threads` threads meet in one call, which needs all of them inside at once.
    fn meet(crew: &mut Crew, states: &mut [usize]) {
        let barrier = Barrier::new(states.len());
        let join = |state: &mut usize| {
            barrier.wait();
            *state += 1;
        };
        crew.run(states, join, |_, state| join(state));
    }

    #[test]
    fn all_threads_come_when_they_are_waited_for_each_with_its_state() {
        let (mut crew, mut states) = (Crew::new(3).unwrap(), [0; 4]);
        for turn in 1..=200 {
            meet(&mut crew, &mut states);
            assert_eq!(states, [turn; 4]);
        }
    }

    #[test]
    fn a_call_that_needs_nobody_waits_for_nobody_and_work_is_done_once() {
        let (mut crew, mut states) = (Crew::new(2).unwrap(), [0_usize; 3]);
        let next = AtomicUsize::new(0);
        let take = |state: &mut usize| {
            while next.fetch_add(1, Ordering::Relaxed) < 50 {
                *state += 1;
            }
        };
        for turn in 1..=2000 {
            next.store(0, Ordering::Relaxed);
            crew.run(&mut states, take, |_, state| take(state));
            assert_eq!(states.iter().sum::<usize>(), 50 * turn);
        }
    }

    #[test]
    fn a_panic_of_any_thread_comes_out_and_the_crew_goes_on() {
        let (mut crew, mut states) = (Crew::new(1).unwrap(), [0; 2]);
        for panicking in [0, 1] {
            let barrier = Barrier::new(2);
            let fail = |number: usize| {
                barrier.wait();
                assert_ne!(number, panicking, "as asked");
            };
            let run = || crew.run(&mut states, |_| fail(0), |number, _| fail(number));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
            meet(&mut crew, &mut states);
        }
        assert_eq!(states, [2, 2]);
    }
}
