use super::*;
use crate::message::fixtures::names;

fn find_slips(source: &str) -> (Vec<String>, String) {
    let slips = SyntaxSlips::find(source, &names());
    let told = slips.slips.iter().map(|slip| format!("{}; {}", slip.message, slip.help)).collect();
    (told, slips.apply_corrections(source))
}

#[test]
fn all_slips_are_found_and_corrected() {
    let table = [
        (
            "{% if code = 'x' %}a{% elseif code==='y' && shop %}b{% end if %}",
            "{% if code == 'x' %}a{% elif code=='y' and shop %}b{% endif %}",
            4 + 1,
        ),
        (
            "{{ code | default(value=“friend”, boolean=true) }}",
            "{{ code | default(value=\"friend\", boolean=true) }}",
            1,
        ),
        ("{% if code != ‘’ %}x{% endif %}", "{% if code != '' %}x{% endif %}", 1),
        ("{{\u{a0}code\u{a0}}}", "{{ code }}", 1),
        ("{{ cоde }}", "{{ code }}", 1),
        ("{{ code = 'x' AND Note IS NOT NULL }}", "{{ code == 'x' and Note != '' }}", 3),
        ("{{ code <> 'x' OR NOT (Note IS NULL) }}", "{{ code != 'x' or not (Note == '') }}", 4),
        ("{% if !code||Note %}x{% endif %}", "{% if not code or Note %}x{% endif %}", 2),
        ("{% IF code %}x{% ELSE %}y{% end %}", "{% if code %}x{% else %}y{% endif %}", 3),
        ("{% if code %}x{% else if Note %}y{% /if %}", "{% if code %}x{% elif Note %}y{% endif %}", 2),
        ("{% set a = code = 'x' %}", "{% set a = code == 'x' %}", 1),
    ];
    for (source, corrected, count) in table {
        let (told, written) = find_slips(source);
        assert_eq!((written.as_str(), told.len()), (corrected, count), "{source}: {told:?}");
    }
    assert!(find_slips("{{ cоde }}").0[0].contains("Cyrillic letter `о`"));
    assert!(find_slips("{% if code LIKE 'x%' %}").0[0].contains("containing"));
}

#[test]
fn valid_syntax_is_not_a_slip() {
    for source in [
        "plain = text && “quotes” {# {{ a = b }} “ #}",
        "{% set a = 'x' %}{{ a }}",
        "{{ code | default(value='a = b && c', boolean=true) }}",
        "{% if code == 'x' and not (Note != '') or code is defined %}x{% elif Note %}y{% else %}z{% endif %}",
        "{% raw %}{{ a = b }}{% endraw %}{{ code | round(method=\"ceil\", precision=1) }}",
        "{% for a in code | split(pat=',') %}{{ a }}{% endfor %}{% include 'x' %}",
        "{{ recipient[\"Ім'я\"] }}{{- 'місто' ~ \"«»\" -}}",
        "{{ імʼя }}",
        "{{ code! }}{% endFoo %}",
    ] {
        assert_eq!(find_slips(source), (Vec::new(), source.to_owned()), "{source}");
    }
    for unclosed in ["{{ code = '", "{{ “", "{% if a =", "{", "{%", "{{ Ім'я }}"] {
        assert_eq!(find_slips(unclosed).1, unclosed, "{unclosed}");
    }
}

#[test]
fn corrected_positions_map_to_the_source() {
    let source = "{{ code = 'x' && Note < 5 }}";
    let slips = SyntaxSlips::find(source, &names());
    let corrected = slips.apply_corrections(source);
    let place = |word: &str| slips.original_offset(corrected.find(word).unwrap());
    for word in ["code", "'x'", "Note", "5", "}}"] {
        assert_eq!(Some(place(word)), source.find(word), "{word}");
    }
    assert_eq!(Some(place("and")), source.find("&&"));
}
