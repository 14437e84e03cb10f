//! Further mistakes of a campaign that is refused: in its list, its texts and its rows.

use std::io::BufReader;

use super::Inputs;
use crate::check::{
    PrepareError, SurveyExclusions, SurveyInputs, check_embedded_rows, check_invalid_rows, check_list_limit,
    check_opted_out_rows, check_unknown_zones, survey_recipients,
};
use crate::domain::{MessageContent, OperationKind};
use crate::finding::{Finding, rules};
use crate::manifest::{CampaignBrief, Gaps};

impl Inputs {
    /// The problems of the list, the texts and the rows of a campaign whose file or profile is refused.
    ///
    /// A list that would have to be fetched is not checked.
    pub(super) fn find_other_problems(&self, looks_at_list: bool) -> Vec<Finding> {
        let gaps = &self.campaign.gaps;
        let findings = if !looks_at_list || gaps.list || self.list.is_unfetched() {
            self.find_text_problems()
        } else {
            match self.decode_list() {
                Err(finding) => [vec![finding], self.find_text_problems()].concat(),
                Ok(list) => match self.compile_brief(&self.campaign.brief, list) {
                    Ok(_) => self.find_row_problems(),
                    Err(unprepared) => self.add_row_problems(unprepared),
                },
            }
        };
        findings.into_iter().filter(|finding| is_independent(finding, gaps, &self.warnings)).collect()
    }

    /// The problems of a campaign that cannot be prepared, with those of the rows of its list.
    pub(super) fn add_row_problems(&self, PrepareError { findings, has_rows }: PrepareError) -> Vec<Finding> {
        let rows = if has_rows { self.find_row_problems() } else { Vec::new() };
        [findings, rows].concat()
    }

    /// The problems of the rows of the list, whatever the texts are.
    fn find_row_problems(&self) -> Vec<Finding> {
        let brief = strip_texts(&self.campaign.brief);
        let with_condition = CampaignBrief { condition: self.campaign.brief.condition.clone(), ..brief.clone() };
        let Ok(list) = self.decode_list() else { return Vec::new() };
        let list = BufReader::new(list);
        let (brief, prepared) = match self.compile_brief(&with_condition, list) {
            Ok(prepared) => (with_condition, Ok(prepared)),
            Err(_) => match self.decode_list() {
                Ok(list) => (brief.clone(), self.compile_brief(&brief, BufReader::new(list))),
                Err(_) => return Vec::new(),
            },
        };
        let Ok(mut prepared) = prepared else { return Vec::new() };
        let (excluded, zones) = (SurveyExclusions::default(), self.campaign.zone_column());
        let by_country = self.campaign.uses_recipient_zones(self.destination.profile());
        let terms = SurveyInputs { brief: &brief, excluded: &excluded, zones, by_country };
        // If the condition is wrong, it is unknown which rows are selected, but a damaged row is damaged.
        let is_known = brief.condition.is_some() == self.campaign.brief.condition.is_some();
        let surveyed = survey_recipients(&mut prepared, &terms);
        let findings = match surveyed {
            Ok(survey) => [
                check_invalid_rows(&survey),
                check_opted_out_rows(&survey, &brief),
                check_embedded_rows(&survey).into_iter().collect(),
                check_list_limit(&self.campaign, &survey).filter(|_| is_known).into_iter().collect(),
                check_unknown_zones(&survey).into_iter().collect(),
            ]
            .concat(),
            Err(findings) => self.locate_window_findings(findings),
        };
        findings.into_iter().filter(|finding| is_known || finding.place.is_some()).collect()
    }
}

/// A campaign without texts, to check only the rows of its list.
fn strip_texts(brief: &CampaignBrief) -> CampaignBrief {
    let content = MessageContent { kind: OperationKind::Pipeline, stages: Vec::new() };
    let (edition, condition, tables, variants) = (None, None, Vec::new(), Vec::new());
    CampaignBrief { content, edition, condition, tables, variants, ..brief.clone() }
}

/// Whether a finding is not just a consequence of mistakes in the campaign file.
fn is_independent(finding: &Finding, gaps: &Gaps, told: &[Finding]) -> bool {
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
