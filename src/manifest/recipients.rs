//! Where the recipients of a campaign come from.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::{CampaignPath, SecretSource};
use crate::domain::RowState;

/// Where the recipients of a campaign come from. It holds no secret, only where one is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum RecipientSource {
    /// A file of the user.
    File(CampaignPath),
    /// People of an earlier run.
    Run(PastRecipients),
    /// An address.
    Url(ListUrl),
    /// What a program prints.
    Command(ListCommand),
    /// The answer of a database.
    Sql(ListQuery),
    /// What is piped into standard input.
    StandardInput,
}

/// People by what became of them in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRecipients {
    /// The run, such as `autumn-sale@3`, or its campaign's name for the latest.
    pub run: String,
    /// What became of them: one of these; never empty.
    pub states: Vec<RowState>,
}

/// An address that a list is fetched from: `https`, or on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListUrl {
    /// The address.
    pub url: Url,
    /// What it is asked with, by the names of headers.
    pub headers: Vec<(String, HeaderText)>,
    /// How long it may take until the whole list is there.
    pub timeout: Duration,
}

/// What stands in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderText {
    /// This.
    Plain(String),
    /// A secret, kept there.
    Secret(SecretSource),
}

/// A program that prints a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCommand {
    /// The program and its arguments; never empty.
    pub words: Vec<String>,
    /// The folder that it works in: that of the campaign file.
    pub folder: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
}

/// A query whose answer is a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The query, in which `:today` is the date.
    pub sql: String,
    /// Where the address of the database is kept.
    pub from: SecretSource,
    /// How long it may take until the whole list is there.
    pub timeout: Duration,
}

impl RecipientSource {
    /// The file that they stand in, if they stand in one.
    #[must_use]
    pub fn list_file(&self) -> Option<&CampaignPath> {
        match self {
            Self::File(path) => Some(path),
            Self::Run(_) | Self::Url(_) | Self::Command(_) | Self::Sql(_) | Self::StandardInput => None,
        }
    }

    /// The key under `recipients` that names them.
    #[must_use]
    pub fn source_key(&self) -> &'static str {
        match self {
            Self::File(_) | Self::StandardInput => "file",
            Self::Run(_) => "run",
            Self::Url(_) => "url",
            Self::Command(_) => "command",
            Self::Sql(_) => "sql",
        }
    }
}

/// How people know them; no query of an address and no argument is shown, since secrets are found there.
impl Display for RecipientSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Run(PastRecipients { run, states }) => {
                let states: Vec<&str> = states.iter().map(|state| state.name()).collect();
                write!(f, "recipients of {run} ({})", states.join(", "))
            }
            Self::Url(ListUrl { url, .. }) => {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                write!(f, "{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
            }
            Self::Command(ListCommand { words, .. }) => {
                let program = words.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
                write!(f, "the output of {}", program.to_string_lossy())
            }
            Self::Sql(ListQuery { from: SecretSource::Env(name), .. }) => write!(f, "a query on {name}"),
            Self::Sql(ListQuery { from: SecretSource::File(path), .. }) => write!(f, "a query on {}", path.display()),
            Self::StandardInput => f.write_str("standard input"),
        }
    }
}
