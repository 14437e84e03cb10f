//! `campaign gateway add`: asks for a gateway's addresses, key and rate, tries them, and writes its profile.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf, absolute};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::cli::args::AddArgs;
use crate::cli::consent::typed;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::suggested::file;
use crate::draft::{KeyFile, ProfileDraft};
use crate::finding::one_line;
use crate::gateway::{Balance, FailureCause, InquiryFailure, Sender};
use crate::manifest::{Address, KeySource, NewProfile, Rate, is_slug};
use crate::runs::{Error, NewAccount, add_gateway, blocking};

/// What is offered where nobody knows the account's allowance; slow, and never wrong.
const RATE: &str = "10/s";
/// The most bytes of a key.
const LONGEST: u64 = 4096;

pub(super) async fn add(context: &Context, args: AddArgs) -> Result<u8, Failure> {
    let place = context.profiles().place(args.campaign.as_deref());
    refuse_name(context, &args.name, &place)?;
    let questions = Questions { can_ask: context.output.can_ask() };
    let base_url = questions.base_url(args.base_url).await?;
    let async_url = questions.async_url(args.async_url).await?;
    let local = base_url.is_loopback() && async_url.as_ref().is_none_or(Address::is_loopback);
    let rate = questions.rate(args.rate, local).await?;
    let key = Key::of(&args.name, args.key_env, args.key_file, &place)?;
    let new = NewProfile { name: args.name, base_url, async_url, api_key: key.written.clone(), rate };
    let draft = ProfileDraft::of(&place, &new)?;
    let new_key = match &key.new_file {
        Some(path) => Some(KeyFile::write(path, &questions.key().await?)?),
        None => None,
    };
    let adapters = context.adapters(context.ledger().await?)?;
    let told = add_gateway(&adapters, &draft, !args.offline).await.map_err(|error| refused(context, error))?;
    if let Some(file) = new_key {
        file.keep();
    }
    tell(context, (&new, &place), &key, told, args.campaign.as_deref());
    Ok(exit::FINE)
}

/// Why nothing was written, and what to do where it was the gateway that said no.
fn refused(context: &Context, error: Error) -> Failure {
    let help = match &error {
        Error::Unanswered { failure, .. } if failure.cause == FailureCause::KeyRefused => {
            let wrong =
                format!("{}; nothing was written. Try again with the key that the gateway shows you", failure.reason);
            return Failure::new(exit::KEY, format!("{wrong}, or write it all the same with `--offline`"));
        }
        Error::Unanswered { .. } => "; nothing was written: `--offline` writes it all the same",
        _ => "; nothing was written",
    };
    let mut refused = context.output.explain(error);
    refused.message += help;
    Failure::Explained(refused)
}

/// Refuses what cannot be a profile's name, and one that is there, before anything is asked.
fn refuse_name(context: &Context, name: &str, place: &Path) -> Result<(), Failure> {
    if !is_slug(name) {
        let help = "use 1 to 64 of a-z, 0-9 and `-`, such as `production`";
        return Err(Failure::wrong(format!("`{name}` cannot be a profile's name; {help}")));
    }
    let is_there = || Ok::<_, Failure>(context.profiles().load(Some(place))?.names().any(|there| there == name));
    if place.exists() && is_there()? {
        let there = place.display();
        return Err(Failure::wrong(format!(
            "`{there}` has a profile `{name}` already; change it there, or choose another name"
        )));
    }
    Ok(())
}

/// Where the key of the new profile is.
struct Key {
    /// As the profile says it.
    written: KeySource,
    /// The file that it is still to be written to.
    new_file: Option<PathBuf>,
}

impl Key {
    fn of(name: &str, env: Option<String>, file: Option<PathBuf>, profiles: &Path) -> Result<Self, Failure> {
        if let Some(env) = env {
            return Ok(Self { written: KeySource::Env(env), new_file: None });
        }
        let folder = profiles.parent().unwrap_or(Path::new(""));
        let path = file.unwrap_or_else(|| folder.join("secrets").join(format!("{name}.key")));
        let whole =
            |path: &Path| absolute(path).map_err(|error| Failure::wrong(format!("`{}`: {error}", path.display())));
        let (whole_path, whole_folder) = (whole(&path)?, absolute(folder).or_else(|_| std::env::current_dir()));
        let within = whole_folder.ok().and_then(|folder| whole_path.strip_prefix(folder).ok().map(Path::to_owned));
        let written = KeySource::File(within.unwrap_or(whole_path));
        Ok(Self { written, new_file: Some(path).filter(|path| !path.exists()) })
    }

    /// Where it stays, in words.
    fn told(&self) -> String {
        match (&self.written, &self.new_file) {
            (KeySource::Env(name), _) => format!("the key is read from ${name} each time"),
            (KeySource::File(_), Some(path)) => format!("the key is in {}, which only you can read", file(path)),
            (KeySource::File(path), None) => format!("the key stays in {}", path.display()),
        }
    }
}

/// Questions to the person at the terminal; what stands in the arguments is not asked.
struct Questions {
    can_ask: bool,
}

impl Questions {
    async fn base_url(&self, given: Option<String>) -> Result<Address, Failure> {
        let question = "the gateway's address, such as https://gateway.example: ";
        self.answer(("--base-url URL", given), question, address).await
    }

