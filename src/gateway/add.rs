//! `campaign gateway add`: asks for the addresses, key and rate of a gateway, tests the key, and writes the profile.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf, absolute};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::args::AddArgs;
use crate::context::Context;
use crate::exit;
use crate::exit::CommandFailure;
use crate::output::Output;
use crate::prompt::{read_hidden_line, read_typed_line};
use crate::state_folder::LedgerPurpose;
use crate::suggested::{shell_path, with_gateway};
use crate::text::{Span, StyledLine, StyledText, caution, copyable, plain, strong};
use campaign_core::domain::{CountrySet, Region};
use campaign_gateway::{Balance, FailureCause, InquiryFailure, SenderName};
use campaign_manifest::{ABROAD_LIMIT, EndpointUrl, NewProfile, Rate, SecretSource, is_slug};
use campaign_runs::draft::{GatewayLine, KeyFile, ProfileDraft, find_campaigns};
use campaign_runs::{Error, NewAccount, add_gateway, run_blocking};

/// The default rate: slow, and within the limit of any account.
const DEFAULT_RATE: &str = "10/s";
/// The maximum length of a key, in bytes.
const MAX_KEY_BYTES: u64 = 4096;

pub(super) async fn add_profile(context: &Context, args: AddArgs) -> Result<u8, CommandFailure> {
    let profiles_file = context.profiles().new_profile_path(args.campaign.as_deref());
    check_profile_name(context, &args.name, &profiles_file)?;
    let prompts = ProfilePrompts { output: &context.output, can_ask: context.output.can_ask() };
    let base_url = prompts.ask_base_url(args.base_url).await?;
    let async_url = prompts.ask_async_url(args.async_url).await?;
    let is_local = base_url.is_loopback() && async_url.as_ref().is_none_or(EndpointUrl::is_loopback);
    let rate = prompts.ask_rate(args.rate, is_local).await?;
    let home = prompts.ask_home(args.home, is_local).await?;
    let key = KeyLocation::choose(&args.name, args.key_env, args.key_file, &profiles_file)?;
    let new = NewProfile { name: args.name, base_url, async_url, api_key: key.source.clone(), rate, home };
    let draft = ProfileDraft::prepare(&profiles_file, &new)?;
    let account = loop {
        let new_key = match &key.new_file {
            Some(path) => Some(KeyFile::write(path, &prompts.read_key().await?)?),
            None => None,
        };
        let adapters = context.adapters(context.open_ledger(LedgerPurpose::SharedRecords).await?)?;
        let spinner = context.output.show_spinner("Asking the gateway…");
        let added = add_gateway(&adapters, &draft, !args.offline).await;
        drop(spinner);
        match added {
            Ok(account) => {
                if let Some(file) = new_key {
                    file.keep();
                }
                break account;
            }
            // The operator's other answers are kept. The file with the rejected key is removed.
            Err(Error::Unanswered { failure, .. })
                if failure.cause == FailureCause::KeyRefused && new_key.is_some() && prompts.can_ask =>
            {
                context.output.print_lines(StyledLine::failure([plain(failure.reason)]));
            }
            Err(error) => return Err(explain_refusal(context, error)),
        }
    };
    let campaign = offer_to_set_gateway(context, args.campaign.as_deref(), &new.name).await?;
    report_profile(context, &new, &profiles_file, &key, account, campaign);
    Ok(exit::SUCCESS)
}

/// Explains why nothing was written, with a remedy that depends on the gateway's answer.
fn explain_refusal(context: &Context, error: Error) -> CommandFailure {
    const OFFLINE: &str = "or add the profile without testing the key: `--offline`";
    let mut explanation = context.output.explain_error(&error);
    if let Error::Unanswered { failure, .. } = &error {
        explanation.message.clone_from(&failure.reason);
        explanation.help = Some(match failure.cause {
            FailureCause::KeyRefused => format!("try again with the key from your provider, {OFFLINE}"),
            FailureCause::NotConnected | FailureCause::Refused => format!("check the URL, {OFFLINE}"),
            _ => format!("try again later, {OFFLINE}"),
        });
    }
    explanation.message += "; nothing was written";
    CommandFailure::Explained(explanation)
}

