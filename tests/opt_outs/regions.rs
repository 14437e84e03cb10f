//! The country of a national number: `--region`, otherwise the region of the campaigns.

use crate::support::{Finished, Folder, Gateway, campaign, phone};

fn national(row: usize) -> String {
    format!("0{}", &phone(row).to_string()[3..])
}

fn add(sale: &Folder, row: usize, more: &[&str]) -> Finished {
    sale.campaign(&[&["suppress", "add", national(row).as_str()], more].concat())
}

#[test]
fn national_number_has_the_region_of_the_only_campaign() {
    let sale = campaign().recipients("region: UA").write();
    add(&sale, 2, &[]).exits(0).says(&format!("+{}", phone(2))).says("of UA, the `region` of campaign sale");
    let found = sale.campaign(&["find", &national(2), "--json"]).exits(0).json();
    assert_eq!(found["suppressed"].as_array().map(Vec::len), Some(1), "{found}");
    sale.campaign(&["suppress", "remove", &national(2), "--yes"]).exits(0).says("can get marketing");
    sale.write("list.csv", &format!("phone\n{}\n", national(3)));
    sale.campaign(&["suppress", "import", "list.csv", "--yes"]).exits(0).says("1 new · ");
    let told = sale.campaign(&["suppress", "export"]).exits(0).stdout;
    assert!(told.contains(&phone(3).to_string()), "{told}");
}

#[test]
fn region_comes_from_runs_if_their_files_are_elsewhere() {
    let gateway = Gateway::accepting();
    let sale = campaign().recipients("region: UA").through(&gateway).write();
    sale.run(&[]).exits(0);
    std::fs::rename(sale.path("sale.yaml"), sale.path("results/moved.txt")).expect("moved");
    add(&sale, 2, &[]).exits(0).says(&format!("+{}", phone(2)));
    add(&sale, 3, &["--campaign", "sale"]).exits(0).says(&format!("+{}", phone(3)));
}

#[test]
fn national_number_is_refused_if_regions_differ() {
    let sale = campaign().recipients("region: UA").write();
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("the campaign");
    sale.write("other.yaml", &text.replace("region: UA", "region: PL").replace("name: sale", "name: other"));
    add(&sale, 2, &[]).exits(2).says("`PL` and `UA`").says("--region");
    add(&sale, 2, &["--campaign", "sale"]).exits(0).says(&format!("+{}", phone(2)));
    add(&sale, 3, &["--region", "UA"]).exits(0).says(&format!("+{}", phone(3)));
    let international = format!("+{}", phone(4));
    sale.campaign(&["suppress", "add", &international]).exits(0).says(&international);
}

#[test]
fn national_number_is_refused_if_a_campaign_cannot_be_read() {
    let sale = campaign().recipients("region: UA").write();
    sale.write("broken.yaml", "name: broken\nchannels:\n  - sms: [\n");
    add(&sale, 2, &[]).exits(2).says("broken.yaml").says("--region");
    sale.campaign(&["forget", &national(2), "--yes"]).exits(2).says("--region");
}
