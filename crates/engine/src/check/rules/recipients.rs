//! Rules about recipients: duplicates, changed rows, consent, opt-outs, landlines and limits.

use roaring::RoaringBitmap;

use super::skipped_rows::{describe_first, describe_first_few, describe_named_rows};
use crate::check::online::Cost;
use crate::check::{DistinctValues, MIGHT_BE_SENT, OptedOutCells, Survey};
use campaign_content::audience::ListHeader;
use campaign_core::define_rules;
use campaign_core::domain::variable::is_variable;
use campaign_core::domain::{Amount, NamedTemplate, Phone, Row, Spending, format_count, format_thousands};
use campaign_core::finding::{Finding, did_you_mean, rules};
use campaign_ledger::RowState;
use campaign_manifest::{Campaign, CampaignBrief, DuplicatePolicy, Profile};

define_rules! {
    RECIPIENTS:
    warning CHANGED_ROW = "changed-row" {
        cause: "The recipient might already have this message. With `duplicates: allow`, a row is identified by its \
                phone number and message text, and this row has changed.",
        example: ["recipients: { file: list.csv, duplicates: allow }     # and a row was edited after the run"],
        fix: "restore the original row in the list, or send the changed row in a new `edition`",
    }
    warning DIFFERING_DUPLICATES = "differing-duplicates" {
        cause: "A skipped duplicate has a different message. Only the first row with each number gets a message.",
        example: [
            "message: \"Lesson for {{ first_name }}\"",
            "list.csv: phone,first_name",
            "          380501234567,Olena",
            "          380501234567,Taras",
        ],
        fix: "correct the list; to send a message for each row, write `duplicates: allow`",
    }
    error DUPLICATE_NUMBER = "duplicate-number" {
        cause: "The list has the same number twice. With `duplicates: refuse`, that is an error.",
        example: [
            "recipients: { file: list.csv, duplicates: refuse }",
            "list.csv: phone,first_name",
            "          380501234567,Olena",
            "          380501234567,Taras",
        ],
        fix: "remove the duplicates from the list, or write `duplicates: skip`",
    }
    warning CONSENT_NOT_REQUIRED = "consent-not-required" {
        cause: "Consents are recorded, but not required. Recipients without consent get the message too.",
        example: [
            "recipients: { file: list.csv, consent: { column: agreed } }     # without `consent: required`",
            "list.csv: phone,agreed",
            "          380501234567,no",
        ],
        fix: "write `consent: required` at the top level of the campaign file",
    }
    warning CONSENT_DATE = "consent-date" {
        cause: "A consent date is missing or unreadable. Consent without a valid date does not count.",
        example: [
            "consent: required",
            "recipients: { file: list.csv, consent: { column: agreed, at: agreed_at } }",
            "list.csv: phone,agreed,agreed_at",
            "          380671234567,yes,03/04/2026",
        ],
        fix: "write dates as `2026-03-01` or `01.03.2026`; a date in the future is not valid",
    }
    warning OPTED_OUT_ROWS = "opted-out-rows" {
        cause: "A column marks recipients as opted out. Messages would still be sent to them.",
        example: ["list.csv: phone,status", "          380501234567,unsubscribed", "          380671234567,active"],
        fix: "skip these rows with `recipients.where`, or add their numbers to the suppression list",
    }
    warning LANDLINE = "landline" {
        cause: "The list contains a landline number. Landlines cannot receive SMS, Viber, RCS, Telegram or WhatsApp \
                messages, but the gateway charges for these messages.",
        example: ["list.csv: phone,first_name", "          380442345678,Olena"],
        fix: "ask these recipients for a mobile number, or remove their rows",
    }
    warning OVER_LIMITS = "over-limits" {
        cause: "The campaign exceeds its `limits`. The run stops at the limit, and the remaining recipients get no \
                message.",
        example: ["limits: { recipients: 1 }                   # the list has more"],
        fix: "shorten the list; raise the limit only if all of these recipients should get a message",
    }
    pub error RECIPIENTS_LIMIT = "recipients-limit" {
        cause: "The list is larger than the profile allows. A run can have at most `limits.recipients` recipients.",
        example: ["gateways.yaml: production: { limits: { recipients: 1 } }"],
        fix: "check the list; to send to all of them, run with `--up-to N`",
    }
}

