//! The mistakes that one mistake must not hide: of the list, the texts and the rows of a campaign that is refused anyway.

use std::io::BufReader;

use super::Inputs;
use crate::check::{
    Excluded, Terms, Unprepared, invalid_rows, list_over_limits, opted_out_rows, rows_within, survey, unknown_zones,
};
use crate::domain::{Content, OperationKind};
use crate::finding::{Finding, rules};
use crate::manifest::{Brief, Gaps};

impl Inputs {
    /// What is wrong with the list, the texts and the rows of a campaign whose file or profile is refused.
    ///
    /// A list that has to be fetched is not looked at.
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

    /// What is wrong with the rows of the list, whatever they are sent.
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
        // If the condition is wrong, nobody knows which rows are meant, but a damaged row is damaged.
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

/// A campaign that says nothing, to look at the rows of its list alone.
fn without_texts(brief: &Brief) -> Brief {
    let content = Content { kind: OperationKind::Pipeline, stages: Vec::new() };
    let (edition, condition, tables, variants) = (None, None, Vec::new(), Vec::new());
    Brief { content, edition, condition, tables, variants, ..brief.clone() }
}

/// Whether a finding is no consequence of what is wrong with the campaign file.
fn is_proven(finding: &Finding, gaps: &Gaps, told: &[Finding]) -> bool {
    // A region or a column that the file says wrongly may be why numbers are invalid.
    if ["recipients-phone-column", "too-many-invalid", "invalid-row", "over-limits"].contains(&finding.rule.id) {
        return !gaps.recipients;
    }
    if *finding.rule == rules::UNKNOWN_VARIABLE {
        let name = finding.message.split('`').nth(1).unwrap_or_default();
        return !gaps.may_define(name);
    }
    *finding.rule != rules::DATA_FILE || !told.iter().any(|other| *other.rule == rules::DATA_FILE)
}
