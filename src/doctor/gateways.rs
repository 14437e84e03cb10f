//! Checks of the gateway profiles: they are valid, their gateways are reachable and accept the keys, and webhooks
//! arrive.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use secrecy::SecretString;

use super::super::context::Context;
use super::super::exit;
use super::super::exit::CommandFailure;
use super::super::gateway::describe_hook_answer;
use super::ledger::LedgerAccess;
use super::machine::GatewayTime;
use super::{CheckResult, CheckStatus, split_remedy};
use campaign_core::domain::Endpoint;
use campaign_core::finding::{BriefFinding, Finding, quote_for_shell};
use campaign_gateway::{AnswerRules, CheckKey, GatewayAddress, JsonApi, WebhookTestAnswer, test_webhook};
use campaign_ledger::Ledger;
use campaign_manifest::Profile;
use campaign_runs::{Error, GatewayAccount, has_other_secret, load_hook, read_api_key};

/// The timeout of a request to a gateway.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The profiles to check, and the results that need no further check.
pub(super) struct ProfileChecks {
    profiles: Vec<Profile>,
    /// The results about the file and about invalid profiles.
    results: Vec<CheckResult>,
}

/// The results of all profiles, and the times that the gateways reported.
pub(super) struct GatewayChecks {
    pub(super) results: Vec<CheckResult>,
    pub(super) times: Vec<GatewayTime>,
}

impl ProfileChecks {
    /// Finds the profile called `name`, or all profiles if no name is given.
    ///
    /// # Errors
    /// If there is no such profile, the profile cannot be used, or gateways.yaml cannot be read.
    pub(super) fn find(context: &Context, name: Option<&str>) -> Result<Self, CommandFailure> {
        if name.is_some() {
            let profile = context.profiles().find_for_inquiry(name, &context.observer)?;
            return Ok(Self { profiles: vec![profile], results: Vec::new() });
        }
        let gateways = match context.profiles().load(None) {
            Ok(gateways) => gateways,
            Err(Error::Findings(findings)) => {
                return Ok(Self { profiles: Vec::new(), results: vec![result_from_findings(&findings)] });
            }
            Err(error) => return Err(error.into()),
        };
        let (mut profiles, mut results) = (Vec::new(), Vec::new());
        for name in gateways.profile_names() {
            match gateways.find_profile(name) {
                Ok(profile) => profiles.push(profile.clone()),
                Err(findings) => results.push(result_from_findings(&findings).with_gateway(name)),
            }
        }
        if profiles.is_empty() && results.is_empty() {
            let message = "there are no gateway profiles yet, so campaigns can only be rehearsed";
            let add = context.output.command("gateway add production");
            results.push(CheckResult::skipped("profiles", message).with_help(format!("to send, add a profile: {add}")));
        }
        Ok(Self { profiles, results })
    }

    /// Checks all profiles concurrently.
    pub(super) async fn run(self, context: &Context, access: &LedgerAccess) -> GatewayChecks {
        let checks = self.profiles.iter().map(|profile| check_profile(context, profile, access));
        let mut all = GatewayChecks { results: self.results, times: Vec::new() };
        for GatewayChecks { results, times } in join_all(checks).await {
            all.results.extend(results);
            all.times.extend(times);
        }
        all
    }
}

/// Reports the first finding about gateways.yaml as a failed check.
fn result_from_findings(findings: &[Finding]) -> CheckResult {
    let first = BriefFinding::from_findings(findings).into_iter().next();
    let message = first.as_ref().map_or_else(|| "gateways.yaml cannot be read".to_owned(), ToString::to_string);
    let help = first.and_then(|first| first.help).unwrap_or_else(|| "correct the line in gateways.yaml".to_owned());
    CheckResult::failed("profiles", exit::INVALID, message, help)
}

async fn check_profile(context: &Context, profile: &Profile, access: &LedgerAccess) -> GatewayChecks {
    let (host_result, times) = check_host(profile).await;
    let key = match (read_api_key(profile), access) {
        (Err(error), _) => result_from_error(context, "key", profile, &error),
        (Ok(_), _) if host_result.status != CheckStatus::Ok => {
            CheckResult::skipped("key", "not tested, because the gateway could not be reached")
        }
        (Ok(_), LedgerAccess::Closed) => CheckResult::skipped(
            "key",
            "not tested, because only the ledger records whether the key may be sent to this host",
        ),
        (Ok(_), LedgerAccess::Open(ledger)) => check_key(context, profile, ledger).await,
    };
    let results = [host_result, key, check_webhook(context, profile, access).await];
    GatewayChecks { results: results.into_iter().map(|result| result.with_gateway(&profile.name)).collect(), times }
}

