//! The difference between two texts, word by word and in words.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// How many differences are described.
const MAX_DESCRIBED: usize = 3;

/// How `actual` differs from `expected`, as the end of a sentence: `has "-15%" instead of "-10%"`, with backticks.
/// `None` if the texts are equal.
pub(super) fn describe_difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (expected.split_whitespace().collect(), actual.split_whitespace().collect());
    let words = |words: &[&str]| format!("`{}`", words.join(" "));
    let describe = |operation: &DiffOp| match *operation {
        DiffOp::Equal { .. } => None,
        DiffOp::Delete { old_index, old_len, .. } => Some(format!("lacks {}", words(&old[old_index..][..old_len]))),
        DiffOp::Insert { new_index, new_len, .. } => {
            Some(format!("has the additional {}", words(&new[new_index..][..new_len])))
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => Some(format!(
            "has {} instead of {}",
            words(&new[new_index..][..new_len]),
            words(&old[old_index..][..old_len])
        )),
    };
    let operations = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut differences: Vec<String> = operations.iter().filter_map(describe).collect();
    if differences.is_empty() {
        return Some("differs in spaces or line breaks".to_owned());
    }
    let more = differences.len().saturating_sub(MAX_DESCRIBED);
    differences.truncate(MAX_DESCRIBED);
    if more > 0 {
        differences.push(format!("has {more} more differences"));
    }
    let last = differences.pop()?;
    Some(if differences.is_empty() { last } else { format!("{} and {last}", differences.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_differ_by_words() {
        let expected = "Олена, -10% until Sunday";
        for (actual, difference) in [
            ("Олена, -10% until Sunday", None),
            ("Олена, -15% until Sunday", Some("has `-15%` instead of `-10%`")),
            ("Олена, until Sunday", Some("lacks `-10%`")),
            ("Олена, -10% until Sunday evening", Some("has the additional `evening`")),
            ("Олена,  -10% until Sunday", Some("differs in spaces or line breaks")),
            ("Тарас, -10% on Sunday", Some("has `Тарас,` instead of `Олена,` and has `on` instead of `until`")),
            ("", Some("lacks `Олена, -10% until Sunday`")),
        ] {
            assert_eq!(describe_difference(expected, actual).as_deref(), difference, "{actual}");
        }
        let many = describe_difference("a 1 b 2 c 3 d 4 e 5", "a x b x c x d x e x").unwrap();
        assert!(many.ends_with("and has 2 more differences"), "{many}");
    }
}
