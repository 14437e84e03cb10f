//! The options of pages that a command writes to a file.

use clap::{Arg, Args, Command, ValueEnum};

use crate::web::words::PageLanguage;

/// The heading of the options of a page.
pub(in crate::cli) const PAGE: &str = "HTML page";
/// The identifier of the option that names the file of a page, for all commands.
pub(in crate::cli) const PAGE_FILE: &str = "page_file";

/// How a page is written.
#[derive(Debug, Args)]
pub(in crate::cli) struct PageArgs {
    /// Open the page in a browser
    #[arg(long, help_heading = PAGE)]
    pub(in crate::cli) open: bool,
    /// Show full phone numbers instead of only their last digits
    #[arg(long, help_heading = PAGE)]
    pub(in crate::cli) unmasked: bool,
    /// Language of the page [default: the system's language if available, otherwise en]
    #[arg(long, value_enum, value_name = "LANGUAGE", help_heading = PAGE)]
    pub(in crate::cli) lang: Option<LanguageName>,
}

/// The command line. Options of a page require the option that names its file, except for `report`.
pub(super) fn with_page_options(command: Command) -> Command {
    let require_file = |option: Arg| {
        let is_of_page = ["open", "unmasked", "lang"].contains(&option.get_id().as_str());
        if is_of_page { option.requires(PAGE_FILE) } else { option }
    };
    // Commands and options keep their order in the help.
    command.mut_subcommands(|below| {
        let needs_file = ["preview", "plan"].contains(&below.get_name());
        if needs_file { below.mut_args(require_file) } else { below }
    })
}

/// A language, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LanguageName {
    /// English
    En,
    /// Ukrainian
    Uk,
}

impl PageArgs {
    /// The language of the page: the one that was typed, else that of the system.
    pub(in crate::cli) fn page_language(&self) -> PageLanguage {
        match self.lang {
            Some(LanguageName::En) => PageLanguage::English,
            Some(LanguageName::Uk) => PageLanguage::Ukrainian,
            None => {
                // As POSIX has it: the first of them that says anything.
                let said = |name: &&str| std::env::var(name).is_ok_and(|locale| !locale.is_empty());
                let name = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find(said);
                name.and_then(|name| std::env::var(name).ok())
                    .map(|locale| PageLanguage::from_locale(&locale))
                    .unwrap_or_default()
            }
        }
    }
}
