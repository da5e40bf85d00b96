//! Palette RAM at PPU $3F00-$3F1F: four background palettes, four sprite palettes. Each fourth entry of the
//! sprites' half is the background's.

#[derive(Clone, Copy, Default)]
pub(in super::super) struct PaletteRam {
    pub bytes: [u8; 32],
}

fn index(address: u16) -> usize {
    let entry = usize::from(address & 0x1F);
    if entry & 0x13 == 0x10 { entry & 0x0F } else { entry }
}

impl PaletteRam {
    pub(super) fn read(&self, address: u16) -> u8 {
        self.bytes[index(address)]
    }

    /// Six bits; the mirrored entries are kept equal, so that `bytes` reads as the hardware does.
    pub(super) fn write(&mut self, address: u16, value: u8) {
        let entry = index(address);
        self.bytes[entry] = value & 0x3F;
        if entry & 3 == 0 {
            self.bytes[entry ^ 0x10] = value & 0x3F;
        }
    }

    /// The colours on the screen by pixel value: 0-15 background, 16-31 sprites; transparent ones are the
    /// backdrop. `and` is $30 for grey scale, else $3F.
    pub(in super::super) fn colours(&self, and: u8) -> [u8; 32] {
        std::array::from_fn(|pixel| self.colour(pixel as u8) & and)
    }

    /// The colour of one pixel value.
    #[inline]
    pub(super) fn colour(&self, pixel: u8) -> u8 {
        self.bytes[if pixel & 3 == 0 { 0 } else { usize::from(pixel & 0x1F) }]
    }
}

#[cfg(test)]
mod tests {
    use super::PaletteRam;

    #[test]
    fn backdrops_of_sprites_are_the_backgrounds() {
        let mut palette = PaletteRam::default();
        palette.write(0x3F10, 0x21);
        palette.write(0x3F04, 0xFF);
        assert_eq!([0x3F00, 0x3F10, 0x3F14, 0x3F24].map(|at| palette.read(at)), [0x21, 0x21, 0x3F, 0x3F]);
        assert_eq!(palette.colours(0x30)[4], 0x20);
    }
}
