//! The eight buttons of a standard pad, one bit each, in the order in which the pad shifts them out
//! (nesdev wiki, "Standard controller").

/// A set of held buttons: `A`=1 `B`=2 `SELECT`=4 `START`=8 `UP`=16 `DOWN`=32 `LEFT`=64 `RIGHT`=128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Buttons(pub u8);

impl Buttons {
    pub const NONE: Self = Self(0);
    pub const A: Self = Self(1);
    pub const B: Self = Self(2);
    pub const SELECT: Self = Self(4);
    pub const START: Self = Self(8);
    pub const UP: Self = Self(16);
    pub const DOWN: Self = Self(32);
    pub const LEFT: Self = Self(64);
    pub const RIGHT: Self = Self(128);

    /// Every button with its name, in bit order.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("A", Self::A),
        ("B", Self::B),
        ("SELECT", Self::SELECT),
        ("START", Self::START),
        ("UP", Self::UP),
        ("DOWN", Self::DOWN),
        ("LEFT", Self::LEFT),
        ("RIGHT", Self::RIGHT),
    ];

    /// The button of that name (any case), if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, button)| button)
    }

    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Buttons {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Buttons;

    #[test]
    fn every_name_has_its_own_bit_in_shift_order() {
        for (bit, (name, button)) in Buttons::NAMES.iter().enumerate() {
            assert_eq!(button.0, 1 << bit);
            assert_eq!(Buttons::named(&name.to_lowercase()), Some(*button));
        }
        assert_eq!(Buttons::named("TURBO"), None);
    }

    #[test]
    fn a_set_contains_what_was_joined() {
        let held = Buttons::A | Buttons::RIGHT;
        assert_eq!(held.0, 0x81);
        assert!(held.contains(Buttons::RIGHT) && !held.contains(Buttons::LEFT));
    }
}
