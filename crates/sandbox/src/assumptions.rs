//! Assumptions of the sandbox: its decisions where the contract is silent.

use serde::Serialize;

/// Builds a table of assumptions. Each row has an open question, the sandbox's behaviour, the reason, and the scenario
/// keys that change it.
macro_rules! rows {
    ($($id:literal: $what:literal => $choice:literal because $reason:literal $(changed by $change:literal)?;)*) => {
        &[$(Assumption { id: $id, what: $what, choice: $choice, reason: $reason, change: concat!($($change)?) },)*]
    };
}

/// A decision of the sandbox on an open question of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// A short name, unique in the table.
    pub id: &'static str,
    /// The open question.
    pub what: &'static str,
    /// The sandbox's behaviour.
    pub choice: &'static str,
    /// The reason for the choice, as a clause that can follow `because`.
    pub reason: &'static str,
    /// The scenario keys that change it, separated by commas; empty if there are none.
    #[serde(rename = "scenario")]
    pub change: &'static str,
}

/// All assumptions of the sandbox.
pub fn assumptions() -> impl Iterator<Item = &'static Assumption> {
    [REQUESTS, ANSWERS, OUTCOMES].into_iter().flatten()
}

const REQUESTS: &[Assumption] = rows! {
    // The request as a whole.
    "incorrect-request": "the response to a request without `Content-Type: application/json` or with a body that is not JSON (contract 4.1, 7)"
        => "HTTP 200, a top-level `success` of false, and the sandbox's own error message"
        because "the contract says 200 in every case, including failure";
    "order-of-checks": "which error is returned if several apply"
        => "Content-Type, size, JSON, key, `data`, types, in that order; no operation is processed unless all are valid"
        because "each step depends on the previous one";
    "unknown-type": "a `type` that is missing or unknown (contract 2.1)"
        => "`Invalid message type` for the whole request, as for `whatsapp`"
        because "the contract shows this response for the only invalid type that it mentions";
    "empty-data": "a request without operations (contract 8)"
        => "a top-level error with the sandbox's own error message"
        because "at least one operation is required, but the contract does not specify an error message";
    "body-limit": "the size limit for a request"
        => "8 MiB; a larger request gets a top-level error"
        because "it limits the sandbox's memory use";
    "operations-limit": "how many operations a request can contain"
        => "as many as fit in the body"
        because "the contract does not specify a limit";
    "operations-rate": "how many operations an account can send per period"
        => "any number; if the scenario sets a limit, requests over it are rejected with HTTP 429 and \
            `Retry-After`"
        because "the contract does not specify a limit" changed by "limits";
    "no-endpoint": "a path that is not an endpoint, with any number of leading slashes"
        => "HTTP 404 and a JSON error"
        because "the contract does not cover this, and a wrong path must not go unnoticed";
    "get": "a request that is not a POST"
        => "HTTP 200 and a top-level error"
        because "the contract says 200 in every case";
    "idle-connections": "the idle timeout of a connection"
        => "30 seconds"
        because "without a timeout, half-open connections accumulate";
    "accounts": "how many accounts exist"
        => "one, which uses the sandbox's key; each account has its own messages, balance, names and templates"
        because "the contract describes only one key at a time" changed by "accounts[].key";
    // Identifiers.
    "ids-repeat": "whether an `id` can be used twice"
        => "yes; both messages are accepted, and `status` for that `id` reports the later one; lookups and \
            verification calls do not replace a message's `id`"
        because "a message that is sent twice must be visible, and clients reuse identifiers";
    "id-missing": "an operation without `id`"
        => "it is accepted; responses contain the gateway's `msg_id` instead of the `id`"
        because "clients omit it, but still read `id` from the response";
    "id-form": "the format of an `id` in responses"
        => "unchanged in results, a string in status records; `7`, `\"7\"` and `\"007\"` are the same identifier"
        because "clients send `id` as a string with leading zeros, but as a number when they query statuses";
    "msg-id": "the format of `msg_id`"
        => "consecutive numbers from 700000001"
        because "known clients read a number, and tests need reproducible values";
    "request-id": "the format of `request_id`"
        => "`sandbox-` and a ten-digit counter"
        because "the contract says only that it is a string";
    // Fields.
    "phone": "which numbers are valid"
        => "5 to 15 digits that do not start with 0, as a number (also `380501112233.0`) or a string; a plus sign is \
            not valid"
        because "contract 4.3 shows only digits and does not mention a numbering plan";
    "phones-joined": "several numbers in one `phone`, separated by commas"
        => "one message for each; the result has the first `msg_id` and the total number of parts; if any number is \
            invalid, or if there are more than 1000, all of them are rejected; a trailing comma is allowed; does not \
            apply to `hlr` and `call/otp`"
        because "clients send such lists, and the response has one entry per operation";
    "sms-fields": "the fields of `sms`"
        => "`sms_signature` and `sms_message` required; `sms_lifetime` (3600 to 259200 s), `short_link`, `unsubscribe_link`, `hook` optional; no link is added"
        because "the platform's public documentation";
    "viber-fields": "the values of `viber_type` and the required fields of each"
        => "text: message; image: image; text+link: message, button, link; text+image+link: all four; carousel: 2 to 5 cards with image, url and button"
        because "the platform's public documentation";
    "viber-in-rcs-viber-sms": "which Viber fields `rcs+viber+sms` requires"
        => "the same as `viber` alone"
        because "a message that falls back to Viber is sent as an ordinary Viber message";
    "viber-lifetime": "the range of `viber_lifetime`"
        => "60 to 172800 s"
        because "the platform's public documentation";
    "telegram-fields": "the fields of `telegram`"
        => "`message`, a code of 4 to 8 digits; optional `telegram_lifetime` (at least 60 s) and `hook`"
        because "the platform's public documentation";
    "voice-fields": "the fields of `voice` and of the `voice` stage"
        => "`message` (optional in a stage), `dtmf`, and `gender`, `language`, `name` at the same level or in a \
            `voice` object; any language and name are accepted"
        because "the contract shows one format, and the platform's documentation shows the other";
    "pipeline-stages": "which fields are required in pipeline stages, where the contract does not say"
        => "rcs: signature and message; viber: any `type`; whatsapp: nothing, not even its object; objects for \
            channels that are not listed are ignored"
        because "contract 4.3 leaves WhatsApp unchecked; the rest is the minimum for a message";
    "sender-names": "which sender names are accepted"
        => "for SMS, 3 to 11 Latin letters, digits, dots, dashes, underscores or spaces with at least one letter; \
            for Viber and RCS, any text; with a list of senders, only the `Checked` names on it"
        because "mobile operators enforce this rule; WhatsApp is not checked (contract 4.3)" changed by "accounts[].senders";
    "addresses": "valid addresses for images, links and hooks"
        => "http or https with a host name"
        because "the contract says only that it is a URL";
    "text-limits": "the length limit for message texts and captions"
        => "none"
        because "the contract does not specify a limit";
    "field-errors": "the error for a missing or invalid field"
        => "`Please enter <field>` or `Error in <field>`, as an error of the operation"
        because "in the style of the few error messages in the contract";
    "extra-properties": "properties that are not in the contract"
        => "ignored"
        because "contract 2.1 allows them";
};

