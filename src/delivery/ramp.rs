//! The sizes of the first envelopes of a start: the canary. Pure.

/// Operations in the canary's envelopes.
const STEPS: [usize; 4] = [1, 5, 20, 50];

/// Further single operations after a first one that was refused.
const FURTHER: usize = 3;

/// How large the next envelope may be.
#[derive(Debug)]
pub(super) struct Ramp {
    largest: usize,
    step: usize,
    /// Single operations that may still follow a refused one.
    further: usize,
}

impl Ramp {
    /// A ramp up to envelopes of `largest` operations.
    pub(super) fn new(largest: usize) -> Self {
        Self { largest: largest.max(1), step: 0, further: FURTHER }
    }

    /// The most operations of the next envelope.
    pub(super) fn size(&self) -> usize {
        STEPS.get(self.step).map_or(self.largest, |&size| size.min(self.largest))
    }

    /// Whether the next envelope belongs to the canary: it waits for the answer to the one before.
    pub(super) fn is_canary(&self) -> bool {
        self.step < STEPS.len()
    }

    /// Takes another single operation after one that was refused, and the next step once there were enough of them.
    pub(super) fn again(&mut self) {
        if self.step > 0 || !self.back() {
            self.advance();
        }
    }

    /// Goes back to single operations, because one that had seemed to be taken was refused; tells whether one may follow.
    pub(super) fn back(&mut self) -> bool {
        let more = self.further > 0;
        if more {
            self.further -= 1;
            self.step = 0;
        }
        more
    }

    /// Takes the next step after an answer; steps that would not grow are left out.
    pub(super) fn advance(&mut self) {
        let size = self.size();
        while self.is_canary() {
            self.step += 1;
            if self.size() > size {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(largest: usize) -> Vec<usize> {
        let mut ramp = Ramp::new(largest);
        let mut sizes = Vec::new();
        while ramp.is_canary() {
            sizes.push(ramp.size());
            ramp.advance();
        }
        assert_eq!(ramp.size(), largest);
        sizes
    }

    #[test]
    fn a_start_grows_from_one_operation_to_the_batch() {
        assert_eq!(sizes(100), [1, 5, 20, 50]);
        assert_eq!(sizes(20), [1, 5, 20]);
        assert_eq!(sizes(7), [1, 5, 7]);
        assert_eq!(sizes(1), [1]);
    }

    #[test]
    fn a_refused_first_operation_is_followed_by_three_more_at_most() {
        let mut ramp = Ramp::new(100);
        let refused: Vec<usize> = (0..6).map(|_| (ramp.size(), ramp.again()).0).collect();
        assert_eq!(refused, [1, 1, 1, 1, 5, 20]);
        let mut small = Ramp::new(1);
        (0..3).for_each(|_| small.again());
        assert!(small.is_canary());
        small.again();
        assert!(!small.is_canary());
    }
}
