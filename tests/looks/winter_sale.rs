//! Example campaign for the snapshots: a typical list with valid and invalid rows.

use crate::support::{Folder, Gateway, unreachable_url};

const CAMPAIGN: &str = "\
edition: winter-2026
recipients:
  file: list.csv
  region: UA
  max_invalid: 50%
  columns: { first_name: Name, city: City }
channels:
  - viber:
      signature: OlenaCo
      message: \"{{ first_name }}, чекаємо у місті {{ city }}! Ваша знижка 5%\"
  - sms:
      signature: OlenaCo
      message: \"{{ first_name }}, знижка 5%! https://shop.example/bf\"
";

const LIST: &str = "\
phone,Name,City
+380500000102,Софія,Київ
0500000103,Олена,Львів
+380500000104,Тарас,Одеса
,Марія,Харків
call me,Іван,Дніпро
+380500000102,Софія,Київ
+380500000108,Андрій,Полтава
+380500000109,Ірина,Суми
";

/// The campaign in the built-in sandbox.
pub(super) fn winter() -> Folder {
    let folder = Folder::new(false);
    folder.write("winter.yaml", CAMPAIGN);
    folder.write("list.csv", LIST);
    folder
}

/// The campaign after a rehearsal.
pub(super) fn after_rehearsal() -> Folder {
    let folder = winter();
    folder.campaign(&["run", "winter.yaml"]).exits(3);
    folder
}

/// The campaign with mistakes in its file.
pub(super) fn with_mistakes() -> Folder {
    let folder = winter();
    folder.replace("winter.yaml", "{{ city }}", "{{ town }}");
    folder.replace("winter.yaml", "region: UA", "regoin: UA");
    folder
}

/// The campaign with a live gateway that cannot be reached.
pub(super) fn with_live_gateway() -> Folder {
    let folder = winter();
    folder.replace("winter.yaml", "edition: winter-2026", "edition: winter-2026\ngateway: production");
    let profile = format!(
        "production:\n  base_url: https://gateway.invalid\n  api_key: {{ env: {} }}\n  rate: 60/s\n  proxy: {}\n  \
         prices: {{ sms: 0.80, viber: 0.50 }}\n",
        crate::support::KEY_VARIABLE,
        unreachable_url()
    );
    folder.write("gateways.yaml", &profile);
    folder
}

/// The campaign with a gateway on this machine that accepts every message.
pub(super) fn with_local_gateway(gateway: &Gateway) -> Folder {
    use crate::support::Reachable as _;
    let folder = with_live_gateway();
    folder.replace("gateways.yaml", "https://gateway.invalid", &gateway.base_url());
    let text = std::fs::read_to_string(folder.path("gateways.yaml")).expect("the profiles");
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("proxy:")).collect();
    folder.write("gateways.yaml", &(lines.join("\n") + "\n"));
    folder
}
