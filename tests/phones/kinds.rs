//! Landline numbers: `check` warns about them before an SMS is paid for.

use serde_json::Value;

use crate::support::campaign;

/// A mobile number, a landline, a toll-free number, a Polish landline, and a US number that can be either.
const LIST: &str =
    "phone,name\n380501234567,A\n+380 44 123-45-67,B\n0800500500,C\n+48 22 123 45 67,D\n+1 202 555 0123,E\n";

fn landline_warnings(channels: &str) -> Vec<String> {
    let sale = campaign().with_list(LIST).recipients("region: UA").channels(channels).write();
    let report: Value = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    let findings = report["findings"].as_array().expect("findings").iter();
    let landlines = findings.filter(|finding| finding["rule"] == "landline");
    landlines.map(|finding| finding["message"].as_str().expect("a message").to_owned()).collect()
}

#[test]
fn landlines_are_reported_if_every_channel_needs_a_mobile_phone() {
    let sms = "  - sms: { signature: OlenaCo, message: \"Hello\" }";
    let viber = "  - viber: { signature: OlenaCo, message: \"Hello\" }";
    let voice = "  - voice: { message: \"Hello\", gender: female, language: uk-UA, name: Olena }";
    for channels in [sms.to_owned(), format!("{viber}\n{sms}")] {
        let warnings = landline_warnings(&channels);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("3 rows (3, 4 and 5) have landline or service numbers"), "{warnings:?}");
    }
    assert_eq!(landline_warnings(voice), [""; 0]);
    assert_eq!(landline_warnings(&format!("{sms}\n{voice}")), [""; 0]);
}
