//! The list of a campaign, as it is at hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FetchedList;
use crate::audience::{DecodedText, ListPlace, decode, find_list};
use crate::domain::{ListFormat, Region};
use crate::finding::Finding;
use crate::ledger::Copies;
use crate::manifest::{CampaignPath, RecipientSource, describe_unopened_list};
use crate::regular_file;

/// The list of a campaign, as it is at hand.
#[derive(Clone, Debug)]
pub enum CampaignList {
    /// A file of the user.
    File(CampaignPath),
    /// What a source gave.
    Fetched(Arc<FetchedList>),
    /// The copy of a run that goes on with it.
    Copies(Copies),
    /// It was not fetched; people know it so.
    NotFetched(PathBuf),
}

impl CampaignList {
    /// The list of these recipients, as far as it is at hand without fetching it.
    pub(super) fn for_recipients(recipients: &RecipientSource) -> Self {
        match recipients {
            RecipientSource::File(path) => Self::File(path.clone()),
            other => Self::NotFetched(other.to_string().into()),
        }
    }

    /// Whether it was not fetched.
    #[must_use]
    pub fn is_unfetched(&self) -> bool {
        matches!(self, Self::NotFetched(_))
    }

    /// The list from its beginning, as text in UTF-8; nothing where it was not fetched.
    pub(super) fn open(&self, form: &ListFormat, region: Option<Region>) -> Option<Result<DecodedText, Box<Finding>>> {
        let (opened, place) = match self {
            Self::File(file) => (file.open_file(), file.path()),
            Self::Fetched(list) => (regular_file::open(list.path()), list.place()),
            Self::Copies(copies) => {
                let unread = |error| Box::new(describe_unopened_list(copies.place().as_ref(), &error));
                return Some(copies.open_list().map(DecodedText::from_utf8).map_err(unread));
            }
            Self::NotFetched(_) => return None,
        };
        let opened = opened.map_err(|error| Box::new(describe_unopened_list(place, &error)));
        Some(opened.and_then(|file| decode(file, place, form, region)))
    }

    /// The probable place of the list in its file, if it differs from the form.
    pub(super) fn likely_place(&self, form: &ListFormat, region: Option<Region>) -> Option<ListPlace> {
        match self {
            Self::File(file) => find_list(|| file.open_file(), file.path(), form, region),
            Self::Fetched(list) => find_list(|| regular_file::open(list.path()), list.place(), form, region),
            Self::Copies(_) | Self::NotFetched(_) => None,
        }
    }

    /// Whether it can be looked at.
    pub(super) fn is_available(&self) -> bool {
        match self {
            Self::File(path) => path.is_present(),
            Self::Fetched(_) | Self::Copies(_) => true,
            Self::NotFetched(_) => false,
        }
    }

    /// Where it is, as findings name it.
    pub(super) fn place(&self) -> &Path {
        match self {
            Self::File(file) => file.path(),
            Self::NotFetched(path) => path,
            Self::Fetched(list) => list.place(),
            Self::Copies(copies) => copies.place().as_ref(),
        }
    }
}