const ANSWERS: &[Assumption] = rows! {
    // Answers.
    "send-result-data": "the `data` member of a send result"
        => "always 1"
        because "the platform's code for an accepted message";
    "parts": "`parts` of a message that is not a plain SMS"
        => "1, or the number of parts in the longest SMS among its stages"
        because "the gateway reserves the price of the most expensive stage";
    "refused-id": "the `data` of a failed operation"
        => "the operation's `id`, if it has one"
        because "contract 7 shows this for one error";
    "whatsapp-route": "whether the account has a WhatsApp route"
        => "it has one for every number; if the scenario removes it, the operation fails with `No route`"
        because "without it, WhatsApp campaigns cannot be rehearsed" changed by "accounts[].whatsapp";
    "senders": "the account's sender names"
        => "every well-formed name is accepted and none is listed, unless the scenario contains a list"
        because "an incomplete list would reject valid names" changed by "accounts[].senders";
    "code-call": "the result of `call/otp`"
        => "`code` with four digits derived from the `msg_id`, and `price`"
        because "the platform's public documentation; every run gets the same codes" changed by "prices.call/otp";
    "lookup": "the result of `hlr`"
        => "every number is reachable, not ported, and belongs to one fictitious Ukrainian operator; `status` is the \
            lookup result: `DELIVERED`, or the failure status"
        because "the format of the record is public, but its contents depend on the subscriber" changed by "channels.hlr.delivered, channels.hlr.fails_as, exceptions";
    "templates": "the fields of the template operations that the contract does not define"
        => "`template/delete`: `id`; `template/viber/create`: `signature` and `template`; `template/viber/delete`: \
            `id`, but nothing is deleted if the request contains a different `template` text"
        because "by analogy with the operations in the contract";
    "template-count": "what the two numbers in a template's `count` mean"
        => "characters and messages, as in `8 / 1`; characters are counted as in SMS billing"
        because "the platform's public documentation";
    "template-ids": "a template's `id`"
        => "numbers starting at 1, assigned separately for each account and each of the two kinds; they are never \
            reused"
        because "the contract says only that it is a number";
    "template-limit": "how many templates an account can have"
        => "10000 of each kind and 16 MiB of text; beyond that, an operation fails with `Too many templates`"
        because "it limits the sandbox's memory use";
    "template-review": "the review of a Viber template"
        => "`new`, then `submitted` after ten seconds, and `approved` after ten more"
        because "the statuses are public, but the times are invented" changed by "templates.review, templates.approved";
    // Money.
    "balance": "the account's balance"
        => "100000000.123456 UAH at the start"
        because "amounts have many decimal places, and a rehearsal must not run out of money by accident" changed by "accounts[].balance, accounts[].currency";
    "prices": "the price of a message part"
        => "an invented price for each channel; SMS messages are charged per part, other stages once"
        because "the contract does not specify prices" changed by "prices.<channel>";
    "reservation": "how much is reserved, and when"
        => "the most expensive stage of each message, when the message arrives; if the balance does not cover all recipients, the operation fails with `Not enough money` and nothing is reserved"
        because "contract 4.3 `pipeline`; other types are messages with fewer stages";
    "charge": "the price of a delivered message"
        => "the price of the stage that delivered it; the difference is refunded on delivery"
        because "contract 4.3 `pipeline`";
    "charge-undelivered": "the price of an undelivered message"
        => "the price of the last stage that was tried"
        because "gateways usually charge for accepted messages" changed by "charge_undelivered";
    "charge-at-once": "when `hlr` and `call/otp` are charged"
        => "immediately, regardless of the result"
        because "their responses contain the result and, for `call/otp`, the price";
};