/// A warning about rows that are skipped because their number already got a message for a row that is no longer in the
/// list.
pub fn check_changed_rows(survey: &Survey) -> Option<Finding> {
    let mut sets = survey.left_out.sets();
    let (.., rows) = sets.find(|(state, reason, _)| *state == RowState::Skipped && *reason == MIGHT_BE_SENT)?;
    let (verb, number) = match rows.len() {
        1 => ("is skipped", "its number already got a message"),
        _ => ("are skipped", "their numbers already got messages"),
    };
    let message = format!(
        "{} {verb}: {number} in this edition, for a row that is no longer in the list",
        describe_first_few(rows)
    );
    Some(
        Finding::new(&CHANGED_ROW, message)
            .help("restore the original row, or send the changed row in a new `edition`"),
    )
}

/// A warning about skipped duplicate rows whose message differs from the message for the first row with the same
/// number.
pub fn check_differing_duplicates(survey: &Survey, campaign: &Campaign) -> Option<Finding> {
    let finding = duplicates_finding(&survey.differing_duplicates)?;
    let place =
        campaign.places.locate_key("recipients.duplicates").or_else(|| campaign.places.locate_key("recipients.file"));
    Some(finding.at(place))
}

fn duplicates_finding(rows: &RoaringBitmap) -> Option<Finding> {
    if rows.is_empty() {
        return None;
    }
    let message = match rows.len() {
        1 => format!("{} skipped: its number is in an earlier row with a different message", describe_named_rows(rows)),
        _ => {
            format!("{} skipped: their numbers are in earlier rows with different messages", describe_named_rows(rows))
        }
    };
    let help = "if each number should get only one message, correct the list; to send a message for each row, write \
                `duplicates: allow` under `recipients`";
    Some(Finding::new(&DIFFERING_DUPLICATES, message).help(help))
}

/// An error about a repeated number, if the campaign forbids duplicates; `repeated` is the first row that repeats a
/// number, with this number.
pub(in crate::check) fn check_duplicate_number(
    brief: &CampaignBrief,
    repeated: Option<(Row, Phone)>,
) -> Option<Finding> {
    let (row, phone) = repeated.filter(|_| brief.duplicates == DuplicatePolicy::Refuse)?;
    let message =
        format!("row {row} has the same number, {}, as an earlier row (row 1 is the header)", phone.format_masked());
    let help = "remove one of the rows from the list, or write `duplicates: skip` to use only the first row with each \
                number";
    Some(Finding::new(&DUPLICATE_NUMBER, message).help(help))
}

/// A warning about recipients who would get marketing without a recorded consent, because consent is not required.
pub fn check_unused_consents(survey: &Survey, campaign: &Campaign) -> Option<Finding> {
    let rows = &survey.without_consent;
    if rows.is_empty() || !campaign.brief.purpose.is_marketing() {
        return None;
    }
    let (have, get) = if rows.len() == 1 { ("has", "gets") } else { ("have", "get") };
    let message = format!(
        "{} {have} no valid consent, but {get} a message, because consent is not required",
        format_count(rows.len(), "recipient")
    );
    let help = "write `consent: required` at the top level of the campaign file, not under `recipients`";
    Some(Finding::new(&CONSENT_NOT_REQUIRED, message).help(help).at(campaign.places.locate_key("recipients.consent")))
}

/// A warning about consents without a readable date.
pub fn check_consent_dates(survey: &Survey, campaign: &Campaign) -> Option<Finding> {
    let rows = &survey.undated_consents;
    if rows.is_empty() {
        return None;
    }
    let (subject, have, count) = match rows.len() {
        1 => ("consent", "has", "it counts"),
        _ => ("consents", "have", "they count"),
    };
    let file = campaign.consent.as_ref().and_then(|consent| consent.file.as_ref());
    let place = file.map(|file| format!(" in `{}`", file.file.path().display())).unwrap_or_default();
    let message = format!("the {subject}{place} {have} no valid date, so {count} as missing: {}", describe_first(rows));
    let finding = Finding::new(&CONSENT_DATE, message)
        .help("write dates as `2026-03-01` or `01.03.2026`; a date in the future is not valid");
    Some(finding.at(campaign.places.locate_key("recipients.consent.at")))
}