/// Checks whether the hosts of both endpoints can be reached. The API key is not sent.
async fn check_host(profile: &Profile) -> (CheckResult, Vec<GatewayTime>) {
    const CHECK: &str = "gateway";
    let mut endpoints = vec![(Endpoint::Sync, &profile.base_url)];
    endpoints.extend(profile.async_url.as_ref().map(|url| (Endpoint::Async, url)));
    let (mut times, mut hosts) = (Vec::new(), Vec::new());
    for (endpoint, url) in endpoints {
        let host = url.host_and_port();
        let address = GatewayAddress {
            base_url: profile.base_url.as_str().to_owned(),
            async_url: profile.async_url.as_ref().map_or_else(String::new, |url| url.as_str().to_owned()),
            proxy: profile.proxy.clone(),
            timeout: ANSWER_TIMEOUT,
            embedded: false,
        };
        let sent_at = Timestamp::now();
        let answer = match JsonApi::new(&address, endpoint, SecretString::default(), AnswerRules::default()) {
            Ok(api) => api.probe_host().await,
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Ok(date) => {
                let answered_at = Timestamp::now();
                times.extend(date.map(|date| GatewayTime::from_answer(&profile.name, date, sent_at, answered_at)));
                hosts.push(host);
            }
            Err(reason) => {
                let key = if endpoint == Endpoint::Sync { "base_url" } else { "async_url" };
                let proxy = if profile.proxy.is_some() { ", the `proxy`" } else { "" };
                let help = format!("check `{key}` in the profile{proxy}, your network and your firewall");
                return (CheckResult::failed(CHECK, exit::STOPPED, reason, help), times);
            }
        }
    }
    hosts.dedup();
    (CheckResult::ok(CHECK, format!("{} responds", hosts.join(" and "))), times)
}

/// Checks whether the gateway accepts the API key. The check asks for the balance and sends no message.
async fn check_key(context: &Context, profile: &Profile, ledger: &Arc<dyn Ledger>) -> CheckResult {
    let inquiry = async {
        let adapters = context.adapters(Arc::clone(ledger))?;
        let account = GatewayAccount::open(&adapters, profile, ANSWER_TIMEOUT).await?;
        account.ask(&CheckKey).await.map_err(CommandFailure::from)
    };
    match inquiry.await {
        Ok(()) => CheckResult::ok("key", format!("accepted ({})", profile.api_key)),
        Err(CommandFailure::Run(error)) => result_from_error(context, "key", profile, &error),
        Err(failure) => {
            let failure = failure.into_explanation(&context.output.options);
            CheckResult::from_failure("key", failure, balance_help(context, profile))
        }
    }
}

/// Converts an error about the account of a profile into a failed check, or into a warning if the gateway rejected the
/// query.
fn result_from_error(context: &Context, check: &'static str, profile: &Profile, error: &Error) -> CheckResult {
    let failure = context.output.explain_error(error);
    let is_inquiry_rejected = failure.exit == exit::REJECTIONS;
    let result = CheckResult::from_failure(check, failure, balance_help(context, profile));
    // The gateway rejected the query, not the key.
    if is_inquiry_rejected { CheckResult { status: CheckStatus::Warning, ..result } } else { result }
}

/// The help text that suggests asking for the balance, which shows the whole answer of the gateway.
fn balance_help(context: &Context, profile: &Profile) -> String {
    let balance = format!("gateway balance --gateway {}", quote_for_shell(&profile.name));
    format!("ask for the balance: {}", context.output.command(balance))
}

/// Checks whether the webhook address leads from this machine to `campaign serve`.
async fn check_webhook(context: &Context, profile: &Profile, access: &LedgerAccess) -> CheckResult {
    const CHECK: &str = "webhook";
    let hook = match load_hook(profile) {
        Ok(Some(hook)) => hook,
        Ok(None) => {
            return CheckResult::skipped(
                CHECK,
                "the profile has no `hook`, so delivery statuses are requested from the gateway",
            );
        }
        Err(error) => return result_from_error(context, CHECK, profile, &error),
    };
    let public = hook.public_url();
    let answer = test_webhook(&hook, &format!("{:032x}", rand::random::<u128>())).await;
    let code = match answer {
        WebhookTestAnswer::Ours => return CheckResult::ok(CHECK, format!("{public} reaches `campaign serve`")),
        WebhookTestAnswer::OtherServer(_) => exit::INVALID,
        _ => exit::STOPPED,
    };
    let is_secret_different = match access {
        LedgerAccess::Open(ledger) => has_other_secret(ledger.as_ref(), &hook).await.unwrap_or(false),
        LedgerAccess::Closed => false,
    };
    let (problem, remedy) = split_remedy(&describe_hook_answer(&answer, is_secret_different));
    let test = context.output.command(format!("gateway hook {} --test", quote_for_shell(&profile.name)));
    let help = remedy.unwrap_or_else(|| format!("start `campaign serve`, check the proxy, and test again: {test}"));
    CheckResult::failed(CHECK, code, format!("{public}: {problem}"), help)
}
