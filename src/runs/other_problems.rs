//! Further mistakes of a campaign that is refused: in its list, its texts and its rows.

use std::io::BufReader;

use super::Inputs;
use crate::check::{
    Excluded, Terms, Unprepared, invalid_rows, list_over_limits, opted_out_rows, rows_within, survey, unknown_zones,
};
use crate::domain::{Content, OperationKind};
use crate::finding::{Finding, rules};
use crate::manifest::{Brief, Gaps};

impl Inputs {
    /// The problems of the list, the texts and the rows of a campaign whose file or profile is refused.
    ///
    /// A list that would have to be fetched is not checked.
    pub(super) fn other_problems(&self, looks_at_list: bool) -> Vec<Finding> {
        let gaps = &self.campaign.gaps;
        let findings = if !looks_at_list || gaps.list || self.list.is_unseen() {
            self.text_problems()
        } else {
            match self.decoded() {
                Err(finding) => [vec![finding], self.text_problems()].concat(),
                Ok(list) => match self.prepare_brief(&self.campaign.brief, list) {
                    Ok(_) => self.row_problems(),
                    Err(unprepared) => self.with_rows(unprepared),
                },
            }
        };
        findings.into_iter().filter(|finding| is_proven(finding, gaps, &self.warnings)).collect()
    }

    /// The problems of a campaign that cannot be prepared, with those of the rows of its list.
    pub(super) fn with_rows(&self, Unprepared { findings, has_rows }: Unprepared) -> Vec<Finding> {
        let rows = if has_rows { self.row_problems() } else { Vec::new() };
        [findings, rows].concat()
    }

    /// The problems of the rows of the list, whatever the texts are.
    fn row_problems(&self) -> Vec<Finding> {
        let brief = without_texts(&self.campaign.brief);
        let with_condition = Brief { condition: self.campaign.brief.condition.clone(), ..brief.clone() };
        let Ok(list) = self.decoded() else { return Vec::new() };
        let list = BufReader::new(list);
        let (brief, prepared) = match self.prepare_brief(&with_condition, list) {
            Ok(prepared) => (with_condition, Ok(prepared)),
            Err(_) => match self.decoded() {
                Ok(list) => (brief.clone(), self.prepare_brief(&brief, BufReader::new(list))),
                Err(_) => return Vec::new(),
            },
        };
        let Ok(mut prepared) = prepared else { return Vec::new() };
        let (excluded, zones) = (Excluded::default(), self.campaign.zone_column());
        let by_country = self.campaign.goes_by_country(self.destination.profile());
        let terms = Terms { brief: &brief, excluded: &excluded, zones, by_country };
        // If the condition is wrong, it is unknown which rows are selected, but a damaged row is damaged.
        let is_known = brief.condition.is_some() == self.campaign.brief.condition.is_some();
        let surveyed = survey(&mut prepared, &terms);
        let findings = match surveyed {
            Ok(survey) => [
                invalid_rows(&survey),
                opted_out_rows(&survey, &brief),
                rows_within(&survey).into_iter().collect(),
                list_over_limits(&self.campaign, &survey).filter(|_| is_known).into_iter().collect(),
                unknown_zones(&survey).into_iter().collect(),
            ]
            .concat(),
            Err(findings) => self.at_window(findings),
        };
        findings.into_iter().filter(|finding| is_known || finding.place.is_some()).collect()
    }
}

/// A campaign without texts, to check only the rows of its list.
fn without_texts(brief: &Brief) -> Brief {
    let content = Content { kind: OperationKind::Pipeline, stages: Vec::new() };
    let (edition, condition, tables, variants) = (None, None, Vec::new(), Vec::new());
    Brief { content, edition, condition, tables, variants, ..brief.clone() }
}

/// Whether a finding is not just a consequence of mistakes in the campaign file.
fn is_proven(finding: &Finding, gaps: &Gaps, told: &[Finding]) -> bool {
    // A wrong region or column in the file can be why numbers are invalid.
    if ["recipients-phone-column", "too-many-invalid", "invalid-row", "over-limits"].contains(&finding.rule.id) {
        return !gaps.recipients;
    }
    if *finding.rule == rules::UNKNOWN_VARIABLE {
        let name = finding.message.split('`').nth(1).unwrap_or_default();
        return !gaps.may_define(name);
    }
    *finding.rule != rules::DATA_FILE || !told.iter().any(|other| *other.rule == rules::DATA_FILE)
}