/// An error if consent is required, but no key says where it is recorded.
pub fn check_consent_source(campaign: &Campaign, profile: Option<&Profile>) -> Option<Finding> {
    if campaign.consent.is_some() || campaign.gaps.recipients || !campaign.needs_consent(profile) {
        return None;
    }
    let by = match profile.filter(|_| !campaign.requires_consent) {
        Some(profile) => format!("the profile `{}` requires consent", profile.name),
        None => "consent is required".to_owned(),
    };
    let message = format!("{by}, but `recipients.consent` does not say where it is recorded");
    let help = "add `consent: { column: … }` or `consent: { file: … }` to `recipients`; for codes, orders and \
                other messages that need no consent, write `purpose: service`";
    let place = campaign.places.locate_key("consent").or_else(|| campaign.places.locate_key("recipients"));
    Some(Finding::new(&rules::CONSENT, message).help(help).at(place))
}

/// An error that a consent column named in the campaign is missing from the list.
pub(in crate::check) fn missing_consent_column_finding(key: &str, name: &str, header: &ListHeader) -> Finding {
    let finding = Finding::new(
        &rules::CONSENT,
        format!("`consent.{key}` names the column `{name}`, but the list has no such column"),
    );
    let finding = finding.about(key);
    match did_you_mean(name, header.headers().iter().map(String::as_str)) {
        Some(suggestion) => finding.help(format!("did you mean `{suggestion}`?")),
        None => finding.help("write the header exactly as in the list"),
    }
}

/// A warning for each column that marks planned recipients as opted out.
///
/// Service messages cause no warnings, because opt-outs do not block them.
pub fn check_opted_out_rows(survey: &Survey, brief: &CampaignBrief) -> Vec<Finding> {
    let columns = survey.opted_out.iter().filter(|cells| !cells.rows.is_empty() && brief.purpose.is_marketing());
    columns.map(|cells| opted_out_finding(cells, brief.condition.as_ref())).collect()
}

fn opted_out_finding(cells: &OptedOutCells, condition: Option<&NamedTemplate>) -> Finding {
    let OptedOutCells { header, rows, values, .. } = cells;
    let example = values.values.first().map_or("", String::as_str);
    let message = format!(
        "the column `{header}` marks recipients as opted out (`{example}`), but the campaign would still send to \
         them: {}",
        describe_first(rows)
    );
    let help = match (suggest_condition(cells), condition) {
        (Some(reachable), None) => format!("add `where: {reachable}` to `recipients`"),
        (Some(reachable), Some(present)) if present.source.split_whitespace().any(|word| word == "or") => {
            format!("enclose the `where` expression in parentheses, and add `and {reachable}` after it")
        }
        (Some(reachable), Some(_)) => format!("add `and {reachable}` to `where`"),
        (None, _) => format!("skip these rows with a `where` condition on `{}`", cells.name),
    };
    Finding::new(&OPTED_OUT_ROWS, message).help(format!("{help}, or add their numbers to a `suppress` file"))
}

/// A condition that selects only recipients who have not opted out. `None` if the column has too many distinct values.
///
/// Each opt-out adds a new date to a column of dates, so the condition contains no dates.
fn suggest_condition(OptedOutCells { name, values, has_dates, others, .. }: &OptedOutCells) -> Option<String> {
    let cell = if is_variable(name) { name.clone() } else { format!("recipient[{}]", quote_text(name)) };
    let list =
        |values: &DistinctValues| values.values.iter().map(|value| quote_text(value)).collect::<Vec<_>>().join(", ");
    if *has_dates {
        let others = DistinctValues {
            values: others.values.iter().cloned().chain([String::new()]).collect(),
            has_more: others.has_more,
        };
        return match others.single_value() {
            Some(_) => Some(format!("{cell} == \"\"")),
            None => (!others.has_more).then(|| format!("{cell} in [{}]", list(&others))),
        };
    }
    match (values.single_value(), others.single_value()) {
        (Some(value), _) => Some(format!("{cell} != {}", quote_text(value))),
        _ if !values.has_more => Some(format!("not ({cell} in [{}])", list(values))),
        (_, Some(value)) => Some(format!("{cell} == {}", quote_text(value))),
        _ if !others.has_more && !others.values.is_empty() => Some(format!("{cell} in [{}]", list(others))),
        _ => None,
    }
}

/// Formats a text as a string literal for an expression.
fn quote_text(text: &str) -> String {
    let mark = if text.contains('"') { '\'' } else { '"' };
    format!("{mark}{text}{mark}")
}

