//! Asking a gateway about a campaign before it is sent: one envelope for balance and sender names.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::exit::{self, Failure};
use super::gateway::Account;
use super::output::Output;
use super::survey::Inputs;
use crate::check::online::{self, Cost, Told, findings, signatures};
use crate::check::rules;
use crate::domain::Amount;
use crate::finding::{Finding, list_all};
use crate::gateway::{AskBalance, AskSenders, UnansweredCause};
use crate::ledger::Ledger;
use crate::manifest::Profile;

/// How long the answer is waited for: the question is a service, not a condition.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the gateway said about a campaign.
pub(super) struct Online {
    /// What speaks against sending.
    pub(super) findings: Vec<Finding>,
    /// Balance and cost in a line; nothing where the balance is not known.
    pub(super) money: Option<String>,
    /// The same for programs.
    pub(super) figures: Figures,
    key_refused: bool,
}

/// The money of an account and of a campaign; nothing where it is not known. Amounts keep their digits.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figures {
    balance: Option<Amount>,
    currency: Option<String>,
    cost: Option<Amount>,
}

/// Asks the gateway of a campaign.
pub(super) async fn ask(
    output: &Output,
    (inputs, profile): (&Inputs, &Profile),
    ledger: Arc<dyn Ledger>,
    cost: &Cost,
) -> Result<Online, Failure> {
    let account = Account::of(output, profile, ledger, PATIENCE).await?;
    let told = account.ask_both((&AskBalance, &AskSenders)).await?;
    let campaign = &inputs.campaign;
    let signatures = signatures(&campaign.brief, &campaign.places, &inputs.today);
    let command = |what: &str| output.command(format!("gateway {what} --gateway {}", profile.name));
    let (balance, senders) = (command("balance"), command("senders"));
    let known = online::Account { verified: &profile.sender_verified, balance: &balance, senders: &senders };
    let key_refused = matches!(&told, Err(refused) if refused.cause == UnansweredCause::KeyRefused);
    Ok(Online {
        findings: findings(&told, &signatures, known, cost),
        money: money(&told, cost),
        figures: figures(&told, cost),
        key_refused,
    })
}

impl Online {
    /// What is said of a campaign that goes to the built-in sandbox.
    pub(super) fn of_nobody() -> Self {
        let finding = Finding::new(&rules::ONLINE_UNKNOWN, "the built-in sandbox has no account to ask");
        let finding = finding.help("name the gateway that the campaign is for: `--online --gateway NAME`");
        Self { findings: vec![finding], money: None, figures: Figures::default(), key_refused: false }
    }

    /// The warnings, unless there are errors, which refuse a run.
    pub(super) fn allowed(self) -> Result<Vec<Finding>, Failure> {
        if !self.findings.iter().any(Finding::is_error) {
            return Ok(self.findings);
        }
        let mut failure = Failure::findings(self.findings);
        if self.key_refused {
            failure.exit = exit::KEY;
        }
        Err(failure)
    }
}

fn figures(told: &Told, cost: &Cost) -> Figures {
    let balance = told.as_ref().ok().and_then(|(balance, _)| balance.as_ref().ok());
    let cost = match cost {
        Cost::AtMost(cost) => Some(*cost),
        Cost::Unknown(_) => None,
    };
    Figures {
        balance: balance.map(|balance| balance.amount),
        currency: balance.map(|balance| balance.currency.clone()),
        cost,
    }
}

fn money(told: &Told, cost: &Cost) -> Option<String> {
    let (Ok(balance), _) = told.as_ref().ok()? else { return None };
    let with_currency = |amount: Amount| format!("{amount} {}", balance.currency).trim_end().to_owned();
    let line = format!("the balance is {}", with_currency(balance.amount));
    Some(match cost {
        Cost::AtMost(cost) => format!("{line}; this costs at most {}", with_currency(*cost)),
        Cost::Unknown(channels) => {
            let channels = list_all(channels.iter().map(|channel| channel.name()));
            format!("{line}; what this costs is not known: the profile's `prices` lack {channels}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Channel;
    use crate::gateway::{Balance, Unanswered};

    #[test]
    fn a_refused_key_has_its_own_code_and_warnings_refuse_nothing() {
        let online = |findings, key_refused| Online { findings, money: None, figures: Figures::default(), key_refused };
        let code = |online: Online| online.allowed().map_or_else(|failure| failure.exit, |_| exit::FINE);
        assert_eq!(code(online(vec![Finding::new(&rules::KEY_REFUSED, "x")], true)), exit::KEY);
        assert_eq!(code(online(vec![Finding::new(&rules::SENDER_UNKNOWN, "x")], false)), exit::WRONG);
        assert_eq!(code(online(vec![Finding::new(&rules::ONLINE_UNKNOWN, "x")], false)), exit::FINE);
    }

    #[test]
    fn balance_and_cost_are_told_in_a_line() {
        let balance = Balance { amount: "1200.5".parse().unwrap(), currency: "UAH".into() };
        let told = Ok((Ok(balance), Ok(Vec::new())));
        let cost = Cost::AtMost("80".parse().unwrap());
        let told_of = |cost: &Cost| money(&told, cost).unwrap();
        assert_eq!(told_of(&cost), "the balance is 1 200.50 UAH; this costs at most 80.00 UAH");
        let unknown = told_of(&Cost::Unknown(vec![Channel::Viber, Channel::Sms]));
        assert!(unknown.ends_with("the profile's `prices` lack `viber` and `sms`"), "{unknown}");
        let failed = Unanswered { cause: UnansweredCause::Unclear, reason: "why".into(), undone: false };
        assert_eq!(money(&Err(failed), &cost), None);
    }
}
