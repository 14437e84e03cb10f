//! What is decided about what becomes of messages, and how it is told.

use super::Assumption;

pub(super) const ROWS: &[Assumption] = rows! {
    // What becomes of a message.
    "life": "what becomes of a message"
        => "QUEUED, ACCEPTED half-way, and DELIVERED two seconds after it came"
        because "the contract shows no transitions; a final state soon lets a rehearsal end" changed by "channels.<channel>.after";
    "delivered": "how many messages are delivered"
        => "all"
        because "a rehearsal without a scenario shows the way, not the losses" changed by "channels.<channel>.delivered, exceptions";
    "fails-as": "the status of a message that is not delivered"
        => "UNDELIVERABLE, or what the last channel of a fallback says"
        because "the platform's list has it, and it says the least" changed by "channels.<channel>.fails_as, exceptions";
    "fallback": "when the next channel of a fallback is tried"
        => "as soon as the one before failed or its lifetime ended"
        because "the contract says only that delivery falls back";
    "lifetime": "the lifetime of a channel that names none, and its end"
        => "172800 s for every channel; a message that would be delivered later is EXPIRED"
        because "contract 8 shows that default for RCS";
    "read": "which messages are read"
        => "all that are delivered by Viber, RCS, Telegram and WhatsApp, three seconds later; READ is never told of SMS and voice"
        because "those channels know it" changed by "channels.<channel>.read, channels.<channel>.read_after";
    "replied": "which messages are replied to"
        => "none"
        because "a reply is a person's choice" changed by "channels.<channel>.reply";
    "transitions": "which statuses follow which"
        => "QUEUED, ACCEPTED for each channel that is tried, then a failure or DELIVERED, READ, REPLIED; none comes back"
        because "contract 3 shows no transitions";
    "chance": "who belongs to a share"
        => "drawn from the seed and the number, so that the same numbers fare the same in every run"
        because "a rehearsal has to be repeatable" changed by "seed";
    "clock": "how fast time passes for messages"
        => "as on the wall; a rehearsal does not wait"
        because "a lifetime of days can be rehearsed at a higher speed" changed by "speed";
    "faults": "what goes wrong"
        => "nothing"
        because "what nobody asks for would only surprise" changed by "faults";
    "faults-at-the-door": "whom a refused or closed connection meets"
        => "whoever comes after the envelope before it, and for `closed` no more than one connection; connections that are kept alive end"
        because "what a connection will bring is not known before it is made" changed by "faults";
    // Statuses.
    "status-type": "the `type` of a combined message's status"
        => "the channel that is tried, or that was tried last"
        because "the webhook names single channels only";
    "status-unknown": "the status of a message that does not exist"
        => "an item error `Message not found`"
        because "clients expect an item with `success` false";
    "status-by-msg-id": "a `status` with `msg_id`"
        => "is answered, and wins over an `id` beside it"
        because "clients ask so, and a `msg_id` is never used twice";
    "status-lag": "how soon `status` knows a message"
        => "at once"
        because "clients ask in the request right after the send" changed by "status.lag";
    "status-blind": "whether `status` tells the truth"
        => "it does"
        because "nothing says that it does not" changed by "status.blind";
    "async-refusal": "an operation that the asynchronous endpoint refuses"
        => "is a message with status REJECTED, and a webhook to its `hook` if that is usable; on the synchronous endpoint the item tells, and no message is left"
        because "contract 4.2, 6.5 and 7";
    "time-zone": "the offset of times"
        => "+00:00, in whole seconds"
        because "contract 2.5 says ISO 8601 with offset; the platform's language writes no fraction";
    // Webhooks.
    "webhook-hooks": "which operations keep a `hook`"
        => "every message: besides those of contract 6.3 also `sms`, `telegram`, `viber+sms` and `voice`"
        because "the platform's public documentation; the payload has fields of voice";
    "webhook-states": "which statuses are told"
        => "DELIVERED, READ, REPLIED and every failure, each in a webhook of its own; `success` is true for the first three"
        because "contract 2.4 and 6.2: once the message is in a final state, and READ occurs";
    "webhook-channels": "whether a webhook reports the failure of an earlier channel"
        => "no: the platform tries the next channel at once, and the message is not in a final state"
        because "contract 6.2; clients of comparable gateways report such webhooks" changed by "webhooks.intermediate";
    "webhook-pipeline": "where a pipeline's statuses go"
        => "to the account's notification address, and nowhere without one; a refusal on the asynchronous endpoint goes to `hook`"
        because "contract 6.4 and 6.5" changed by "webhooks.async_pipeline, accounts[].notify";
    "webhook-rejected": "which refusals are told"
        => "those of messages on the asynchronous endpoint, for any reason, at once"
        because "contract 7; the synchronous answer tells its own";
    "webhook-ids": "the identifiers of a webhook"
        => "strings; without an `id` the `msg_id` stands for it"
        because "contract 2.4";
    "webhook-type": "the `type` of a webhook about something else than SMS, Viber, voice and RCS"
        => "is left out: of Telegram and WhatsApp, and of a refused message of any other type"
        because "contract 2.4 names four values";
    "webhook-error": "the `error` of a webhook"
        => "`Not delivered`, `Lifetime ended before delivery`, or the item's error for a refusal"
        because "contract 2.4 says only that it is the reason";
    "webhook-voice": "`reply` and `duration` of a call"
        => "twelve seconds, no digit; both only if the call was delivered, and a digit only if the operation said `dtmf` true"
        because "a digit is a person's choice" changed by "channels.voice.digit, channels.voice.duration";
    "webhook-replies": "`replies` of a webhook"
        => "one item with `datetime` and `message` when the status is REPLIED, else absent"
        because "contract 2.4; nobody replies with media here" changed by "channels.<channel>.reply";
    "webhook-order": "the order of webhooks"
        => "those of one message one after another, the next when the last was answered or has failed; different messages do not wait for each other"
        because "a receiver that keeps the latest would otherwise keep whichever came last";
    "webhook-sending": "how webhooks are sent"
        => "at most 64 at a time, each waiting 10 s for its answer and following no redirect; to this machine only (by address, as `localhost`, by a name below it, or by a name whose addresses are all loopback), unless the sandbox may send them anywhere; over http path and query are sent to the letter; over https, with a password in the address or with a character that no address has, as browsers write them"
        because "a rehearsal bothers nobody else's receiver";
    "webhook-retry": "what follows a webhook that is not answered with 200"
        => "it is tried again after 1, 3, 5, 10, 15, 20, 30, 60 and 120 minutes, then given up; sooner if the message has a newer status by then"
        because "the habit of similar gateways" changed by "webhooks.retry";
};
