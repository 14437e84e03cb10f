//! Campaign files and gateway profiles: YAML becomes [`Campaign`] and [`Profile`].
//!
//! It tells everything that these files and the text files they name show by themselves, all at
//! once and each with its place. It reads no recipients, compiles no template, knows no network
//! and no environment.
//!
//! The way of a file: bytes (`file`) become a tree with places (`yaml`), whose form is checked
//! against the tables of `keys`; `resolve` and `profile` make the typed values of it.

mod align;
mod campaign;
mod campaign_paths;
mod conceal;
mod day;
mod destination;
pub(crate) mod document;
mod file;
mod gaps;
mod keys;
mod notify;
mod places;
mod profile;
mod recipients;
mod report;
mod resolve;
mod resource;
mod section;
mod sending_terms;
mod settings;
mod suppress_file;
mod table_file;
mod text_folders;
mod value;
mod variant;
mod window;
mod yaml;

pub use campaign::{Brief, Campaign, Delivery, Duplicates, OnInDoubt, ReceiptsBy, SANDBOX, StopAfter};
pub use campaign_paths::{CampaignPath, CampaignPaths, HeldFolder, Reach};
pub use day::Day;
pub use destination::Destination;
pub use file::{unopened, unopened_list};
pub use gaps::Gaps;
pub use keys::{gateways_schema, schema};
pub use notify::{Notify, NotifyForm, NotifyWay};
pub use places::Places;
pub use profile::{
    Address, ApprovalRule, GatewaySearch, Gateways, HookSettings, KeySource, NewProfile, Profile, load_gateways,
    with_profile,
};
pub use recipients::{HeaderText, ListCommand, ListQuery, ListUrl, PastPeople, Recipients};
pub use report::LoadedFile;
pub use resolve::{is_slug, load_campaign, load_campaign_within, no_text_for, slug, zone_advice};
pub use resource::{NOTIFY_COMMAND, Resource, ResourceKind};
pub use sending_terms::SendingTerms;
pub use settings::{Origin, Setting, settings};
pub use suppress_file::SuppressFile;
pub use table_file::TableFile;
pub use text_folders::{TextFolders, text_of};
pub(crate) use value::Seconds;
pub use value::{NotReadable, Rate, Share};
pub use variant::{Arm, Holdout, VARIANT, Variant};
pub use window::{SendingWindow, Until, WindowZone};
