//! Deals lanes to threads, each once and with its slots of the caller's buffers, without a lock.
//!
//! Every thread has a share of neighbouring lanes, the same in each call, so that their memory stays with its processor; who
//! has finished takes lanes of the others' shares.

use super::lane::{Lane, Rules, Tally};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The observations of all lanes, one after the other; empty where there is none of the kind.
#[derive(Default)]
pub struct Buffers<'a> {
    pub image: &'a mut [u8],
    pub ram: &'a mut [u8],
}

/// The end of a lane's episode that was reset in the same step.
#[derive(Default)]
pub(super) struct Ending {
    pub present: bool,
    pub image: Vec<u8>,
    pub ram: Vec<u8>,
    pub tally: Tally,
}

/// One lane's part of the buffers.
pub(super) struct Slot<'a> {
    pub image: &'a mut [u8],
    pub ram: &'a mut [u8],
}

impl Slot<'_> {
    pub(super) fn fill(&mut self, lane: &Lane, rules: &Rules) {
        if !self.image.is_empty() {
            lane.write_image(rules, self.image);
        }
        if !self.ram.is_empty() {
            lane.write_ram(self.ram);
        }
    }
}

/// A lane with all that belongs to it in a call.
pub(super) struct Dealt<'a> {
    pub index: usize,
    pub lane: &'a mut Lane,
    pub slot: Slot<'a>,
    pub ending: Option<&'a mut Ending>,
}

/// A thread's share: the next lane of it, and its end. Alone in its cache line, and its neighbour.
#[repr(align(128))]
pub(super) struct Share {
    next: AtomicUsize,
    first: usize,
    end: usize,
}

/// Shares of `lanes` lanes for `threads` threads, as equal as may be.
pub(super) fn shares(lanes: usize, threads: usize) -> Vec<Share> {
    let begin = |thread: usize| thread * lanes / threads;
    let share = |thread| Share { next: AtomicUsize::new(0), first: begin(thread), end: begin(thread + 1) };
    (0..threads).map(share).collect()
}

/// A slice cut into parts of equal length, which are taken one by one.
struct Parts<'a, T> {
    start: *mut T,
    length: usize,
    count: usize,
    slice: PhantomData<&'a mut [T]>,
}

impl<'a, T> Parts<'a, T> {
    fn new(slice: &'a mut [T], length: usize) -> Self {
        let count = slice.len().checked_div(length).unwrap_or(usize::MAX);
        Self { start: slice.as_mut_ptr(), length, count, slice: PhantomData }
    }

    /// # Safety
    /// Each part is taken once at most.
    unsafe fn take(&self, index: usize) -> &'a mut [T] {
        assert!(index < self.count, "there is such a part");
        // SAFETY: the part lies within the slice, and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(self.start.wrapping_add(index * self.length), self.length) }
    }
}

// SAFETY: a part is taken by one thread alone, to which its elements may be sent.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

/// All lanes of a call, to be taken.
pub(super) struct Deal<'a> {
    shares: &'a [Share],
    lanes: Parts<'a, Lane>,
    image: Parts<'a, u8>,
    ram: Parts<'a, u8>,
    endings: Option<Parts<'a, Ending>>,
}

impl<'a> Deal<'a> {
    /// `image_bytes` and `ram_bytes` are one lane's; `endings` may be empty.
    pub(super) fn new(
        shares: &'a mut [Share],
        lanes: &'a mut [Lane],
        Buffers { image, ram }: Buffers<'a>,
        (image_bytes, ram_bytes): (usize, usize),
        endings: &'a mut [Ending],
    ) -> Self {
        for share in shares.iter_mut() {
            *share.next.get_mut() = share.first;
        }
        Self {
            shares,
            lanes: Parts::new(lanes, 1),
            image: Parts::new(image, image_bytes),
            ram: Parts::new(ram, ram_bytes),
            endings: (!endings.is_empty()).then(|| Parts::new(endings, 1)),
        }
    }

    /// A lane that nobody has had yet: of the thread's own share, then of others'.
    pub(super) fn next(&self, thread: usize) -> Option<Dealt<'a>> {
        let (others, own) = self.shares.split_at(thread);
        let index = own.iter().chain(others).find_map(|share| {
            // A share that is used up is looked at first: it need not be written to.
            let left = share.next.load(Ordering::Relaxed) < share.end;
            left.then(|| share.next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < share.end)
        })?;
        // SAFETY: shares do not overlap, and each of them gives an index once.
        let (lane, image, ram, ending) = unsafe {
            let ending = self.endings.as_ref().map(|endings| &mut endings.take(index)[0]);
            (&mut self.lanes.take(index)[0], self.image.take(index), self.ram.take(index), ending)
        };
        Some(Dealt { index, lane, slot: Slot { image, ram }, ending })
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_are_neighbours_and_cover_every_lane_once() {
        for (lanes, threads) in [(1, 1), (16, 2), (7, 3), (5, 5), (1000, 7)] {
            let shares = shares(lanes, threads);
            assert_eq!((shares[0].first, shares[threads - 1].end), (0, lanes));
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].first));
            assert!(shares.iter().all(|share| share.end - share.first >= lanes / threads));
        }
    }
}
