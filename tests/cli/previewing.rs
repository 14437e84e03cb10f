//! Selection of the rows that `preview` shows.

use serde_json::Value;

use crate::support::{Folder, campaign, phone};

/// Creates a list whose rows 2 and 4 get no message: an invalid number and a duplicate.
fn campaign_with_invalid_rows() -> Folder {
    let list = format!("phone,name\n12,Odd\n{0},Ann\n{0},Ann again\n{1},Bob\n{2},Eve\n", phone(3), phone(5), phone(6));
    campaign().with_list(&list).recipients("max_invalid: 90%").write()
}

fn previewed_rows(sale: &Folder, arguments: &[&str]) -> Vec<u64> {
    let output = sale.campaign(&[&["preview", "sale.yaml", "--json"], arguments].concat()).exits(0).stdout;
    let rows = output.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    rows.map(|row| row["row"].as_u64().expect("a row")).collect()
}

#[test]
fn first_option_limits_messages_and_rows_option_selects_rows() {
    let sale = campaign_with_invalid_rows();
    assert_eq!(previewed_rows(&sale, &["--first", "2"]), [3, 5]);
    assert_eq!(previewed_rows(&sale, &["--first", "9"]), [3, 5, 6]);
    assert_eq!(previewed_rows(&sale, &["--rows", "2"]), [2]);
    let text = sale.campaign(&["preview", "sale.yaml", "--first", "2"]).exits(0);
    let text = text.says("Hello, Ann").says("Hello, Bob").says("2 of 5 rows");
    assert!(!text.stdout.contains("Hello, Eve"), "{}", text.details());
    let page = sale.campaign(&["preview", "sale.yaml", "--first", "2", "--html", "preview.html"]).exits(0);
    page.says("2 rows written to preview.html");
}

#[test]
fn preview_refuses_first_together_with_rows() {
    let sale = campaign_with_invalid_rows();
    sale.campaign(&["preview", "sale.yaml", "--first", "2", "--rows", "3"]).exits(2).says("cannot be used with");
    sale.campaign(&["preview", "sale.yaml", "--first", "0"]).exits(2).says("--first");
    let help = sale.campaign(&["preview", "--help"]).exits(0).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("to be sent (for specific rows, use --rows)"), "{help}");
    assert!(help.contains("(for the first N messages, use --first)"), "{help}");
}
