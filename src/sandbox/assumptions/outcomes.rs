//! What is decided about what becomes of messages, and how it is told.

use super::Assumption;

pub(super) const ROWS: &[Assumption] = rows! {
    // What becomes of a message.
    "life": "the delivery of a message"
        => "QUEUED on arrival, ACCEPTED halfway to delivery, and DELIVERED two seconds after arrival"
        because "the contract shows no transitions; an early final status lets a rehearsal end" changed by "channels.<channel>.after";
    "delivered": "how many messages are delivered"
        => "all"
        because "a rehearsal without a scenario shows how a run works, not how many messages are lost" changed by "channels.<channel>.delivered, exceptions";
    "fails-as": "the status of a message that is not delivered"
        => "UNDELIVERABLE, or the status of the last fallback channel"
        because "the platform lists it, and it is the least specific status" changed by "channels.<channel>.fails_as, exceptions";
    "fallback": "when a fallback moves to the next channel"
        => "as soon as the previous channel fails or its lifetime ends"
        because "the contract says only that there is a fallback";
    "lifetime": "the default lifetime of a message on a channel, and what happens at its end"
        => "172800 s for every channel; a message that is not delivered by then becomes EXPIRED"
        because "contract 8 shows this default for RCS";
    "read": "which messages are read"
        => "all messages delivered by Viber, RCS, Telegram and WhatsApp, three seconds later; SMS and voice never report READ"
        because "those channels know whether a message was read" changed by "channels.<channel>.read, channels.<channel>.read_after";
    "replied": "which messages get a reply"
        => "none"
        because "a reply is the recipient's choice" changed by "channels.<channel>.reply";
    "transitions": "the order of statuses"
        => "QUEUED, ACCEPTED for each channel that is tried, then a failure or DELIVERED, READ, REPLIED; a status never goes back"
        because "contract 3 shows no transitions";
    "chance": "which messages belong to a share"
        => "they are chosen from the seed and the number, so the same numbers get the same result in every run"
        because "a rehearsal must be reproducible" changed by "seed";
    "clock": "the speed of time for messages"
        => "the same as real time, except that a rehearsal skips waiting times"
        because "at a higher speed, a rehearsal can cover lifetimes of several days" changed by "speed";
    "faults": "which faults occur"
        => "none"
        because "faults that nobody requested are confusing" changed by "faults";
    "faults-at-the-door": "which connection is refused or closed"
        => "the next one that a client opens after the previous request; `closed` affects only one connection; \
            keep-alive connections are closed"
        because "the sandbox does not know the request before the connection exists" changed by "faults";
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
        because "clients ask in the next request after sending" changed by "status.lag";
    "status-blind": "whether `status` responses are correct"
        => "yes"
        because "the contract does not say otherwise" changed by "status.blind";
    "async-refusal": "an operation that the asynchronous endpoint rejects"
        => "it becomes a message with the status REJECTED, and a webhook goes to its `hook` if that URL is valid; \
            on the synchronous endpoint, the result reports the error and no message is stored"
        because "contract 4.2, 6.5 and 7";
    "time-zone": "the UTC offset of times"
        => "+00:00, in whole seconds"
        because "contract 2.5 says ISO 8601 with an offset; the platform's programming language writes no fractions";
    // Webhooks.
    "webhook-hooks": "which operations can have a `hook`"
        => "all operations that send a message: those of contract 6.3, and also `sms`, `telegram`, `viber+sms` and \
            `voice`"
        because "the platform's public documentation; the payload has fields for voice";
    "webhook-states": "which statuses are reported"
        => "DELIVERED, READ, REPLIED and every failure, each in its own webhook; `success` is true for the first three"
        because "contract 2.4 and 6.2 mention final statuses and READ";
    "webhook-channels": "whether a webhook reports the failure of an earlier channel"
        => "no: the platform tries the next channel immediately, and the message is not in a final status"
        because "contract 6.2; clients of comparable gateways report such webhooks" changed by "webhooks.intermediate";
    "webhook-pipeline": "where the statuses of a pipeline are sent"
        => "to the account's notification address, if it has one; a rejection on the asynchronous endpoint goes to `hook`"
        because "contract 6.4 and 6.5" changed by "webhooks.async_pipeline, accounts[].notify";
    "webhook-rejected": "which rejections are reported"
        => "all rejections on the asynchronous endpoint, immediately and for any reason"
        because "contract 7; a synchronous response already contains its rejections";
    "webhook-ids": "the identifiers of a webhook"
        => "strings; a message without an `id` has its `msg_id` in that place"
        because "contract 2.4";
    "webhook-type": "the `type` of a webhook for channels other than SMS, Viber, voice and RCS"
        => "it is omitted for Telegram, WhatsApp, and rejected messages of any other type"
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
        because "contract 2.4; the sandbox has no replies with media" changed by "channels.<channel>.reply";
    "webhook-order": "the order of webhooks"
        => "webhooks for one message are sequential: the next one is sent once the previous one has received a \
            response or has failed; webhooks for different messages do not wait for each other"
        because "if they arrive out of order, a receiver that keeps the latest status keeps the wrong one";
    "webhook-sending": "how webhooks are sent"
        => "at most 64 at a time, each with a timeout of 10 s and without following redirects; only to this \
            machine (an IP address, `localhost`, a name below it, or a name with only loopback addresses), unless \
            the sandbox is allowed to send them anywhere; over http, the path and query are sent unchanged; over \
            https, or if the URL contains a password or an invalid character, they are normalized as in a browser"
        because "a rehearsal must not reach a real receiver";
    "webhook-retry": "what happens after a webhook gets a response other than 200"
        => "it is retried after 1, 3, 5, 10, 15, 20, 30, 60 and 120 minutes, and then dropped; it is dropped \
            earlier if the message has a newer status"
        because "similar gateways do the same" changed by "webhooks.retry";
};