const OUTCOMES: &[Assumption] = rows! {
    // Delivery.
    "life": "the delivery of a message"
        => "QUEUED on arrival, ACCEPTED halfway to delivery, and DELIVERED two seconds after arrival"
        because "the contract does not specify transitions; rehearsals end sooner if messages reach a final status quickly" changed by "channels.<channel>.after";
    "delivered": "how many messages are delivered"
        => "all"
        because "a rehearsal without a scenario shows how a run works, not how many messages are lost" changed by "channels.<channel>.delivered, exceptions";
    "fails-as": "the status of a message that is not delivered"
        => "UNDELIVERABLE, or the status of the last fallback channel"
        because "the platform lists it, and it is the least specific status" changed by "channels.<channel>.fails_as, exceptions";
    "fallback": "when a fallback moves to the next channel"
        => "as soon as the previous channel fails or its lifetime ends"
        because "the contract says only that there is a fallback";
    "lifetime": "the default lifetime of a message on a channel, and what happens when it ends"
        => "172800 s for every channel; a message that is not delivered by then becomes EXPIRED"
        because "contract 8 shows this default for RCS";
    "read": "which messages are read"
        => "all messages delivered by Viber, RCS, Telegram or WhatsApp, three seconds after delivery; SMS and voice \
            never report READ"
        because "those channels report whether a message was read" changed by "channels.<channel>.read, channels.<channel>.read_after";
    "replied": "which messages get a reply"
        => "none"
        because "a reply is the recipient's choice" changed by "channels.<channel>.reply";
    "transitions": "the order of statuses"
        => "QUEUED, ACCEPTED for each channel that is tried, then a failure or DELIVERED, READ, REPLIED; a status \
            never moves backward"
        because "contract 3 shows no transitions";
    "chance": "which messages belong to a share"
        => "the choice depends on the seed and the number, so the same numbers get the same results in every run"
        because "a rehearsal must be reproducible" changed by "seed";
    "clock": "how fast simulated time passes for messages"
        => "as fast as real time, except that a rehearsal skips the waits"
        because "at a higher speed, a rehearsal can cover lifetimes of several days" changed by "speed";
    "faults": "which faults occur"
        => "none"
        because "unrequested faults would be confusing" changed by "faults";
    "faults-at-the-door": "which connection is refused or closed"
        => "the next one that a client opens after the previous request; `closed` affects only one connection; \
            keep-alive connections are closed"
        because "the request is not known until the connection is established" changed by "faults";
    // Statuses.
    "status-type": "the `type` of a combined message's status"
        => "the channel that is being tried, or the last one that was tried"
        because "a webhook can name only one channel";
    "status-unknown": "the status of an unknown message"
        => "the operation fails with `Message not found`"
        because "clients expect an operation with `success` false";
    "status-by-msg-id": "a `status` request with `msg_id`"
        => "it is accepted, and takes precedence over an `id`"
        because "clients use it, and a `msg_id` is unique";
    "status-lag": "when `status` knows a message"
        => "immediately"
        because "clients query the status in the next request after sending" changed by "status.lag";
    "status-blind": "whether `status` responses are correct"
        => "yes"
        because "the contract does not say otherwise" changed by "status.blind";
    "async-refusal": "an operation that the asynchronous endpoint rejects"
        => "it becomes a message with the status REJECTED, and a webhook goes to its `hook` if that URL is valid; \
            on the synchronous endpoint, the result reports the error and no message is stored"
        because "contract 4.2, 6.5 and 7";
    "time-zone": "the UTC offset of times"
        => "+00:00, in whole seconds"
        because "contract 2.5 says ISO 8601 with an offset; the platform's programming language formats times \
                 without fractional seconds";
    // Webhooks.
    "webhook-hooks": "which operations can have a `hook`"
        => "all operations that send a message: those in contract 6.3, plus `sms`, `telegram`, `viber+sms` and `voice`"
        because "the platform's public documentation; the payload has fields for voice";
    "webhook-states": "which statuses are reported"
        => "DELIVERED, READ, REPLIED and every failure, each in its own webhook; `success` is true for the first three"
        because "sections 2.4 and 6.2 of the contract mention final statuses and READ";
    "webhook-channels": "whether a webhook reports the failure of an earlier channel"
        => "no: the platform tries the next channel immediately, and the message does not have a final status yet"
        because "contract 6.2; clients of comparable gateways report such webhooks" changed by "webhooks.intermediate";
    "webhook-pipeline": "where pipeline statuses are sent"
        => "to the account's notification address, if it has one; a rejection on the asynchronous endpoint goes to `hook`"
        because "contract 6.4 and 6.5" changed by "webhooks.async_pipeline, accounts[].notify";
    "webhook-rejected": "which rejections are reported"
        => "all rejections on the asynchronous endpoint, immediately and for any reason"
        because "contract 7; a synchronous response already contains its rejections";
    "webhook-ids": "the identifiers of a webhook"
        => "strings; for a message without an `id`, the `msg_id` is used instead"
        because "contract 2.4";
    "webhook-type": "the `type` of a webhook for channels other than SMS, Viber, voice and RCS"
        => "it is omitted for all Telegram and WhatsApp messages, and for rejected messages of any other type"
        because "contract 2.4 lists four values";
    "webhook-error": "the `error` of a webhook"
        => "`Not delivered`, `Lifetime ended before delivery`, or the operation's error for a rejection"
        because "contract 2.4 says only that it contains the reason";
    "webhook-voice": "`reply` and `duration` of a call"
        => "twelve seconds and no digit; both are reported only for a delivered call, and a digit only if `dtmf` \
            is true"
        because "pressing a digit is the recipient's choice" changed by "channels.voice.digit, channels.voice.duration";
    "webhook-replies": "`replies` of a webhook"
        => "one entry with `datetime` and `message` if the status is REPLIED; otherwise, it is absent"
        because "contract 2.4; the sandbox does not support media replies" changed by "channels.<channel>.reply";
    "webhook-order": "the order of webhooks"
        => "webhooks for one message are sequential: the next one is sent once the previous one has received a \
            response or has failed; webhooks for different messages do not wait for each other"
        because "if they arrive out of order, a receiver that keeps the latest status ends up with the wrong one";
    "webhook-sending": "how webhooks are sent"
        => "at most 64 at a time, each with a timeout of 10 s; redirects are not followed; sent only to this machine \
            (an IP address, `localhost`, a subdomain of it, or a name with only loopback addresses), unless the \
            sandbox is allowed to send them anywhere; over http, the path and query are sent unchanged; over https, \
            or if the URL contains a password or an invalid character, they are normalized as in a browser"
        because "a rehearsal must not reach a real receiver";
    "webhook-retry": "what happens after a webhook gets a response other than 200"
        => "it is retried after 1, 3, 5, 10, 15, 20, 30, 60 and 120 minutes, and then dropped; it is dropped \
            earlier if the message has a newer status"
        because "similar gateways do the same" changed by "webhooks.retry";
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The keys at the top of a scenario file.
    const KEYS: [&str; 12] = [
        "accounts",
        "channels",
        "charge_undelivered",
        "exceptions",
        "faults",
        "limits",
        "prices",
        "seed",
        "speed",
        "status",
        "templates",
        "webhooks",
    ];

    #[test]
    fn assumption_ids_are_unique_and_texts_not_empty() {
        let ids: BTreeSet<_> = assumptions().map(|assumption| assumption.id).collect();
        assert_eq!(ids.len(), assumptions().count());
        for Assumption { id, what, choice, reason, .. } in assumptions() {
            assert!([id, what, choice, reason].iter().all(|text| !text.trim().is_empty()), "{id}");
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        }
    }

    #[test]
    fn every_scenario_key_changes_an_assumption() {
        let changes = assumptions().filter(|assumption| !assumption.change.is_empty());
        let keys: BTreeSet<_> = changes
            .flat_map(|assumption| assumption.change.split(", "))
            .map(|key| key.split(['.', '[']).next().unwrap_or_default())
            .collect();
        assert_eq!(keys, KEYS.into());
    }
}
