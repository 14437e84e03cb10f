//! The country of a national number: `--region`, or else the region of the campaigns.

use crate::support::{Finished, Folder, Gateway, campaign, phone};

fn national_number(row: usize) -> String {
    format!("0{}", &phone(row).to_string()[3..])
}

fn suppress_number(sale: &Folder, row: usize, more: &[&str]) -> Finished {
    sale.campaign(&[&["suppress", "add", national_number(row).as_str()], more].concat())
}

#[test]
fn national_number_uses_the_region_of_the_only_campaign() {
    let sale = campaign().recipients("region: UA").write();
    suppress_number(&sale, 2, &[])
        .exits(0)
        .says(&format!("+{}", phone(2)))
        .says("of UA, the `region` of campaign sale");
    let found = sale.campaign(&["find", &national_number(2), "--json"]).exits(0).json();
    assert_eq!(found["suppressed"].as_array().map(Vec::len), Some(1), "{found}");
    sale.campaign(&["suppress", "remove", &national_number(2), "--yes"]).exits(0).says("can get marketing");
    sale.write("list.csv", &format!("phone\n{}\n", national_number(3)));
    sale.campaign(&["suppress", "import", "list.csv", "--yes"]).exits(0).says("1 new · ");
    let exported = sale.campaign(&["suppress", "export"]).exits(0).stdout;
    assert!(exported.contains(&phone(3).to_string()), "{exported}");
}

#[test]
fn region_comes_from_past_runs_if_the_campaign_files_moved() {
    let gateway = Gateway::accepting();
    let sale = campaign().recipients("region: UA").through(&gateway).write();
    sale.run(&[]).exits(0);
    std::fs::rename(sale.path("sale.yaml"), sale.path("results/moved.txt")).expect("moved");
    suppress_number(&sale, 2, &[]).exits(0).says(&format!("+{}", phone(2)));
    suppress_number(&sale, 3, &["--campaign", "sale"]).exits(0).says(&format!("+{}", phone(3)));
}

#[test]
fn national_number_is_refused_if_regions_differ() {
    let sale = campaign().recipients("region: UA").write();
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("the campaign");
    sale.write("other.yaml", &text.replace("region: UA", "region: PL").replace("name: sale", "name: other"));
    suppress_number(&sale, 2, &[]).exits(2).says("`PL` and `UA`").says("--region");
    suppress_number(&sale, 2, &["--campaign", "sale"]).exits(0).says(&format!("+{}", phone(2)));
    suppress_number(&sale, 3, &["--region", "UA"]).exits(0).says(&format!("+{}", phone(3)));
    let international = format!("+{}", phone(4));
    sale.campaign(&["suppress", "add", &international]).exits(0).says(&international);
}

#[test]
fn national_number_is_refused_if_a_campaign_cannot_be_read() {
    let sale = campaign().recipients("region: UA").write();
    sale.write("broken.yaml", "name: broken\nchannels:\n  - sms: [\n");
    suppress_number(&sale, 2, &[]).exits(2).says("broken.yaml").says("--region");
    sale.campaign(&["forget", &national_number(2), "--yes"]).exits(2).says("--region");
}
