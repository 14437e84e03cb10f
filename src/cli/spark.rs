//! Charts that fit into a line: a bar, and a sign for each number that is as high as the number. Pure.

/// From the lowest to the highest.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Nothing at all.
const ZERO_SIGN: char = '·';

/// The filled and the empty part of a bar with this many cells.
pub(super) fn draw_bar((done, total): (u64, u64), cells: usize) -> (String, String) {
    let filled = (u128::from(done) * cells as u128).checked_div(u128::from(total)).unwrap_or(cells as u128);
    let filled = usize::try_from(filled).unwrap_or(cells).min(cells);
    ("█".repeat(filled), "░".repeat(cells - filled))
}

/// The numbers as signs, in their order.
pub(super) fn draw_sparkline(numbers: &[u64]) -> String {
    let most = numbers.iter().copied().max().unwrap_or_default();
    let height = |number: u64| {
        let steps = (u128::from(number) * HEIGHTS.len() as u128).div_ceil(u128::from(most.max(1)));
        usize::try_from(steps).ok().and_then(|step| HEIGHTS.get(step.checked_sub(1)?)).copied().unwrap_or(ZERO_SIGN)
    };
    numbers.iter().map(|number| height(*number)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sparkline_marks_zero_and_scales_to_the_maximum() {
        assert_eq!(draw_sparkline(&[0, 1, 4, 8, 7]), "·▁▄█▇");
        assert_eq!(draw_sparkline(&[0, 0]), "··");
        assert_eq!(draw_sparkline(&[]), "");
    }

    #[test]
    fn bar_is_full_only_at_the_end() {
        let bar = |done, total| {
            let (done, open) = super::draw_bar((done, total), 10);
            done + &open
        };
        assert_eq!(bar(0, 3), "░░░░░░░░░░");
        assert_eq!(bar(2_999, 3_000), "█████████░");
        assert_eq!((bar(3, 3), bar(0, 0)), ("██████████".to_owned(), "██████████".to_owned()));
    }

    proptest! {
        #[test]
        fn sparkline_keeps_length_and_order(numbers in proptest::collection::vec(any::<u64>(), 1..40)) {
            let signs: Vec<char> = draw_sparkline(&numbers).chars().collect();
            prop_assert_eq!(signs.len(), numbers.len());
            let place = |sign: char| HEIGHTS.iter().position(|height| *height == sign).map_or(0, |place| place + 1);
            for (number, sign) in numbers.iter().zip(&signs) {
                prop_assert_eq!(*number == 0, *sign == ZERO_SIGN);
                prop_assert!(numbers.iter().zip(&signs).all(|(other, high)| other > number || place(*high) <= place(*sign)));
            }
        }
    }
}
