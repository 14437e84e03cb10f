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

pub use campaign::{
    BreakerSettings, Campaign, CampaignBrief, DeliverySettings, DuplicatePolicy, InDoubtPolicy, ReceiptMode, SANDBOX,
};
pub use campaign_paths::{CampaignPath, CampaignPaths, HeldFolder, PathScope};
pub use day::CampaignDay;
pub use destination::Destination;
pub use file::{describe_unopened_file, describe_unopened_list};
pub use gaps::Gaps;
pub use keys::{campaign_schema, gateways_schema};
pub use notify::{NotificationFormat, NotificationMethod, NotifySettings};
pub use places::SourceMap;
pub use profile::{
    ApprovalRule, EndpointUrl, GatewaySearch, Gateways, NewProfile, Profile, SecretSource, WebhookSettings,
    append_profile, load_gateways,
};
pub use recipients::{HeaderText, ListCommand, ListQuery, ListUrl, PastRecipients, RecipientSource};
pub use report::LoadedFile;
pub use resolve::{is_slug, load_campaign, load_campaign_within, missing_text_reason, suggest_zone, to_slug};
pub use resource::{NOTIFY_COMMAND, Resource, ResourceKind};
pub use sending_terms::SendingTerms;
pub use settings::{Setting, SettingOrigin, list_settings};
pub use suppress_file::SuppressionFile;
pub use table_file::TableFile;
pub use text_folders::{TextFolders, read_text_file};
pub(crate) use value::Seconds;
pub use value::{ParseValueError, Percentage, Rate};
pub use variant::{Holdout, MessageArm, MessageVariant, VARIANT};
pub use window::{SendingDeadline, SendingWindow, WindowZone};
