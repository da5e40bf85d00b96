//! What a scenario does to a value: measure it, then apply an operator.
//!
//! Names and meanings are stable-retro's. What the result is worth is `scenario`'s business.

/// The value itself, or its change since the frame before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measurement {
    Absolute,
    Delta,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    NegativeEqual,
    LessThan,
    GreaterThan,
    LessOrEqual,
    GreaterOrEqual,
    NonZero,
    Zero,
    Positive,
    Negative,
    Sign,
}

const OPERATORS: [(&str, Operator); 12] = [
    ("equal", Operator::Equal),
    ("not-equal", Operator::NotEqual),
    ("negative-equal", Operator::NegativeEqual),
    ("less-than", Operator::LessThan),
    ("greater-than", Operator::GreaterThan),
    ("less-or-equal", Operator::LessOrEqual),
    ("greater-or-equal", Operator::GreaterOrEqual),
    ("nonzero", Operator::NonZero),
    ("zero", Operator::Zero),
    ("positive", Operator::Positive),
    ("negative", Operator::Negative),
    ("sign", Operator::Sign),
];

impl Operator {
    /// `None` for a name that stable-retro does not know: it lets the value through unchanged.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        OPERATORS.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// 1 or 0 for a comparison, -1, 0 or 1 for `sign`.
    #[must_use]
    pub fn apply(self, value: i64, reference: i64) -> i64 {
        i64::from(match self {
            Self::Sign => return value.signum(),
            Self::Equal => value == reference,
            Self::NotEqual => value != reference,
            Self::NegativeEqual => value == reference.wrapping_neg(),
            Self::LessThan => value < reference,
            Self::GreaterThan => value > reference,
            Self::LessOrEqual => value <= reference,
            Self::GreaterOrEqual => value >= reference,
            Self::NonZero => value != 0,
            Self::Zero => value == 0,
            Self::Positive => value > 0,
            Self::Negative => value < 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Operator;

    /// Operator, value, reference, result.
    const TABLE: [(&str, i64, i64, i64); 18] = [
        ("equal", 5, 5, 1),
        ("equal", 5, 4, 0),
        ("not-equal", 5, 4, 1),
        ("negative-equal", -5, 5, 1),
        ("negative-equal", 5, 5, 0),
        ("less-than", 4, 5, 1),
        ("less-than", 5, 5, 0),
        ("greater-than", 6, 5, 1),
        ("less-or-equal", 5, 5, 1),
        ("greater-or-equal", 4, 5, 0),
        ("nonzero", -1, 0, 1),
        ("zero", 0, 9, 1),
        ("positive", 3, 9, 1),
        ("positive", -3, 0, 0),
        ("negative", -3, 0, 1),
        ("sign", -7, 0, -1),
        ("sign", 7, 0, 1),
        ("sign", 0, 0, 0),
    ];

    #[test]
    fn every_operator_gives_its_documented_result() {
        for (name, value, reference, result) in TABLE {
            assert_eq!(
                Operator::parse(name).expect(name).apply(value, reference),
                result,
                "{name} {value} {reference}"
            );
        }
        assert_eq!(Operator::parse("almost"), None);
    }
}
