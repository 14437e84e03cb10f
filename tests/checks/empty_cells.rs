//! Empty cells that a message shows: in which text, and what protects a use.

use crate::support::{campaign, phone};

const CHANNELS: &str = "  - viber: { signature: Olena, message: 'Hi!{% if discount %} -{{ discount }}%{% endif %}' }
  - sms: { signature: OlenaCo, message: 'Hi! -{{ discount }}% today' }";

/// What `check` says of these channels to two people, of whom the second has no discount.
fn told(channels: &str) -> String {
    let list = format!("phone,discount,note\n{},20,a\n{},,b\n", phone(2), phone(3));
    let sale = campaign().with_list(&list).channels(channels).write();
    sale.write("templates/footer.txt", "Code {{ discount }}");
    sale.campaign(&["check", "sale.yaml"]).exits(0).stderr
}

/// What `check` says of one SMS.
fn told_of(message: &str) -> String {
    told(&format!("  - sms: {{ signature: OlenaCo, message: '{message}' }}"))
}

#[test]
fn condition_in_one_text_hides_no_empty_cell_in_another() {
    let said = told(CHANNELS);
    assert!(said.contains("`discount` is empty in row 3, which leaves a gap in `sms.message`"), "{said}");
    assert!(said.contains("sale.yaml:6:"), "{said}");
    assert_eq!(said.matches("[empty-cell]").count(), 1, "{said}");
    let reversed = CHANNELS.replace("viber", "telegram").replace("sms", "viber").replace("telegram", "sms");
    let said = told(&reversed.replace("Olena,", "OlenaCo,"));
    assert!(said.contains("leaves a gap in `viber.message`"), "{said}");
    for (key, value) in [("button", "Get {{ discount }}"), ("link", "https://shop.example/?d={{ discount }}")] {
        let whole = "button: 'Get it', link: 'https://shop.example/', image: 'https://shop.example/a.png'";
        let old = if key == "button" { "'Get it'" } else { "'https://shop.example/'" };
        let fields = whole.replace(old, &format!("'{value}'"));
        let viber = format!(
            "  - viber: {{ signature: Olena, message: '{{% if discount %}}-{{{{ discount }}}}%{{% endif %}} Hi', {fields} }}"
        );
        let said = told(&viber);
        assert!(said.contains(&format!("`discount` is empty in row 3, which leaves a gap in `viber.{key}`")), "{said}");
    }
}

#[test]
fn condition_hides_no_empty_cell_before_or_behind_it() {
    let said = told_of("Sale {{ discount }}%! {% if discount %}(now){% endif %} {{ note }}");
    assert!(said.contains("leaves a gap in `sms.message`") && said.contains("sale.yaml:5:50"), "{said}");
    for hole in [
        "{% if discount %}a{% else %}-{{ discount }}%{% endif %} {{ note }}",
        "{% if discount or note %}-{{ discount }}% {{ note }}{% endif %}",
        "{% set d = discount %}-{{ d }}% {{ note }}",
        "Only {{ discount | default(value=\"20\") }}% {{ note }}",
        "{{ note }} {% include \"footer.txt\" %}",
    ] {
        assert!(told_of(hole).contains("[empty-cell]"), "{hole}");
    }
    for whole in [
        "Hi{% if discount and note %} -{{ discount }}% {{ note }}{% endif %}",
        "Hi{% if not discount %}!{% else %} -{{ discount }}%{% endif %} {{ note }}",
        "Hi{% if discount | length > 0 %} -{{ discount }}%{% endif %} {{ note }}",
        "Only {{ discount | default(value=\"20\", boolean=true) }}% {{ note }}",
        "{{ note }}{% if discount %} {% include \"footer.txt\" %}{% endif %}",
    ] {
        assert!(!told_of(whole).contains("[empty-cell]"), "{whole}: {}", told_of(whole));
    }
}

#[test]
fn hole_in_an_included_text_names_that_text_and_its_messages() {
    let said = told(
        "  - viber: { signature: Olena, message: '{{ note }} {% include \"footer.txt\" %}' }
  - sms: { signature: OlenaCo, message: '{{ note }}. {% include \"footer.txt\" %}' }",
    );
    assert!(said.contains("leaves a gap in `viber.message` and `sms.message`"), "{said}");
    assert!(said.contains("footer.txt"), "{said}");
    assert_eq!(said.matches("[empty-cell]").count(), 1, "{said}");
}

#[test]
fn cell_of_spaces_is_an_empty_cell_for_texts() {
    let list = format!("phone,name\n{},Olena\n{},\"  \"\n", phone(2), phone(3));
    let said = |message: &str| {
        let message = format!("  - sms: {{ signature: OlenaCo, message: '{message}' }}");
        let sale = campaign().with_list(&list).channels(&message).write();
        sale.campaign(&["check", "sale.yaml"]).exits(0).stderr
    };
    let hole = said("Hi {{ name }} you");
    assert!(hole.contains("`name` is empty in row 3"), "{hole}");
    let hidden = said("{% if name %}Hi {{ name }}{% endif %} you");
    assert!(!hidden.contains("[empty-cell]"), "{hidden}");
}
