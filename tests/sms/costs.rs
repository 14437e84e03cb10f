//! Findings about characters that make an SMS longer: row, parts and cost.

use serde_json::Value;

use crate::support::{Draft, Gateway, campaign, phone};

/// A draft with a recipient for each name. The text has a hundred letters and the name: one part, or two if the name
/// has a character outside GSM-7.
fn draft(names: &[&str]) -> Draft {
    let list: String = (2..).zip(names).map(|(row, name)| format!("{},{name}\n", phone(row))).collect();
    let sms = format!("  - sms: {{ signature: OlenaCo, message: \"{} {{{{ name }}}}\" }}", "a".repeat(100));
    campaign().with_list(&format!("phone,name\n{list}")).channels(&sms)
}

/// The messages and help texts of all findings about costly characters.
fn find_costly(draft: Draft) -> Vec<(String, String)> {
    let output: Value = draft.write().campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    let findings = output["findings"].as_array().expect("findings").iter();
    let costly_findings = findings.filter(|finding| finding["rule"] == "costly-character");
    let text = |finding: &Value, key: &str| finding[key].as_str().expect("a text").to_owned();
    costly_findings.map(|finding| (text(finding, "message"), text(finding, "help"))).collect()
}

#[test]
fn costly_character_is_named_with_row_and_cost() {
    let gateway = Gateway::accepting();
    let with_prices = |draft: Draft| draft.through(&gateway).profile("prices: { sms: 0.80 }").profile("currency: UAH");
    let output = find_costly(with_prices(draft(&["Ann", "O’Neil", "D’Arcy", "Ганна", "A—B’s"])));
    let [(apostrophe, help), (both, _)] = output.as_slice() else { panic!("{output:?}") };
    assert_eq!(
        apostrophe,
        "`’` (U+2019) in row 3 makes the SMS 2 parts long instead of 1; in total, 2 extra parts in 2 rows, about 1.60 \
         UAH"
    );
    assert!(help.contains("write `'` instead") && help.contains("`plain: quotes`"), "{help}");
    assert_eq!(both, "`—` (U+2014) and `’` (U+2019) in row 6 make the SMS 2 parts long instead of 1, about 0.80 UAH");
}

#[test]
fn check_without_prices_shows_extra_parts_unless_plain() {
    let names = ["O’Neil", "D’Arcy"];
    let as_written = find_costly(draft(&names));
    assert_eq!(
        as_written[0].0,
        "`’` (U+2019) in row 2 makes the SMS 2 parts long instead of 1; in total, 2 extra parts in 2 rows"
    );
    let sms =
        format!("  - sms: {{ signature: OlenaCo, message: \"{} {{{{ name }}}}\", plain: quotes }}", "a".repeat(100));
    assert_eq!(find_costly(draft(&names).channels(&sms)), []);
}
