//! The sizes of the first envelopes of a start: the canary. Pure.

/// Operations in the canary's envelopes.
const STEPS: [usize; 4] = [1, 5, 20, 50];

/// Further single operations after a first one that was refused.
const MAX_SINGLES: usize = 3;

/// How large the next envelope may be.
#[derive(Debug)]
pub(super) struct WarmUp {
    largest: usize,
    step: usize,
    /// Single operations that may still follow a refused one.
    further: usize,
}

impl WarmUp {
    /// A ramp up to envelopes of `largest` operations.
    pub(super) fn new(largest: usize) -> Self {
        Self { largest: largest.max(1), step: 0, further: MAX_SINGLES }
    }

    /// The most operations of the next envelope.
    pub(super) fn batch_size(&self) -> usize {
        STEPS.get(self.step).map_or(self.largest, |&size| size.min(self.largest))
    }

    /// Whether the next envelope belongs to the canary: it waits for the answer to the one before.
    pub(super) fn is_warming_up(&self) -> bool {
        self.step < STEPS.len()
    }

    /// Takes another single operation after one that was refused, and the next step once there were enough of them.
    pub(super) fn allow_single(&mut self) {
        if self.step > 0 || !self.return_to_singles() {
            self.next_step();
        }
    }

    /// Goes back to single operations, because one that had seemed to be taken was refused; tells whether one may follow.
    pub(super) fn return_to_singles(&mut self) -> bool {
        let more = self.further > 0;
        if more {
            self.further -= 1;
            self.step = 0;
        }
        more
    }

    /// Takes the next step after an answer; steps that would not grow are left out.
    pub(super) fn next_step(&mut self) {
        let size = self.batch_size();
        while self.is_warming_up() {
            self.step += 1;
            if self.batch_size() > size {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_sizes(largest: usize) -> Vec<usize> {
        let mut ramp = WarmUp::new(largest);
        let mut sizes = Vec::new();
        while ramp.is_warming_up() {
            sizes.push(ramp.batch_size());
            ramp.next_step();
        }
        assert_eq!(ramp.batch_size(), largest);
        sizes
    }

    #[test]
    fn warm_up_grows_from_one_operation_to_the_batch() {
        assert_eq!(batch_sizes(100), [1, 5, 20, 50]);
        assert_eq!(batch_sizes(20), [1, 5, 20]);
        assert_eq!(batch_sizes(7), [1, 5, 7]);
        assert_eq!(batch_sizes(1), [1]);
    }

    #[test]
    fn rejected_first_operation_is_followed_by_three_at_most() {
        let mut ramp = WarmUp::new(100);
        let refused: Vec<usize> = (0..6).map(|_| (ramp.batch_size(), ramp.allow_single()).0).collect();
        assert_eq!(refused, [1, 1, 1, 1, 5, 20]);
        let mut small = WarmUp::new(1);
        (0..3).for_each(|_| small.allow_single());
        assert!(small.is_warming_up());
        small.allow_single();
        assert!(!small.is_warming_up());
    }
}
