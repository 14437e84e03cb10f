//! The list of a campaign, as it is at hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FetchedList;
use crate::audience::{Decoded, ListPlace, decode, find_list};
use crate::domain::{ListForm, Region};
use crate::finding::Finding;
use crate::ledger::Copies;
use crate::manifest::{CampaignPath, Recipients, unopened_list};
use crate::regular_file;

/// The list of a campaign, as it is at hand.
#[derive(Clone, Debug)]
pub enum List {
    /// A file of the user.
    File(CampaignPath),
    /// What a source gave.
    Fetched(Arc<FetchedList>),
    /// The copy of a run that goes on with it.
    Copies(Copies),
    /// It was not fetched; people know it so.
    Unseen(PathBuf),
}

impl List {
    /// The list of these recipients, as far as it is at hand without fetching it.
    pub(super) fn of(recipients: &Recipients) -> Self {
        match recipients {
            Recipients::File(path) => Self::File(path.clone()),
            other => Self::Unseen(other.to_string().into()),
        }
    }

    /// Whether it was not fetched.
    #[must_use]
    pub fn is_unseen(&self) -> bool {
        matches!(self, Self::Unseen(_))
    }

    /// The list from its beginning, as text in UTF-8; nothing where it was not fetched.
    pub(super) fn open(&self, form: &ListForm, region: Option<Region>) -> Option<Result<Decoded, Box<Finding>>> {
        let (opened, place) = match self {
            Self::File(file) => (file.open(), file.path()),
            Self::Fetched(list) => (regular_file::open(list.path()), list.place()),
            Self::Copies(copies) => {
                let unread = |error| Box::new(unopened_list(copies.place().as_ref(), &error));
                return Some(copies.list().map(Decoded::as_it_is).map_err(unread));
            }
            Self::Unseen(_) => return None,
        };
        let opened = opened.map_err(|error| Box::new(unopened_list(place, &error)));
        Some(opened.and_then(|file| decode(file, place, form, region)))
    }

    /// The probable place of the list in its file, if it differs from the form.
    pub(super) fn likely_place(&self, form: &ListForm, region: Option<Region>) -> Option<ListPlace> {
        match self {
            Self::File(file) => find_list(|| file.open(), file.path(), form, region),
            Self::Fetched(list) => find_list(|| regular_file::open(list.path()), list.place(), form, region),
            Self::Copies(_) | Self::Unseen(_) => None,
        }
    }

    /// Whether it can be looked at.
    pub(super) fn is_there(&self) -> bool {
        match self {
            Self::File(path) => path.is_present(),
            Self::Fetched(_) | Self::Copies(_) => true,
            Self::Unseen(_) => false,
        }
    }

    /// Where it is, as findings name it.
    pub(super) fn place(&self) -> &Path {
        match self {
            Self::File(file) => file.path(),
            Self::Unseen(path) => path,
            Self::Fetched(list) => list.place(),
            Self::Copies(copies) => copies.place().as_ref(),
        }
    }
}
