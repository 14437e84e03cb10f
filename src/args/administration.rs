//! Command-line arguments of the commands that administer gateways and the ledger: `gateway`, `ledger` and `doctor`.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use secrecy::SecretString;

use campaign_ledger::PostgresAddress;

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Show the balance of the account
    Balance(GatewayOption),
    /// Show the sender names and whether they are verified
    Senders(GatewayOption),
    /// Show the delivery status of messages
    Status(MessageArgs),
    /// List, create or delete SMS templates
    #[command(subcommand)]
    Templates(SmsTemplatesCommand),
    /// List, create or delete Viber templates
    #[command(subcommand)]
    ViberTemplates(ViberTemplatesCommand),
    /// Add a gateway profile: URLs, API key and rate
    ///
    /// The key is tested with the gateway before the profile is saved.
    Add(AddArgs),
    /// Print the secret webhook URL to enter in the gateway's settings
    Hook(HookArgs),
    /// Accept a profile's changed host or weaker approval rule
    Trust {
        /// Name of the profile
        #[arg(id = "trusted", value_name = "NAME")]
        name: String,
    },
    /// Look up a number's status and operator; costs money
    ///
    /// The subscriber is not notified.
    Lookup(SingleArgs),
    /// Call a phone with a one-time code, and print the code; costs money
    ///
    /// The last four digits of the calling number are the code.
    Otp(SingleArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// Name of the profile
    #[arg(id = "hooked", value_name = "NAME")]
    pub(crate) name: String,
    /// Test whether the public URL reaches `campaign serve`
    #[arg(long)]
    pub(crate) test: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the profile, such as production
    pub(crate) name: String,
    /// URL of the synchronous endpoint, without the path [default: ask]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// URL of the asynchronous endpoint, if the gateway has one
    #[arg(long, value_name = "URL")]
    pub(crate) async_url: Option<String>,
    /// Environment variable with the API key
    #[arg(long, value_name = "VAR", conflicts_with = "key_file")]
    pub(crate) key_env: Option<String>,
    /// File with the API key [default: secrets/NAME.key next to the profiles]
    ///
    /// If the file does not exist, it is created with the key that you type or pass on standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Rate limit of the account, such as 10/s or 600/min [default: ask; none for a loopback gateway]
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// Countries that you send to, such as UA,PL; recipients elsewhere are reported before a run [default: ask]
    #[arg(long, value_name = "COUNTRIES")]
    pub(crate) home: Option<String>,
    /// Save the profile where this campaign looks for it, and suggest the next command
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) campaign: Option<PathBuf>,
    /// Save the profile without testing the key with the gateway
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SingleArgs {
    /// Phone number in international format, or in national format with --region
    pub(crate) phone: SecretString,
    /// Gateway profile to use, or `sandbox` [default: the only profile]
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
    /// Country of a number that has no country code, such as UA
    #[arg(long, value_name = "COUNTRY")]
    pub(crate) region: Option<String>,
    /// Proceed without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// The gateway profile whose account a command is about.
#[derive(Debug, Args)]
pub(crate) struct GatewayOption {
    /// Gateway profile to use [default: the only profile]
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check only this gateway profile [default: all profiles]
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
}

/// The confirmation that is given beforehand.
#[derive(Debug, Args)]
pub(crate) struct YesOption {
    /// Proceed without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MessageArgs {
    /// Message identifiers: `id` in the results, or `msg_id` with --msg-id
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Look up messages by `msg_id`, the gateway's own identifier
    #[arg(long)]
    pub(crate) msg_id: bool,
    #[command(flatten)]
    pub(crate) gateway_option: GatewayOption,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SmsTemplatesCommand {
    /// List the SMS templates
    List(GatewayOption),
    /// Create an SMS template
    Create {
        /// Name of the template
        name: String,
        #[command(flatten)]
        text: TextArgs,
        #[command(flatten)]
        confirmation: YesOption,
        #[command(flatten)]
        gateway_option: GatewayOption,
    },
    /// Delete an SMS template
    Delete {
        /// Identifier of the template, as `list` shows it
        id: u64,
        #[command(flatten)]
        confirmation: YesOption,
        #[command(flatten)]
        gateway_option: GatewayOption,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ViberTemplatesCommand {
    /// List the Viber templates
    List(GatewayOption),
    /// Create a Viber template; the gateway reviews it afterwards
    Create {
        /// Sender name to use with the template
        #[arg(long, value_name = "SENDER")]
        signature: String,
        #[command(flatten)]
        text: TextArgs,
        #[command(flatten)]
        confirmation: YesOption,
        #[command(flatten)]
        gateway_option: GatewayOption,
    },
    /// Delete a Viber template
    Delete {
        /// Identifier of the template, as `list` shows it
        id: u64,
        /// Text of the template; the gateway requires both the ID and the text [default: the text that `list` shows]
        #[arg(long, value_name = "TEXT")]
        text: Option<String>,
        #[command(flatten)]
        confirmation: YesOption,
        #[command(flatten)]
        gateway_option: GatewayOption,
    },
}

/// The text of a template: typed, or in a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TextArgs {
    /// Text of the template
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// File with the text; the final line break is removed
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Check the records, indexes and copies of lists; change nothing
    Check,
    /// Move the ledger to a database that several machines can share
    ///
    /// All runs move with it. The file in the state folder is kept, but can no longer be used to send.
    Copy {
        /// URL of a database without a ledger, such as postgres://user@host/database
        ///
        /// Keep the password in PGPASSWORD or ~/.pgpass.
        #[arg(long, value_name = "URL")]
        to: LedgerUrl,
    },
    /// Back up the ledger and its copies of campaigns and lists
    ///
    /// Runs can continue sending in the meantime.
    Backup {
        /// New or empty folder
        dir: PathBuf,
    },
    /// Restore a backup
    ///
    /// Rows that might have been sent since the backup are marked as in doubt, and schedules are paused.
    Restore {
        /// Folder of the backup
        dir: PathBuf,
    },
    /// Upgrade the tables of a shared database to this version
    ///
    /// Install this version on all machines first: after the upgrade, the database refuses earlier versions.
    Upgrade,
}

/// The URL of a shared ledger as it was typed.
///
/// The URL is not parsed with the arguments, because usage errors repeat the argument and the URL might contain a
/// password.
#[derive(Clone)]
pub(crate) struct LedgerUrl(String);

impl LedgerUrl {
    /// The URL without its password, for suggested commands. `None` if the value is not a PostgreSQL URL.
    pub(crate) fn without_password(&self) -> Option<String> {
        Some(PostgresAddress::parse(self.url()?).ok()?.url_without_password().to_owned())
    }

    /// The URL. `None` if the option or the environment variable is empty.
    pub(crate) fn url(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|url| !url.is_empty())
    }
}

impl FromStr for LedgerUrl {
    type Err = Infallible;

    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self(url.to_owned()))
    }
}

impl fmt::Debug for LedgerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LedgerUrl")
    }
}
