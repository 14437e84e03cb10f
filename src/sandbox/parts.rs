//! How many parts of an SMS are billed.

/// The billed parts of a text (GSM 03.38): 160 septets or 70 UTF-16 units alone, 153 or 67 in each of several.
pub(super) fn of_sms(text: &str) -> u32 {
    match text.chars().map(septets).collect::<Option<Vec<_>>>() {
        Some(costs) => fill(&costs, 160, 153),
        None => fill(&text.chars().map(char::len_utf16).collect::<Vec<_>>(), 70, 67),
    }
}

/// The parts that characters of these costs fill, none of which straddles two.
fn fill(costs: &[usize], alone: usize, each: usize) -> u32 {
    if costs.iter().sum::<usize>() <= alone {
        return 1;
    }
    let (mut parts, mut used) = (1, 0);
    for cost in costs {
        if used + cost > each {
            parts += 1;
            used = 0;
        }
        used += cost;
    }
    parts
}

/// The septets of a character in the default alphabet or its extension; nothing for any other.
fn septets(c: char) -> Option<usize> {
    const LETTERS: &str = " @£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ¤¡ÄÖÑÜ§¿äöñüà!\"#%&'()*+,-./:;<=>?";
    if c.is_ascii_alphanumeric() || LETTERS.contains(c) {
        Some(1)
    } else if "\u{c}^{}\\[~]|€".contains(c) {
        Some(2)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_the_encoding_and_no_character_straddles_two() {
        for (text, parts) in [
            (String::new(), 1),
            ("a".repeat(160), 1),
            ("a".repeat(161), 2),
            ("a".repeat(306), 2),
            ("a".repeat(307), 3),
            ("€".repeat(80), 1),
            ("a".repeat(152) + "€" + &"a".repeat(151), 2),
            ("a".repeat(152) + "€" + &"a".repeat(152), 3),
            ("я".repeat(70), 1),
            ("я".repeat(71), 2),
            ("я".repeat(134), 2),
            ("я".repeat(135), 3),
            ("😀".repeat(35), 1),
            ("😀".repeat(66), 2),
            ("😀".repeat(67), 3),
            ("`".repeat(71), 2),
        ] {
            assert_eq!(of_sms(&text), parts, "{text}");
        }
    }
}
