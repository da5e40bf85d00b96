//! A lane's last observations, and the image that they make together: newest last.
//!
//! One ring of planes a lane. Nothing of an episode outlives its reset: the first observation fills every place.
//! Kept lanes (`kept`) share their observations: a shared one is left to the others and replaced, never changed.

use super::Layout;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) struct Stack {
    /// Observations of equal length.
    places: Box<[Arc<[u8]>]>,
    /// Place of the newest observation.
    newest: usize,
}

impl Stack {
    pub(crate) fn new(frame: usize, depth: usize) -> Self {
        Self { places: (0..depth).map(|_| vec![0; frame].into()).collect(), newest: 0 }
    }

    /// The place for the next observation, which becomes the newest; the caller fills it.
    pub(crate) fn push(&mut self) -> &mut [u8] {
        self.newest = (self.newest + 1) % self.places.len();
        Arc::make_mut(&mut self.places[self.newest])
    }

    /// Makes every observation equal to the newest: the start of an episode.
    pub(crate) fn repeat_newest(&mut self) {
        let newest = Arc::clone(&self.places[self.newest]);
        for (_, place) in self.places.iter_mut().enumerate().filter(|(at, _)| *at != self.newest) {
            Arc::make_mut(place).copy_from_slice(&newest);
        }
    }

    /// Makes every observation but the newest black.
    pub(crate) fn blacken_older(&mut self) {
        for (_, place) in self.places.iter_mut().enumerate().filter(|(at, _)| *at != self.newest) {
            Arc::make_mut(place).fill(0);
        }
    }

    /// The observations, oldest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let depth = self.places.len();
        (1..=depth).map(move |age| &*self.places[(self.newest + age) % depth])
    }

    /// The observations in a row, oldest first.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.frames().collect::<Vec<_>>().concat()
    }

    /// A stack of these observations: oldest first, `depth` of equal length.
    pub(crate) fn from_bytes(oldest_first: &[u8], depth: usize) -> Self {
        Self {
            places: oldest_first.chunks_exact(oldest_first.len() / depth).map(Arc::from).collect(),
            newest: depth - 1,
        }
    }

    /// Becomes equal to another stack of the same shape, whose observations it shares.
    pub(crate) fn share(&mut self, other: &Self) {
        self.places.clone_from(&other.places);
        self.newest = other.newest;
    }

    /// Writes the stacked image; `channels` is that of one observation.
    pub(crate) fn write(&self, layout: Layout, channels: usize, out: &mut [u8]) {
        match layout {
            Layout::Chw => {
                for (frame, out) in self.frames().zip(out.chunks_exact_mut(self.places[0].len())) {
                    out.copy_from_slice(frame);
                }
            }
            Layout::Hwc => {
                let (pixels, total) = (self.places[0].len() / channels, channels * self.places.len());
                for (age, frame) in self.frames().enumerate() {
                    for (channel, plane) in frame.chunks_exact(pixels).enumerate() {
                        let first = age * channels + channel;
                        out[first..].iter_mut().step_by(total).zip(plane).for_each(|(out, &value)| *out = value);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::Stack;

    fn written(stack: &Stack, layout: Layout, channels: usize) -> Vec<u8> {
        let mut out = vec![0; stack.bytes().len()];
        stack.write(layout, channels, &mut out);
        out
    }

    #[test]
    fn the_first_observation_repeats_and_the_newest_comes_last() {
        let mut stack = Stack::new(2, 3);
        stack.push().copy_from_slice(&[1, 2]);
        stack.repeat_newest();
        assert_eq!(written(&stack, Layout::Chw, 1), [1, 2, 1, 2, 1, 2]);
        stack.push().copy_from_slice(&[3, 4]);
        stack.push().copy_from_slice(&[5, 6]);
        assert_eq!(written(&stack, Layout::Chw, 1), [1, 2, 3, 4, 5, 6]);
        assert_eq!(written(&stack, Layout::Hwc, 1), [1, 3, 5, 2, 4, 6]);
        stack.blacken_older();
        assert_eq!(written(&stack, Layout::Chw, 1), [0, 0, 0, 0, 5, 6]);
    }

    #[test]
    fn channels_of_one_observation_stay_together() {
        let mut stack = Stack::new(6, 2);
        stack.push().copy_from_slice(&[1, 2, 11, 12, 21, 22]);
        stack.push().copy_from_slice(&[3, 4, 13, 14, 23, 24]);
        assert_eq!(written(&stack, Layout::Chw, 3), [1, 2, 11, 12, 21, 22, 3, 4, 13, 14, 23, 24]);
        assert_eq!(written(&stack, Layout::Hwc, 3), [1, 11, 21, 3, 13, 23, 2, 12, 22, 4, 14, 24]);
    }

    #[test]
    fn what_was_saved_oldest_first_loads_again() {
        let mut stack = Stack::new(1, 3);
        (1..=4).for_each(|value| stack.push()[0] = value);
        let saved = stack.bytes();
        let other = Stack::from_bytes(&saved, 3);
        assert_eq!(saved, [2, 3, 4]);
        assert_eq!(written(&other, Layout::Chw, 1), saved);
    }

    #[test]
    fn what_one_shares_with_another_neither_of_them_changes() {
        let (mut one, mut other) = (Stack::new(1, 3), Stack::new(1, 3));
        (1..=3).for_each(|value| one.push()[0] = value);
        other.share(&one);
        one.push()[0] = 4;
        assert_eq!((one.bytes(), other.bytes()), (vec![2, 3, 4], vec![1, 2, 3]));
        other.push()[0] = 9;
        other.repeat_newest();
        assert_eq!((one.bytes(), other.bytes()), (vec![2, 3, 4], vec![9, 9, 9]));
    }
}