    async fn async_url(&self, given: Option<String>) -> Result<Option<Address>, Failure> {
        let question = "its address for `endpoint: async`, if it has another (Enter: none): ";
        let given = given.or_else(|| (!self.can_ask).then(String::new));
        self.answer(("--async-url URL", given), question, |text| {
            Some(text).filter(|text| !text.is_empty()).map(address).transpose()
        })
        .await
    }

    async fn rate(&self, given: Option<String>, local: bool) -> Result<Option<String>, Failure> {
        if local && given.is_none() {
            return Ok(None);
        }
        let question = format!("how many messages your account may send, such as 10/s or 600/min (Enter: {RATE}): ");
        let rate = |text: &str| match text.parse() {
            _ if text.is_empty() => Ok(RATE.to_owned()),
            Ok(Rate::Unlimited) if !local => Err("`unlimited` is only for a gateway on this machine".to_owned()),
            Ok(_) => Ok(text.to_owned()),
            Err(_) => Err(format!("`{text}` is no rate; write it like `10/s` or `600/min`")),
        };
        self.answer(("--rate 10/s", given), &question, rate).await.map(Some)
    }

    /// The key: typed without showing it, or the first line of standard input.
    async fn key(&self) -> Result<SecretString, Failure> {
        let can_ask = self.can_ask;
        let read = blocking(move || match can_ask {
            true => {
                let terminal = console::Term::stderr();
                let _ = terminal.write_str("the API key (it is not shown): ");
                terminal.read_secure_line()
            }
            false if std::io::stdin().is_terminal() => Ok(String::new()),
            false => {
                let mut line = String::new();
                std::io::stdin().lock().take(LONGEST).read_line(&mut line).map(|_| line)
            }
        });
        let key = read.await?.map_err(|error| Failure::wrong(format!("the key cannot be read: {error}")))?;
        let key = SecretString::from(key.trim().to_owned());
        if key.expose_secret().is_empty() {
            let help = "say `--key-env VAR` or `--key-file FILE`, type it, or put it on standard input";
            return Err(Failure::wrong(format!("there is no key; {help}")));
        }
        Ok(key)
    }

    /// What was given, or what is typed once it can be used.
    async fn answer<T>(
        &self,
        (option, given): (&str, Option<String>),
        question: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        if let Some(given) = given {
            return read(given.trim()).map_err(|problem| Failure::wrong(format!("`{option}`: {problem}")));
        }
        if !self.can_ask {
            return Err(Failure::wrong(format!("there is no terminal to ask on; say `{option}`")));
        }
        let mut prompt = question.to_owned();
        loop {
            let line = typed(prompt).await?;
            if line.is_empty() {
                return Err(Failure::wrong("nothing was written"));
            }
            match read(line.trim()) {
                Ok(answer) => return Ok(answer),
                Err(problem) => prompt = format!("  {problem}\n{question}"),
            }
        }
    }
}

fn address(text: &str) -> Result<Address, String> {
    Address::parse(text).map_err(|(problem, help)| format!("{problem}; {help}"))
}

/// Tells what the account said, where everything stands and what comes next.
fn tell(
    context: &Context,
    (new, place): (&NewProfile, &Path),
    key: &Key,
    told: Option<NewAccount>,
    campaign: Option<&Path>,
) {
    let (name, output) = (&new.name, &context.output);
    let next = output.command(match campaign {
        Some(campaign) => format!("run {} --gateway {name}", file(campaign)),
        None => format!("gateway senders --gateway {name}"),
    });
    if output.json {
        let balance = told.as_ref().and_then(|told| told.balance.as_ref().ok());
        let senders = told.as_ref().and_then(|told| told.senders.as_ref().ok());
        let senders = senders.map(|senders| senders.iter().map(|sender| &sender.name).collect::<Vec<_>>());
        return output.object(&json!({
            "gateway": name, "file": place, "asked": told.is_some(), "senders": senders,
            "balance": balance.map(|balance| balance.amount.to_string()),
            "currency": balance.map(|balance| &balance.currency), "next": next, "exit": exit::FINE,
        }));
    }
    let mut text = match &told {
        None => format!("{name}: not asked whether it takes the key\n"),
        Some(NewAccount { balance, senders }) => {
            format!("{name}: {} takes the key\n{}{}", new.base_url.host(), money(balance), names(senders))
        }
    };
    text += &format!("written to {}; {}\nnext: {next}\n", file(place), key.told());
    output.result(&text);
}

fn money(balance: &Result<Balance, InquiryFailure>) -> String {
    match balance {
        Ok(balance) => {
            format!("  balance: {}\n", one_line(format!("{} {}", balance.amount, balance.currency).trim_end()))
        }
        Err(unanswered) => format!("  balance: not told ({})\n", one_line(&unanswered.reason)),
    }
}

fn names(senders: &Result<Vec<Sender>, InquiryFailure>) -> String {
    match senders {
        Ok(senders) if senders.is_empty() => "  sender names: it lists none\n".to_owned(),
        Ok(senders) => {
            let names: Vec<String> =
                senders.iter().map(|Sender { name, status }| format!("{name} ({status})")).collect();
            format!("  sender names: {}\n", one_line(&names.join(", ")))
        }
        Err(unanswered) => format!("  sender names: not told ({})\n", one_line(&unanswered.reason)),
    }
}
