//! Interleaved rounds. A shared machine drifts by more than the differences that matter, so every side runs
//! in every round and only figures of the same round are compared.

use crate::failure::Failure;

/// Runs A, B, …, A, B, … and returns each side's figures, round by round.
pub(crate) fn interleaved<S, F>(
    rounds: usize,
    sides: &[S],
    mut run: impl FnMut(&S) -> Result<F, Failure>,
) -> Result<Vec<Vec<F>>, Failure> {
    let mut figures: Vec<Vec<F>> = sides.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for _ in 0..rounds {
        for (side, kept) in sides.iter().zip(&mut figures) {
            kept.push(run(side)?);
        }
    }
    Ok(figures)
}

/// A median with the extremes beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

// === impl Spread ===

impl Spread {
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
        Self {
            median: f64::midpoint(at(low), at(high)),
            least: at(0),
            most: at(sorted.len().saturating_sub(1)),
        }
    }

    /// One side over the other, round by round.
    pub(crate) fn of_ratios(over: &[f64], under: &[f64]) -> Self {
        Self::of(over.iter().zip(under).map(|(over, under)| over / under))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let spread = Spread::of_ratios(&[2.0, 20.0, 9.0], &[1.0, 10.0, 3.0]);
        assert_eq!(spread, Spread { median: 2.0, least: 2.0, most: 3.0 });
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert!((Spread::of([4.0, 1.0, 3.0, 2.0]).median - 2.5).abs() < f64::EPSILON);
    }
}
