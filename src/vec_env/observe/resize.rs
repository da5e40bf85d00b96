//! A plane of bytes brought to another size, in whole numbers, so that every host gives the same bytes.
//!
//! ```text
//! area      output i covers source [i*S/O, max((i+1)*S/O, i*S/O + 1)); value = sum / count, all divisions downwards
//! nearest   source i*S/O
//! bilinear  pixel centres: position p = ((2i+1)*S - O) / 2O, clamped to the edges; weights in 256ths, rounded
//! ```

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Area,
    Nearest,
    Bilinear,
}

/// What one axis reads for each of its outputs.
#[derive(Debug, Clone)]
enum Axis {
    Ranges(Vec<Range<usize>>),
    Points(Vec<usize>),
    /// First source, second source, weight of the second in 256ths.
    Pairs(Vec<(usize, usize, u32)>),
}

/// Resizes planes of one size to another.
#[derive(Debug, Clone)]
pub(crate) struct Resizer {
    source: (usize, usize),
    output: (usize, usize),
    rows: Axis,
    columns: Axis,
    /// For each count of pixels, what to multiply a sum with to divide it by the count.
    reciprocals: Vec<u64>,
}

/// A sum of n bytes, times 2^48/n rounded up, shifted down by 48, is the sum divided by n exactly while
/// 255 * n * n < 2^48; n is at most the pixels of a window. A division would take most of the time of a resize.
const RECIPROCAL_BITS: u32 = 48;
/// 257 rows of bytes still fit into 16 bits.
const MOST_ROWS: usize = 257;

/// What each of `output` areas covers of `source`.
pub(super) fn area_ranges(source: usize, output: usize) -> Vec<Range<usize>> {
    let first = |i: usize| i * source / output;
    (0..output).map(|i| first(i)..first(i + 1).max(first(i) + 1)).collect()
}

/// For each count of pixels up to `most`, what `divide` takes.
pub(super) fn reciprocals(most: usize) -> Vec<u64> {
    (0..=most as u64).map(|n| (1 << RECIPROCAL_BITS) / n.max(1) + 1).collect()
}

/// A sum of bytes divided by their number, given its reciprocal.
#[inline]
pub(super) fn divide(sum: u64, reciprocal: u64) -> u8 {
    ((sum * reciprocal) >> RECIPROCAL_BITS) as u8
}

impl Axis {
    fn new(source: usize, output: usize, algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Area => Self::Ranges(area_ranges(source, output)),
            Algorithm::Nearest => Self::Points((0..output).map(|i| i * source / output).collect()),
            Algorithm::Bilinear => Self::Pairs((0..output).map(|i| pair(i, source, output)).collect()),
        }
    }

    /// The most sources that one output covers.
    fn widest(&self) -> usize {
        match self {
            Self::Ranges(ranges) => ranges.iter().map(Range::len).max().unwrap_or(0),
            Self::Points(_) | Self::Pairs(_) => 0,
        }
    }
}

fn pair(i: usize, source: usize, output: usize) -> (usize, usize, u32) {
    let last = source - 1;
    let Some(position) = ((2 * i + 1) * source).checked_sub(output) else { return (0, 0, 0) };
    let (first, rest) = (position / (2 * output), position % (2 * output));
    if first >= last { (last, last, 0) } else { (first, first + 1, ((rest * 256 + output) / (2 * output)) as u32) }
}

impl Resizer {
    /// # Panics
    /// If a side of either size is 0, or the source has more rows than a sum can hold.
    pub(crate) fn new(source: (usize, usize), output: (usize, usize), algorithm: Algorithm) -> Self {
        assert!(source.0 > 0 && source.1 > 0 && output.0 > 0 && output.1 > 0, "a size has no side of 0");
        assert!(source.0 <= MOST_ROWS, "a window has at most {MOST_ROWS} rows");
        let rows = Axis::new(source.0, output.0, algorithm);
        let columns = Axis::new(source.1, output.1, algorithm);
        let most = rows.widest() * columns.widest();
        Self { source, output, rows, columns, reciprocals: reciprocals(most) }
    }

    /// Height and width that come out.
    pub(crate) fn output(&self) -> (usize, usize) {
        self.output
    }

