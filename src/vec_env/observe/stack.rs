//! A lane's last observations, and the image that they make together: newest last.
//!
//! One ring of planes a lane. Nothing of an episode outlives its reset: the first observation fills every place.

use super::Layout;

#[derive(Debug, Clone)]
pub(crate) struct Stack {
    /// `depth` observations of `frame` bytes each.
    bytes: Vec<u8>,
    frame: usize,
    depth: usize,
    /// Place of the newest observation.
    newest: usize,
}

impl Stack {
    pub(crate) fn new(frame: usize, depth: usize) -> Self {
        Self { bytes: vec![0; frame * depth], frame, depth, newest: 0 }
    }

    /// The place for the next observation, which becomes the newest; the caller fills it.
    pub(crate) fn push(&mut self) -> &mut [u8] {
        self.newest = (self.newest + 1) % self.depth;
        &mut self.bytes[self.newest * self.frame..][..self.frame]
    }

    /// Makes every observation equal to the newest: the start of an episode.
    pub(crate) fn repeat_newest(&mut self) {
        let newest = self.newest * self.frame;
        for place in (0..self.depth).filter(|&place| place != self.newest) {
            self.bytes.copy_within(newest..newest + self.frame, place * self.frame);
        }
    }

    /// The observations, oldest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        (1..=self.depth).map(|age| &self.bytes[(self.newest + age) % self.depth * self.frame..][..self.frame])
    }

    /// The observations in a row, oldest first.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.frames().collect::<Vec<_>>().concat()
    }

    /// Takes over observations, oldest first, `frame * depth` bytes.
    pub(crate) fn load(&mut self, oldest_first: &[u8]) {
        self.bytes.copy_from_slice(oldest_first);
        self.newest = self.depth - 1;
    }

    /// Writes the stacked image; `channels` is that of one observation.
    pub(crate) fn write(&self, layout: Layout, channels: usize, out: &mut [u8]) {
        match layout {
            Layout::Chw => {
                for (frame, out) in self.frames().zip(out.chunks_exact_mut(self.frame.max(1))) {
                    out.copy_from_slice(frame);
                }
            }
            Layout::Hwc => {
                let (pixels, total) = (self.frame / channels, channels * self.depth);
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
        let mut out = vec![0; stack.bytes.len()];
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
        let mut other = Stack::new(1, 3);
        other.load(&saved);
        assert_eq!(saved, [2, 3, 4]);
        assert_eq!(written(&other, Layout::Chw, 1), saved);
    }
}
