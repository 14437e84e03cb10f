//! The list of a loaded campaign as text in UTF-8, and how it was found to be written.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::CampaignList;
use crate::audience::DecodedText;
use crate::finding::{Finding, rules};
use crate::manifest::Campaign;

/// What is kept of a list that was read: a sheet, which is dear to read, and how the list is written.
#[derive(Default)]
pub(super) struct DecodedList {
    sheet: Mutex<Option<DecodedText>>,
    form: Mutex<Option<String>>,
}

impl DecodedList {
    /// Opens the list from its beginning.
    pub(super) fn open(&self, list: &CampaignList, campaign: &Campaign) -> Result<DecodedText, Finding> {
        let mut sheet = self.sheet.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(again) = sheet.as_ref().and_then(DecodedText::reopen) {
            return Ok(again);
        }
        let opened = list.open(&campaign.form, campaign.brief.region);
        let Some(decoded) = opened else { return Err(unfetched_list_finding(campaign)) };
        let decoded = decoded.map_err(|finding| locate_at_key(*finding, campaign))?;
        *sheet = decoded.reopen();
        Ok(decoded)
    }

    /// Remembers how the list was found to be written, which is told at the end.
    pub(super) fn set_form(&self, told: Option<String>) {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }

    /// How the list was found to be written, where it was read and is no CSV in UTF-8.
    pub(super) fn form(&self) -> Option<String> {
        self.form.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Shows nothing: what it holds is personal.
impl fmt::Debug for DecodedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodedList").finish_non_exhaustive()
    }
}

/// That nobody looked at a list that is no file, since nobody wanted it fetched.
fn unfetched_list_finding(campaign: &Campaign) -> Finding {
    let Campaign { recipients, places, .. } = campaign;
    let message = format!("the list ({recipients}) was not checked, because only a run or `--fetch` fetches it");
    Finding::new(&rules::RECIPIENTS_UNSEEN, message)
        .at(places.locate_key(&format!("recipients.{}", recipients.source_key())))
}

/// A finding about what the campaign says of its list, at the key that says it.
fn locate_at_key(finding: Finding, campaign: &Campaign) -> Finding {
    let says = |key: &str| finding.help.as_ref().is_some_and(|help| help.contains(&format!("delete `{key}`")));
    let key = if finding.rule == &rules::RECIPIENTS_MISSING {
        Some("file")
    } else if finding.rule == &rules::RECIPIENTS_SHEET {
        Some("sheet")
    } else if finding.rule == &rules::RECIPIENTS_FORM_OF_ANOTHER {
        ["encoding", "delimiter", "sheet"].into_iter().find(|key| says(key))
    } else {
        None
    };
    match key.and_then(|key| campaign.places.locate_key(&format!("recipients.{key}"))) {
        Some(place) => finding.at(place),
        None => finding,
    }
}
