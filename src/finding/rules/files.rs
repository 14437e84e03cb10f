//! Rules for files that cannot be read.

use super::{Rule, RuleText};

rules! {
    error FILE_MISSING = "file-missing" {
        cause: "A file does not exist. Paths in a campaign file are relative to that file, not to your current \
                folder.",
        example: ["the command names autum-sale.yaml, but the file is called autumn-sale.yaml"],
        fix: "check the spelling and the folder, for example with `ls`",
    }
    error FILE_UNREADABLE = "file-unreadable" {
        cause: "A file cannot be opened or read. It might be a folder, or you might not have permission to read \
                it.",
        example: ["autumn-sale.yaml is readable only by root"],
        fix: "check the path, and give your user read permission: `chmod u+r FILE`",
    }
    error FILE_TOO_LARGE = "file-too-large" {
        cause: "A configuration file is larger than 1 MiB. Campaigns, profiles and scenarios are small, so this is \
                probably the wrong file.",
        example: ["clients.yaml is a 40 MiB export of the recipient list"],
        fix: "use the campaign file; keep recipients in a CSV file or workbook, and name it under \
              `recipients.file`",
    }
    error FILE_ENCODING = "file-encoding" {
        cause: "A file is not valid UTF-8. In any other encoding, non-ASCII letters would be garbled in messages.",
        example: ["$ file autumn-sale.yaml", "autumn-sale.yaml: Non-ISO extended-ASCII text"],
        fix: "save the file as UTF-8, or convert it: `iconv -f windows-1251 -t utf-8 OLD > NEW`",
    }
    error FILE_EMPTY = "file-empty" {
        cause: "A file has no content, or only comments.",
        example: ["# autumn-sale.yaml", "# to do"],
        fix: "fill in the file, or create a complete campaign to start from with `campaign init NAME`",
    }
    error FILE_TOO_COMPLEX = "file-too-complex" {
        cause: "A file is nested too deeply or has too many aliases. Reading it could exhaust memory, so it is \
                rejected.",
        example: ["vars: { a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]] }"],
        fix: "write the values out instead of using anchors and aliases, and check the indentation",
    }
    error MORE_FINDINGS = "more-findings" {
        cause: "Only the first 100 findings of a file are shown. The others are only counted, but they can still stop \
                the run.",
        example: ["100 findings in autumn-sale.yaml, and 402 more that are not shown"],
        fix: "fix the findings that are shown, then run `campaign check` again",
    }
}