/// A warning about planned rows with landline numbers, with a row count and the first few rows.
pub fn check_landlines(survey: &Survey) -> Option<Finding> {
    let rows = &survey.landlines;
    let predicate = match rows.len() {
        1 => "has a landline or service number",
        _ => "have landline or service numbers",
    };
    let finding =
        Finding::new(&LANDLINE, format!("{} {predicate}, which cannot receive this message", describe_first_few(rows)));
    let help = match rows.len() {
        1 => "ask for a mobile number, or remove this row from the list",
        _ => "ask for mobile numbers, or remove these rows from the list",
    };
    (!rows.is_empty()).then(|| finding.help(help))
}

/// Findings if the messages for `rows` exceed what is left of a limit. `spent` is what the edition has already used.
pub fn check_limits(
    campaign: &Campaign,
    profile: Option<&Profile>,
    survey: &Survey,
    rows: &RoaringBitmap,
    spent: Spending,
) -> Vec<Finding> {
    if rows.is_empty() {
        return Vec::new();
    }
    let limits = &campaign.limits;
    let exceeded_limit_finding = |excess: String, key: &str, limit: String, used: Option<String>| {
        let limit = match used {
            None => format!("but `{key}` is {limit}"),
            Some(used) => format!("but this edition has already used {used} of its `{key}` of {limit}"),
        };
        let message = format!("{excess}, {limit}: the run stops at the limit");
        Finding::new(&OVER_LIMITS, message).at(campaign.places.locate_key(key))
    };
    let recipients = limits.recipients.filter(|limit| spent.recipients.saturating_add(rows.len()) > *limit);
    let recipients = recipients.map(|limit| {
        let excess = format!("{} would get a message", format_count(rows.len(), "recipient"));
        let used = (spent.recipients > 0).then(|| format_thousands(spent.recipients));
        exceeded_limit_finding(excess, "limits.recipients", format_thousands(limit), used)
    });
    let cost = profile.and_then(|profile| {
        let Cost::AtMost(max_cost) = Cost::estimate(profile, &campaign.brief, survey, rows) else { return None };
        let limit = limits.cost.filter(|limit| spent.cost.saturating_add(max_cost) > *limit)?;
        let currency = profile.currency.as_deref().map(|currency| format!(" {currency}")).unwrap_or_default();
        let excess = format!("the messages can cost up to {}{currency}", max_cost.trim_decimals());
        let used = (spent.cost > Amount::default()).then(|| spent.cost.trim_decimals().to_string());
        Some(exceeded_limit_finding(excess, "limits.cost", limit.to_string(), used))
    });
    recipients.into_iter().chain(cost).collect()
}

/// An error if a new run would have more recipients than the profile allows.
pub fn check_recipients_limit(profile: &Profile, recipients: u64) -> Option<Finding> {
    let limit = profile.recipients_limit.map(u64::from).filter(|limit| recipients > *limit)?;
    let message = format!(
        "{} would get a message, but `limits.recipients` in the profile `{}` is {}",
        format_count(recipients, "recipient"),
        profile.name,
        format_thousands(limit)
    );
    let help = format!("check the list; to send to all of them, run with `--up-to {recipients}`");
    Some(Finding::new(&RECIPIENTS_LIMIT, message).help(help))
}

/// A warning if the list has more recipients than the limit allows, for use when the messages cannot be prepared.
pub fn check_list_limit(campaign: &Campaign, survey: &Survey) -> Option<Finding> {
    let planned = survey.count_planned();
    let limit = campaign.limits.recipients.filter(|limit| planned > *limit)?;
    let message = format!(
        "{planned} recipients in the list can get a message, but `limits.recipients` is {limit}: the run stops at the \
            limit, and the remaining recipients get no message"
    );
    Some(Finding::new(&OVER_LIMITS, message).at(campaign.places.locate_key("limits.recipients")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_duplicates_are_reported_by_row() {
        let message = |rows: &[u32]| duplicates_finding(&rows.iter().copied().collect()).map(|finding| finding.message);
        assert_eq!(message(&[]), None);
        assert!(message(&[3]).unwrap().starts_with("row 3 is skipped: its number"));
        assert!(message(&[3, 5]).unwrap().starts_with("rows 3 and 5 are skipped: their numbers"));
    }
}
