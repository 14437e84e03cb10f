//! A chart that fits into a line: a sign for each number, as high as it is among them. Pure.

/// From the lowest to the highest.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Nothing at all.
const NOTHING: char = '·';

/// The numbers as signs, in their order.
pub(super) fn spark(numbers: &[u64]) -> String {
    let most = numbers.iter().copied().max().unwrap_or_default();
    let height = |number: u64| {
        let steps = (u128::from(number) * HEIGHTS.len() as u128).div_ceil(u128::from(most.max(1)));
        usize::try_from(steps).ok().and_then(|step| HEIGHTS.get(step.checked_sub(1)?)).copied().unwrap_or(NOTHING)
    };
    numbers.iter().map(|number| height(*number)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_most_is_the_highest_and_nothing_is_a_point() {
        assert_eq!(spark(&[0, 1, 4, 8, 7]), "·▁▄█▇");
        assert_eq!(spark(&[0, 0]), "··");
        assert_eq!(spark(&[]), "");
    }

    proptest! {
        #[test]
        fn each_number_has_a_sign_and_more_is_never_lower(numbers in proptest::collection::vec(any::<u64>(), 1..40)) {
            let signs: Vec<char> = spark(&numbers).chars().collect();
            prop_assert_eq!(signs.len(), numbers.len());
            let place = |sign: char| HEIGHTS.iter().position(|height| *height == sign).map_or(0, |place| place + 1);
            for (number, sign) in numbers.iter().zip(&signs) {
                prop_assert_eq!(*number == 0, *sign == NOTHING);
                prop_assert!(numbers.iter().zip(&signs).all(|(other, high)| other > number || place(*high) <= place(*sign)));
            }
        }
    }
}