/// Refuses an invalid or existing profile name before the first prompt.
fn check_profile_name(context: &Context, name: &str, profiles_file: &Path) -> Result<(), CommandFailure> {
    if !is_slug(name) {
        let help = "use 1 to 64 characters from a-z, 0-9 and `-`, for example `production`";
        return Err(CommandFailure::invalid(format!("`{name}` is not a valid profile name; {help}")));
    }
    let is_taken = || {
        Ok::<_, CommandFailure>(
            context.profiles().load(Some(profiles_file))?.profile_names().any(|known| known == name),
        )
    };
    if profiles_file.exists() && is_taken()? {
        let file = profiles_file.display();
        return Err(CommandFailure::invalid(format!(
            "`{file}` already has a profile named `{name}`; change it there, or choose another name"
        )));
    }
    Ok(())
}

/// The location of the key of the new profile.
struct KeyLocation {
    /// The source that the profile names.
    source: SecretSource,
    /// The key file to create, if the key is not stored elsewhere.
    new_file: Option<PathBuf>,
}

impl KeyLocation {
    fn choose(name: &str, env: Option<String>, file: Option<PathBuf>, profiles: &Path) -> Result<Self, CommandFailure> {
        if let Some(env) = env {
            return Ok(Self { source: SecretSource::Env(env), new_file: None });
        }
        let folder = profiles.parent().unwrap_or(Path::new(""));
        let path = file.unwrap_or_else(|| folder.join("secrets").join(format!("{name}.key")));
        let make_absolute = |path: &Path| {
            absolute(path).map_err(|error| CommandFailure::invalid(format!("`{}`: {error}", path.display())))
        };
        let (absolute_path, absolute_folder) =
            (make_absolute(&path)?, absolute(folder).or_else(|_| std::env::current_dir()));
        let relative_path =
            absolute_folder.ok().and_then(|folder| absolute_path.strip_prefix(folder).ok().map(Path::to_owned));
        let source = SecretSource::File(relative_path.unwrap_or(absolute_path));
        Ok(Self { source, new_file: Some(path).filter(|path| !path.exists()) })
    }

    /// Describes where the API key is stored.
    fn describe(&self) -> String {
        match (&self.source, &self.new_file) {
            (SecretSource::Env(name), _) => format!("read from ${name} each time"),
            (SecretSource::File(_), Some(path)) => format!("{}, which only you can read", shell_path(path)),
            (SecretSource::File(path), None) => format!("{} (unchanged)", path.display()),
        }
    }
}

/// Prompts for the settings of a profile. Each option replaces a prompt.
struct ProfilePrompts<'o> {
    output: &'o Output,
    can_ask: bool,
}

