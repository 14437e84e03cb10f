//! Empty cells in messages, and conditions that hide them.

use crate::support::{campaign, phone};

const CHANNELS: &str = "  - viber: { signature: Olena, message: 'Hi!{% if discount %} -{{ discount }}%{% endif %}' }
  - sms: { signature: OlenaCo, message: 'Hi! -{{ discount }}% today' }";

/// The output of `check` for these channels and two recipients. The second has no discount.
fn check_channels(channels: &str) -> String {
    let list = format!("phone,discount,note\n{},20,a\n{},,b\n", phone(2), phone(3));
    let sale = campaign().with_list(&list).channels(channels).write();
    sale.write("templates/footer.txt", "Code {{ discount }}");
    sale.campaign(&["check", "sale.yaml"]).exits(0).stderr
}

/// The output of `check` for one SMS.
fn check_message(message: &str) -> String {
    check_channels(&format!("  - sms: {{ signature: OlenaCo, message: '{message}' }}"))
}

#[test]
fn condition_in_one_text_does_not_hide_empty_cells_in_another() {
    let output = check_channels(CHANNELS);
    assert!(output.contains("`discount` is empty in row 3, which leaves a gap in `sms.message`"), "{output}");
    assert!(output.contains("sale.yaml:6:"), "{output}");
    assert_eq!(output.matches("[empty-cell]").count(), 1, "{output}");
    let reversed = CHANNELS.replace("viber", "telegram").replace("sms", "viber").replace("telegram", "sms");
    let output = check_channels(&reversed.replace("Olena,", "OlenaCo,"));
    assert!(output.contains("leaves a gap in `viber.message`"), "{output}");
    for (key, value) in [("button", "Get {{ discount }}"), ("link", "https://shop.example/?d={{ discount }}")] {
        let fields = "button: 'Get it', link: 'https://shop.example/', image: 'https://shop.example/a.png'";
        let old = if key == "button" { "'Get it'" } else { "'https://shop.example/'" };
        let fields = fields.replace(old, &format!("'{value}'"));
        let viber = format!(
            "  - viber: {{ signature: Olena, message: '{{% if discount %}}-{{{{ discount }}}}%{{% endif %}} Hi', {fields} }}"
        );
        let output = check_channels(&viber);
        assert!(
            output.contains(&format!("`discount` is empty in row 3, which leaves a gap in `viber.{key}`")),
            "{output}"
        );
    }
}

#[test]
fn condition_does_not_hide_empty_cells_before_or_after_it() {
    let output = check_message("Sale {{ discount }}%! {% if discount %}(now){% endif %} {{ note }}");
    assert!(output.contains("leaves a gap in `sms.message`") && output.contains("sale.yaml:5:50"), "{output}");
    for message in [
        "{% if discount %}a{% else %}-{{ discount }}%{% endif %} {{ note }}",
        "{% if discount or note %}-{{ discount }}% {{ note }}{% endif %}",
        "{% set d = discount %}-{{ d }}% {{ note }}",
        "Only {{ discount | default(value=\"20\") }}% {{ note }}",
        "{{ note }} {% include \"footer.txt\" %}",
    ] {
        assert!(check_message(message).contains("[empty-cell]"), "{message}");
    }
    for message in [
        "Hi{% if discount and note %} -{{ discount }}% {{ note }}{% endif %}",
        "Hi{% if not discount %}!{% else %} -{{ discount }}%{% endif %} {{ note }}",
        "Hi{% if discount | length > 0 %} -{{ discount }}%{% endif %} {{ note }}",
        "Only {{ discount | default(value=\"20\", boolean=true) }}% {{ note }}",
        "{{ note }}{% if discount %} {% include \"footer.txt\" %}{% endif %}",
    ] {
        assert!(!check_message(message).contains("[empty-cell]"), "{message}: {}", check_message(message));
    }
}

#[test]
fn gap_in_an_included_text_names_the_text_and_its_messages() {
    let output = check_channels(
        "  - viber: { signature: Olena, message: '{{ note }} {% include \"footer.txt\" %}' }
  - sms: { signature: OlenaCo, message: '{{ note }}. {% include \"footer.txt\" %}' }",
    );
    assert!(output.contains("leaves a gap in `viber.message` and `sms.message`"), "{output}");
    assert!(output.contains("footer.txt"), "{output}");
    assert_eq!(output.matches("[empty-cell]").count(), 1, "{output}");
}

#[test]
fn cell_with_only_spaces_counts_as_empty_in_texts() {
    let list = format!("phone,name\n{},Olena\n{},\"  \"\n", phone(2), phone(3));
    let check = |message: &str| {
        let message = format!("  - sms: {{ signature: OlenaCo, message: '{message}' }}");
        let sale = campaign().with_list(&list).channels(&message).write();
        sale.campaign(&["check", "sale.yaml"]).exits(0).stderr
    };
    let visible = check("Hi {{ name }} you");
    assert!(visible.contains("`name` is empty in row 3"), "{visible}");
    let hidden = check("{% if name %}Hi {{ name }}{% endif %} you");
    assert!(!hidden.contains("[empty-cell]"), "{hidden}");
}
