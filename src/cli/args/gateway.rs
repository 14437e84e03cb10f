//! The arguments of what an account is asked, told and sent by hand.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use secrecy::SecretString;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum GatewayCommand {
    /// Show how much money is left
    Balance(GatewayOption),
    /// Show the sender names and whether they are verified
    Senders(GatewayOption),
    /// Show what became of messages
    Status(MessageArgs),
    /// List, create or delete SMS templates
    #[command(subcommand)]
    Templates(SmsTemplatesCommand),
    /// List, create or delete Viber templates
    #[command(subcommand)]
    ViberTemplates(ViberTemplatesCommand),
    /// Add a gateway: its addresses, key and rate, tried before they are written
    Add(AddArgs),
    /// Print the secret address for the gateway's settings, where it tells of messages without an address of their own
    Hook(HookArgs),
    /// Accept that a profile's host has changed
    Trust {
        /// The profile's name
        #[arg(id = "trusted", value_name = "NAME")]
        name: String,
    },
    /// Look a number up: whether it is valid, and whose it is; costs money, the subscriber notices nothing
    Lookup(SingleArgs),
    /// Call a phone from a number whose last four digits are a one-time code, and print the code; costs money
    Otp(SingleArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct HookArgs {
    /// The profile's name
    #[arg(id = "hooked", value_name = "NAME")]
    pub(in crate::cli) name: String,
    /// Ask at the public address whether it leads to `campaign serve`; nothing is changed by it
    #[arg(long)]
    pub(in crate::cli) test: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AddArgs {
    /// The profile's name, such as production
    pub(in crate::cli) name: String,
    /// The address of its synchronous endpoint, without the path [default: asked for]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) base_url: Option<String>,
    /// The address of its asynchronous endpoint, if it has one
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) async_url: Option<String>,
    /// The environment variable with the API key
    #[arg(long, value_name = "VAR", conflicts_with = "key_file")]
    pub(in crate::cli) key_env: Option<String>,
    /// The file of the API key; where there is none, it gets the key that is typed or stands on standard input
    /// [default: secrets/NAME.key beside the profiles]
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key_file: Option<PathBuf>,
    /// The account's allowance, such as 10/s or 600/min [default: asked for; on this machine none]
    #[arg(long)]
    pub(in crate::cli) rate: Option<String>,
    /// The campaign to go on with: the profile is written where it is looked for
    #[arg(long = "for", value_name = "FILE")]
    pub(in crate::cli) campaign: Option<PathBuf>,
    /// Write it without asking the gateway whether it takes the key
    #[arg(long)]
    pub(in crate::cli) offline: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SingleArgs {
    /// The number: international, or national with --region
    pub(in crate::cli) phone: SecretString,
    /// The profile to ask through, or `sandbox` [default: the only profile there is]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// The country of a national number, such as UA
    #[arg(long, value_name = "ISO")]
    pub(in crate::cli) region: Option<String>,
    /// Do it without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TestArgs {
    /// The campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// The number that gets it, international or of the campaign's `region`; several if it is said several times
    #[arg(long, value_name = "PHONE", required = true)]
    pub(in crate::cli) to: Vec<SecretString>,
    /// The row of the list whose message it is [default: the first that would be sent]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) row: Option<u32>,
    /// Fetch a list that is no file, by the program, address, query or run that the campaign names; only of a campaign file
    /// that you trust
    #[arg(long)]
    pub(in crate::cli) fetch: bool,
    /// Send through this gateway instead of the campaign's own
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
    /// Send it even while the window of the campaign or the gateway is closed
    #[arg(long)]
    pub(in crate::cli) outside_window: bool,
    /// Do it without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

/// The account that a command is about.
#[derive(Debug, Args)]
pub(in crate::cli) struct GatewayOption {
    /// The gateway's profile [default: the only one of gateways.yaml]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) gateway: Option<String>,
}

/// A yes that is given beforehand.
#[derive(Debug, Args)]
pub(in crate::cli) struct YesOption {
    /// Do it without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct MessageArgs {
    /// Identifiers of messages: `id` in the results, or `msg_id` with --msg-id
    #[arg(required = true, value_name = "ID")]
    pub(in crate::cli) ids: Vec<String>,
    /// The identifiers are the gateway's
    #[arg(long)]
    pub(in crate::cli) msg_id: bool,
    #[command(flatten)]
    pub(in crate::cli) through: GatewayOption,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SmsTemplatesCommand {
    /// Show the SMS templates
    List(GatewayOption),
    /// Create an SMS template
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        text: TextArgs,
        #[command(flatten)]
        agreed: YesOption,
        #[command(flatten)]
        through: GatewayOption,
    },
    /// Delete an SMS template
    Delete {
        /// Its number in the list
        id: u64,
        #[command(flatten)]
        agreed: YesOption,
        #[command(flatten)]
        through: GatewayOption,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ViberTemplatesCommand {
    /// Show the Viber templates
    List(GatewayOption),
    /// Create a Viber template, which the gateway then looks over
    Create {
        /// The sender name that it is for
        #[arg(long)]
        signature: String,
        #[command(flatten)]
        text: TextArgs,
        #[command(flatten)]
        agreed: YesOption,
        #[command(flatten)]
        through: GatewayOption,
    },
    /// Delete a Viber template
    Delete {
        /// Its number in the list
        id: u64,
        /// Its text, which the gateway wants as well [default: the text in the list]
        #[arg(long)]
        text: Option<String>,
        #[command(flatten)]
        agreed: YesOption,
        #[command(flatten)]
        through: GatewayOption,
    },
}

/// The text of a template: typed, or in a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct TextArgs {
    /// The text
    #[arg(long)]
    pub(in crate::cli) text: Option<String>,
    /// The file with the text; its last line break is dropped
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,
}