impl ProfilePrompts<'_> {
    async fn ask_base_url(&self, value: Option<String>) -> Result<EndpointUrl, CommandFailure> {
        let prompt = "URL of the gateway, such as https://gateway.example: ";
        self.ask_until_valid("--base-url URL", value, prompt, parse_address).await
    }

    async fn ask_async_url(&self, value: Option<String>) -> Result<Option<EndpointUrl>, CommandFailure> {
        let prompt = "Sync: campaign waits for the result of each request. Async: the gateway queues the messages; this mode needs a \
                        second URL from your provider.\nURL for async mode, or press Enter for sync mode: ";
        let value = value.or_else(|| (!self.can_ask).then(String::new));
        self.ask_until_valid("--async-url URL", value, prompt, |text| {
            Some(text).filter(|text| !text.is_empty()).map(parse_address).transpose()
        })
        .await
    }

    async fn ask_rate(&self, value: Option<String>, is_local: bool) -> Result<Option<String>, CommandFailure> {
        if is_local && value.is_none() {
            return Ok(None);
        }
        let prompt = format!(
            "How many messages does your provider allow per second or minute? Examples: 10/s, 600/min.\n\
             Limit, or press Enter for {DEFAULT_RATE}: "
        );
        let parse_rate = |text: &str| {
            if text.is_empty() {
                return Ok(DEFAULT_RATE.to_owned());
            }
            match text.parse() {
                Ok(Rate::Unlimited) if !is_local => Err("`unlimited` is only for a gateway on this machine".to_owned()),
                Ok(_) => Ok(text.to_owned()),
                Err(_) => Err(format!("`{text}` is not a valid rate; use a value such as `10/s` or `600/min`")),
            }
        };
        self.ask_until_valid("--rate 10/s", value, &prompt, parse_rate).await.map(Some)
    }

    /// Asks for the home countries, unless the gateway is on this machine or there is no terminal.
    async fn ask_home(&self, value: Option<String>, is_local: bool) -> Result<Option<CountrySet>, CommandFailure> {
        if value.is_none() && (is_local || !self.can_ask) {
            return Ok(None);
        }
        let question = format!(
            "Which countries do you send to? Before a run, you see how many recipients are in other countries. Sending \
             to more than {ABROAD_LIMIT} of those recipients must be allowed explicitly.\n\
             Country codes, for example UA,PL, or press Enter to skip: "
        );
        self.ask_until_valid("--home UA", value, &question, parse_countries).await
    }

    /// Reads the API key from the terminal without echo, or from the first line of standard input.
    async fn read_key(&self) -> Result<SecretString, CommandFailure> {
        let can_ask = self.can_ask;
        let input = match can_ask {
            true => read_hidden_line("API key (hidden while you type), or press Enter to cancel: ").await?,
            false if std::io::stdin().is_terminal() => Ok(String::new()),
            false => {
                let read_line = || {
                    let mut line = String::new();
                    std::io::stdin().lock().take(MAX_KEY_BYTES).read_line(&mut line).map(|_| line)
                };
                run_blocking(read_line).await?
            }
        };
        let key = input.map_err(|error| CommandFailure::invalid(format!("cannot read the key: {error}")))?;
        let key = SecretString::from(key.trim().to_owned());
        if key.expose_secret().is_empty() && can_ask {
            return Err(CommandFailure::invalid("Cancelled. Nothing was written."));
        }
        if key.expose_secret().is_empty() {
            let help = "type the key, pass it on standard input, or add `--key-env VAR` or `--key-file FILE`";
            return Err(CommandFailure::invalid("the key is missing").with_help(help));
        }
        Ok(key)
    }

    /// Parses the value of the option, or asks at the terminal until an answer is valid.
    async fn ask_until_valid<T>(
        &self,
        option: &str,
        value: Option<String>,
        prompt: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, CommandFailure> {
        if let Some(value) = value {
            return parse(value.trim()).map_err(|problem| CommandFailure::invalid(format!("`{option}`: {problem}")));
        }
        if !self.can_ask {
            return Err(CommandFailure::invalid("cannot ask for the missing values without a terminal")
                .with_help(format!("add `{option}`")));
        }
        // Only the last line is a prompt.
        let (explanation, last_line) = prompt.rsplit_once('\n').unwrap_or(("", prompt));
        if !explanation.is_empty() {
            self.output.print_lines(StyledLine::new([plain(explanation)]));
        }
        loop {
            let line = read_typed_line(last_line.to_owned()).await?;
            if line.is_empty() {
                return Err(CommandFailure::invalid("Cancelled. Nothing was written."));
            }
            match parse(line.trim()) {
                Ok(answer) => return Ok(answer),
                Err(problem) => self.output.print_lines(StyledLine::failure([plain(problem)])),
            }
        }
    }
}

/// Parses the countries in a text. Returns `None` if the text contains no countries.
fn parse_countries(text: &str) -> Result<Option<CountrySet>, String> {
    let codes = text.split([',', ' ']).filter(|code| !code.is_empty());
    let countries = codes.map(|code| code.parse::<Region>().map_err(|error| error.to_string()));
    let countries: Vec<Region> = countries.collect::<Result<_, _>>()?;
    Ok(Some(CountrySet::new(countries)).filter(|countries| !countries.countries().is_empty()))
}

fn parse_address(text: &str) -> Result<EndpointUrl, String> {
    EndpointUrl::parse(text).map_err(|(problem, help)| format!("{problem}; {help}"))
}

