//! Campaign files and gateway profiles: YAML becomes [`Campaign`] and [`Profile`].
//!
//! This crate reports all problems in these files and their text files, each with its location. It reads no recipients,
//! compiles no templates, and uses neither the network nor the environment.
//!
//! The flow: `document` reads bytes, `yaml` makes a tree with locations, the tables of `keys` check its structure, and
//! `resolve` and `profile` convert it to typed values.

mod campaign;
mod campaign_paths;
mod campaign_tests;
pub mod document;
mod fixing;
mod keys;
mod notify;
mod profile;
mod recipients;
mod resolve;
mod resource;
mod sending;
mod settings;
mod source_map;
mod text_folders;
mod value;
mod window;
mod yaml;

pub use campaign::{
    BreakerSettings, Campaign, CampaignBrief, DeliverySettings, DuplicatePolicy, Gaps, Holdout, InDoubtPolicy,
    MessageArm, MessageVariant, ReceiptMode, SANDBOX, VARIANT,
};
pub use campaign_paths::{CampaignPath, CampaignPaths, FileState, HeldFolder, PathScope, UnsavedTexts};
pub use campaign_tests::{CampaignTest, ExpectedText, TestExpectation, TestSubject};
pub use document::LoadedFile;
pub use fixing::{FixedText, conceal_file_secrets, fix_campaign_text};
pub use keys::{KeyPlace, KeySpec, PathStep, campaign_schema, gateways_schema};
pub use notify::{NotificationFormat, NotificationMethod, NotifySettings};
pub use profile::{
    ABROAD_LIMIT, ApprovalRule, ApproverKey, EndpointUrl, GatewaySearch, Gateways, MessagePrice, NewProfile, Profile,
    SecretSource, WebhookSettings, append_profile, load_gateways,
};
pub use recipients::{
    ConsentFile, ConsentSource, HeaderText, ListCommand, ListQuery, ListUrl, PastRecipients, RecipientSource,
    SuppressionFile, TableFile, describe_file_open_error, describe_list_open_error,
};
pub use resolve::{
    CampaignDay, is_slug, load_campaign, load_campaign_within, missing_text_reason, suggest_zone, to_slug,
};
pub use resource::{NOTIFY_COMMAND, Resource, ResourceKind};
pub use sending::{Destination, SendingTerms};
pub use settings::{Setting, SettingOrigin, list_settings};
pub use source_map::SourceMap;
pub use text_folders::{TextFolders, read_text_file};
pub use value::Seconds;
pub use value::{ParseValueError, Percentage, Rate};
pub use window::{SendingDeadline, SendingWindow, WindowZone};
pub use yaml::{MapEntry, Node, Scalar};