    /// Reads `plane` (source height x width) and fills `out` (output height x width).
    pub(crate) fn resize(&self, plane: &[u8], sums: &mut Vec<u16>, out: &mut [u8]) {
        if self.source == self.output {
            out.copy_from_slice(plane);
            return;
        }
        let rows_of = |y: usize| &plane[y * self.source.1..(y + 1) * self.source.1];
        let out_rows = out.chunks_exact_mut(self.output.1);
        match (&self.rows, &self.columns) {
            (Axis::Ranges(rows), Axis::Ranges(columns)) => {
                for (range, out) in rows.iter().zip(out_rows) {
                    sums.clear();
                    sums.resize(self.source.1, 0);
                    for y in range.clone() {
                        sums.iter_mut().zip(rows_of(y)).for_each(|(sum, &value)| *sum += u16::from(value));
                    }
                    for (columns, out) in columns.iter().zip(out) {
                        let sum: u64 = sums[columns.clone()].iter().map(|&sum| u64::from(sum)).sum();
                        *out = divide(sum, self.reciprocals[range.len() * columns.len()]);
                    }
                }
            }
            (Axis::Points(rows), Axis::Points(columns)) => {
                for (&y, out) in rows.iter().zip(out_rows) {
                    let row = rows_of(y);
                    columns.iter().zip(out).for_each(|(&x, out)| *out = row[x]);
                }
            }
            (Axis::Pairs(rows), Axis::Pairs(columns)) => {
                for (&(top, bottom, down), out) in rows.iter().zip(out_rows) {
                    let (top, bottom) = (rows_of(top), rows_of(bottom));
                    for (&(left, right, across), out) in columns.iter().zip(out) {
                        let blend = |row: &[u8]| (256 - across) * u32::from(row[left]) + across * u32::from(row[right]);
                        *out = (((256 - down) * blend(top) + down * blend(bottom) + (1 << 15)) >> 16) as u8;
                    }
                }
            }
            _ => unreachable!("both axes are made by one algorithm"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, Resizer};
    use proptest::prelude::*;

    fn resize(plane: &[u8], source: (usize, usize), output: (usize, usize), algorithm: Algorithm) -> Vec<u8> {
        let mut out = vec![0; output.0 * output.1];
        Resizer::new(source, output, algorithm).resize(plane, &mut Vec::new(), &mut out);
        out
    }

    /// The formula of the module's head, pixel by pixel.
    fn naive_area(plane: &[u8], (h, w): (usize, usize), (oh, ow): (usize, usize)) -> Vec<u8> {
        let mut out = Vec::new();
        for i in 0..oh {
            for j in 0..ow {
                let (y0, x0) = (i * h / oh, j * w / ow);
                let (y1, x1) = (((i + 1) * h / oh).max(y0 + 1), ((j + 1) * w / ow).max(x0 + 1));
                let sum: usize =
                    (y0..y1).flat_map(|y| (x0..x1).map(move |x| (y, x))).map(|(y, x)| plane[y * w + x] as usize).sum();
                out.push((sum / ((y1 - y0) * (x1 - x0))) as u8);
            }
        }
        out
    }

    fn naive_bilinear(plane: &[u8], (h, w): (usize, usize), (oh, ow): (usize, usize)) -> Vec<u8> {
        let at = |i: usize, s: usize, o: usize| {
            let p = (2 * i as i64 + 1) * s as i64 - o as i64;
            let p = p.clamp(0, (s as i64 - 1) * 2 * o as i64);
            let first = p / (2 * o as i64);
            (first as usize, (first as usize + 1).min(s - 1), ((p % (2 * o as i64)) * 256 + o as i64) / (2 * o as i64))
        };
        let mut out = Vec::new();
        for i in 0..oh {
            for j in 0..ow {
                let ((y0, y1, wy), (x0, x1, wx)) = (at(i, h, oh), at(j, w, ow));
                let v = |y: usize, x: usize| i64::from(plane[y * w + x]);
                let top = (256 - wx) * v(y0, x0) + wx * v(y0, x1);
                let bottom = (256 - wx) * v(y1, x0) + wx * v(y1, x1);
                out.push((((256 - wy) * top + wy * bottom + 32768) >> 16) as u8);
            }
        }
        out
    }

    fn cases() -> impl Strategy<Value = (Vec<u8>, (usize, usize), (usize, usize))> {
        (1usize..40, 1usize..40, 1usize..50, 1usize..50)
            .prop_flat_map(|(h, w, oh, ow)| (prop::collection::vec(any::<u8>(), h * w), Just((h, w)), Just((oh, ow))))
    }

    proptest! {
        #[test]
        fn area_equals_the_formula_for_any_sizes((plane, source, output) in cases()) {
            prop_assert_eq!(resize(&plane, source, output, Algorithm::Area), naive_area(&plane, source, output));
        }

        #[test]
        fn one_output_of_a_whole_window_divides_exactly(plane in prop::collection::vec(any::<u8>(), 224 * 240)) {
            prop_assert_eq!(resize(&plane, (224, 240), (1, 1), Algorithm::Area), naive_area(&plane, (224, 240), (1, 1)));
        }

        #[test]
        fn bilinear_equals_the_formula_for_any_sizes((plane, source, output) in cases()) {
            prop_assert_eq!(resize(&plane, source, output, Algorithm::Bilinear), naive_bilinear(&plane, source, output));
        }

        #[test]
        fn nearest_takes_the_pixel_under_the_outputs_first_corner((plane, source, output) in cases()) {
            let out = resize(&plane, source, output, Algorithm::Nearest);
            for (k, &value) in out.iter().enumerate() {
                let (i, j) = (k / output.1, k % output.1);
                prop_assert_eq!(value, plane[i * source.0 / output.0 * source.1 + j * source.1 / output.1]);
            }
        }

        #[test]
        fn a_constant_plane_stays_constant(value: u8, (_, source, output) in cases()) {
            let plane = vec![value; source.0 * source.1];
            for algorithm in [Algorithm::Area, Algorithm::Nearest, Algorithm::Bilinear] {
                prop_assert!(resize(&plane, source, output, algorithm).iter().all(|&v| v == value));
            }
        }
    }
}