/// Reports the account, the files and the next commands.
fn report_profile(
    context: &Context,
    new: &NewProfile,
    profiles_file: &Path,
    key: &KeyLocation,
    account: Option<NewAccount>,
    campaign: Option<LiveCampaign>,
) {
    let (name, output) = (&new.name, &context.output);
    let gateway = match &campaign {
        Some(LiveCampaign { names_gateway: true, .. }) => None,
        _ => Some(name.as_str()),
    };
    let next = output.command(match &campaign {
        Some(campaign) => with_gateway(format!("run {}", shell_path(&campaign.file)), gateway),
        None => with_gateway("gateway senders", gateway),
    });
    if output.json {
        let balance = account.as_ref().and_then(|account| account.balance.as_ref().ok());
        let senders = account.as_ref().and_then(|account| account.senders.as_ref().ok());
        let senders = senders.map(|senders| senders.iter().map(|sender| &sender.name).collect::<Vec<_>>());
        return output.print_object(&json!({
            "gateway": name, "file": profiles_file, "asked": account.is_some(), "senders": senders,
            "balance": balance.map(|balance| balance.amount),
            "currency": balance.map(|balance| &balance.currency), "next": next, "exit": exit::SUCCESS,
        }));
    }
    let mut text = StyledText::new();
    match &account {
        None => text.push(StyledLine::attention([strong(name.as_str()), plain(": added without testing the key")])),
        Some(NewAccount { balance, senders }) => {
            let accepts = format!(": {} accepts the key", new.base_url.host_and_port());
            text.push(StyledLine::success([strong(name.as_str()), plain(accepts)]));
            text.add_line(2, [plain("balance: "), balance_span(balance)]);
            text.add_line(2, [plain("sender names: "), sender_span(senders)]);
        }
    }
    text.add_line(2, [plain("profile: "), copyable(shell_path(profiles_file))]);
    text.add_line(2, [plain("key: "), plain(key.describe())]);
    if let Some(LiveCampaign { file: campaign, names_gateway }) = &campaign {
        if *names_gateway {
            text.add_line(
                2,
                [plain("campaign: "), copyable(shell_path(campaign)), plain(format!(" now has `gateway: {name}`"))],
            );
        }
        let test = output.command(with_gateway(format!("test {} --to NUMBER", shell_path(campaign)), gateway));
        text.add_line(0, [plain("To see a message on your own phone first: "), copyable(test)]);
    }
    text.push(StyledLine::next_step(next));
    output.print_done(text, exit::SUCCESS);
}

fn balance_span(balance: &Result<Balance, InquiryFailure>) -> Span {
    match balance {
        Ok(balance) => strong(balance.to_string()),
        Err(failure) => caution(format!("unknown ({})", failure.reason)),
    }
}

fn sender_span(senders: &Result<Vec<SenderName>, InquiryFailure>) -> Span {
    match senders {
        Ok(senders) if senders.is_empty() => plain("none"),
        Ok(senders) => {
            let names: Vec<String> =
                senders.iter().map(|SenderName { name, status }| format!("{name} ({status})")).collect();
            plain(names.join(", "))
        }
        Err(failure) => caution(format!("unknown ({})", failure.reason)),
    }
}

/// The campaign that the suggested commands name.
pub(super) struct LiveCampaign {
    pub(super) file: PathBuf,
    /// Whether the file names the new profile, so that the suggested commands do not have to.
    pub(super) names_gateway: bool,
}

/// Offers to write `gateway: NAME` into the campaign that `--for` names, or else into the only campaign in the current
/// folder.
///
/// Without a terminal, nothing is written, and only the campaign that `--for` names is used.
async fn offer_to_set_gateway(
    context: &Context,
    campaign_file: Option<&Path>,
    gateway: &str,
) -> Result<Option<LiveCampaign>, CommandFailure> {
    let can_ask = context.output.can_ask();
    let Some(campaign) = campaign_file.map(Path::to_owned).or_else(|| find_only_campaign().filter(|_| can_ask)) else {
        return Ok(None);
    };
    let mut names_gateway = false;
    if let Some(line) = GatewayLine::prepare(&campaign, gateway).filter(|_| can_ask) {
        let (name, run) = (shell_path(&campaign), context.output.command(format!("run {}", shell_path(&campaign))));
        context.output.print_lines(StyledLine::from_prose(&format!(
            "Use {gateway} for {name}? This adds the line `gateway: {gateway}` to the file. `{run}` then sends live \
             messages after you confirm the number of messages."
        )));
        let prompt = "Type yes to add the line, or press Enter to leave the file as it is: ";
        if read_typed_line(prompt.to_owned()).await?.trim() == "yes" {
            line.write()?;
            names_gateway = true;
        }
    }
    Ok(Some(LiveCampaign { file: campaign, names_gateway }))
}

/// Finds the campaign in the current folder, if there is exactly one.
fn find_only_campaign() -> Option<PathBuf> {
    let mut campaigns = find_campaigns(Path::new("."));
    let campaign = campaigns.pop().filter(|_| campaigns.is_empty())?;
    Some(campaign.strip_prefix(".").map_or_else(|_| campaign.clone(), Path::to_owned))
}
