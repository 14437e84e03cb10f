//! What is decided about requests.

use super::Assumption;

pub(super) const ROWS: &[Assumption] = rows! {
    // The request as a whole.
    "incorrect-request": "the answer to a request without `Content-Type: application/json` or with a body that is no JSON (contract 4.1, 7)"
        => "HTTP 200, top-level `success` false and a text of the sandbox's own"
        because "the contract says 200 in every case including failure";
    "order-of-checks": "which error is told when several apply"
        => "Content-Type, size, JSON, key, `data`, types; nothing is executed unless all are right"
        because "each step needs the one before";
    "unknown-type": "a `type` that is missing or not in the list (contract 2.1)"
        => "`Invalid message type` for the whole envelope, as for `whatsapp`"
        because "the contract shows that answer for the only wrong type it names";
    "empty-data": "an envelope without operations (contract 8)"
        => "a top-level error of the sandbox's own text"
        because "at least one operation is required; no text is shown";
    "body-limit": "how large a request may be"
        => "8 MiB; a larger one is told so at top level"
        because "it bounds the memory of the sandbox";
    "operations-limit": "how many operations a request may hold"
        => "as many as fit into the body"
        because "no figure is shown";
    "operations-rate": "how many operations an account may send in a time"
        => "any number; where there is a limit, an envelope above it is not executed and gets HTTP 429 with `Retry-After`"
        because "no figure is shown" changed by "limits";
    "no-endpoint": "a path that is no endpoint, whatever slashes it begins with"
        => "HTTP 404 and a JSON error"
        because "it is outside the contract, and a wrong address should show";
    "get": "a request that is no POST"
        => "HTTP 200 and a top-level error"
        because "the contract says 200 in every case";
    "idle-connections": "how long a connection may be silent"
        => "30 seconds"
        because "half-open connections would pile up otherwise";
    "accounts": "how many accounts there are"
        => "one, opened by the sandbox's key; messages, money, names and templates are an account's own"
        because "the contract knows one key at a time" changed by "accounts[].key";
    // Identifiers.
    "ids-repeat": "whether an `id` may be used twice"
        => "it may; both messages are taken, and a status by that `id` tells of the later; lookups and code calls take no message's `id`"
        because "a message sent twice has to show, and clients reuse identifiers";
    "id-missing": "an operation without `id`"
        => "it is served; where an `id` is told, the gateway's `msg_id` stands for it"
        because "clients leave it out and still read `id` from the answer";
    "id-form": "the form of an `id` in answers"
        => "as it was sent in results, a string in status records; `7`, `\"7\"` and `\"007\"` are one identifier"
        because "clients send strings with leading zeros and ask with numbers";
    "msg-id": "the form of `msg_id`"
        => "numbers that follow one another from 700000001"
        because "known clients read a number, and tests want the same each time";
    "request-id": "the form of `request_id`"
        => "`sandbox-` and ten digits that count up"
        because "the contract says only that it is a string";
    // Fields.
    "phone": "which numbers are valid"
        => "5 to 15 digits, the first not 0, as a number (`380501112233.0` is one) or in a string; a plus sign is not"
        because "contract 4.3 shows digits only; no plan of numbers is shown";
    "phones-joined": "several numbers in one `phone`, joined by commas"
        => "one message for each; the result tells the first `msg_id` and all parts; one bad number, or more than 1000, refuses all; a comma behind the last does not; not for `hlr` and `call/otp`"
        because "clients send it, and the answer has one item per operation";
    "sms-fields": "the fields of `sms`"
        => "`sms_signature` and `sms_message` required; `sms_lifetime` (3600 to 259200 s), `short_link`, `hook` optional"
        because "the platform's public documentation";
    "viber-fields": "the values of `viber_type` and what each requires"
        => "text: message; image: image; text+link: message, button, link; text+image+link: all four; carousel: 2 to 5 cards with image, url and button"
        because "the platform's public documentation";
    "viber-in-rcs-viber-sms": "which Viber fields `rcs+viber+sms` requires"
        => "the same as `viber` alone"
        because "the message that falls back to Viber is an ordinary one";
    "viber-lifetime": "the range of `viber_lifetime`"
        => "60 to 172800 s"
        because "the platform's public documentation";
    "telegram-fields": "the fields of `telegram`"
        => "`message`, a code of 4 to 8 digits; optional `telegram_lifetime` from 60 s, `hook`"
        because "the platform's public documentation";
    "voice-fields": "the fields of `voice` and of the `voice` stage"
        => "`message` (optional in a stage), `dtmf`, and `gender`, `language`, `name` beside it or in an object `voice`; any language and name"
        because "the contract shows one form and the platform the other";
    "pipeline-stages": "what the stages of a pipeline require where the contract says nothing"
        => "rcs: signature and message; viber: any `type`; whatsapp: nothing, not even its object; objects of channels that are not listed are ignored"
        because "contract 4.3 leaves WhatsApp unchecked; the rest is the least that makes a message";
    "sender-names": "which sender names are accepted"
        => "for SMS 3 to 11 Latin letters, digits, dots, dashes, underscores or spaces with at least one letter; any text for Viber and RCS; and with a list of senders only those on it that are `Checked`"
        because "the rule of operators; WhatsApp is not checked (contract 4.3)" changed by "accounts[].senders";
    "addresses": "what counts as an address in images, links and hooks"
        => "http or https with a host"
        because "the contract says URL and nothing more";
    "text-limits": "how long texts and captions may be"
        => "any length"
        because "the contract shows no limit";
    "field-errors": "the error of a field that is missing or wrong"
        => "`Please enter <field>` or `Error in <field>`, in the item"
        because "in the manner of the few texts that are shown";
    "extra-properties": "properties that the contract does not name"
        => "ignored"
        because "contract 2.1 allows them";
};
