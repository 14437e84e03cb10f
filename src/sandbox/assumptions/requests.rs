//! What is decided about requests.

use super::Assumption;

pub(super) const ROWS: &[Assumption] = rows! {
    // The request as a whole.
    "incorrect-request": "the response to a request without `Content-Type: application/json` or with a body that is not JSON (contract 4.1, 7)"
        => "HTTP 200, a top-level `success` of false, and the sandbox's own error message"
        because "the contract says 200 in every case, including failure";
    "order-of-checks": "which error is returned if several apply"
        => "Content-Type, size, JSON, key, `data`, types, in this order; no operation is processed unless all are valid"
        because "each step depends on the previous one";
    "unknown-type": "a `type` that is missing or unknown (contract 2.1)"
        => "`Invalid message type` for the whole request, as for `whatsapp`"
        because "the contract shows this response for the only invalid type that it mentions";
    "empty-data": "a request without operations (contract 8)"
        => "a top-level error with the sandbox's own error message"
        because "at least one operation is required, but the contract shows no error message";
    "body-limit": "the size limit of a request"
        => "8 MiB; a larger request gets a top-level error"
        because "it limits the sandbox's memory";
    "operations-limit": "how many operations a request can contain"
        => "as many as fit in the body"
        because "the contract shows no limit";
    "operations-rate": "how many operations an account can send per period"
        => "any number; if the scenario sets a limit, a request above it is not processed and gets HTTP 429 with \
            `Retry-After`"
        because "the contract shows no limit" changed by "limits";
    "no-endpoint": "a path that is not an endpoint, with any number of leading slashes"
        => "HTTP 404 and a JSON error"
        because "it is outside the contract, and a wrong path must be noticeable";
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
        because "clients send strings with leading zeros, but ask with numbers";
    "msg-id": "the format of `msg_id`"
        => "consecutive numbers from 700000001"
        because "known clients read a number, and tests need reproducible values";
    "request-id": "the format of `request_id`"
        => "`sandbox-` and a ten-digit counter"
        because "the contract says only that it is a string";
    // Fields.
    "phone": "which numbers are valid"
        => "5 to 15 digits that do not start with 0, as a number (also `380501112233.0`) or in a string; a plus \
            sign is not valid"
        because "contract 4.3 shows only digits, and no numbering plan";
    "phones-joined": "several numbers in one `phone`, separated by commas"
        => "one message for each; the result has the first `msg_id` and the sum of parts; if one number is \
            invalid, or if there are more than 1000, all of them are rejected; a trailing comma is allowed; does \
            not apply to `hlr` and `call/otp`"
        because "clients send it, and the response has one entry per operation";
    "sms-fields": "the fields of `sms`"
        => "`sms_signature` and `sms_message` required; `sms_lifetime` (3600 to 259200 s), `short_link`, `hook` optional"
        because "the platform's public documentation";
    "viber-fields": "the values of `viber_type` and the required fields of each"
        => "text: message; image: image; text+link: message, button, link; text+image+link: all four; carousel: 2 to 5 cards with image, url and button"
        because "the platform's public documentation";
    "viber-in-rcs-viber-sms": "which Viber fields `rcs+viber+sms` requires"
        => "the same as `viber` alone"
        because "the message that falls back to Viber is an ordinary Viber message";
    "viber-lifetime": "the range of `viber_lifetime`"
        => "60 to 172800 s"
        because "the platform's public documentation";
    "telegram-fields": "the fields of `telegram`"
        => "`message`, a code of 4 to 8 digits; optional `telegram_lifetime` from 60 s, `hook`"
        because "the platform's public documentation";
    "voice-fields": "the fields of `voice` and of the `voice` stage"
        => "`message` (optional in a stage), `dtmf`, and `gender`, `language`, `name` at the same level or in an object `voice`; any language and name"
        because "the contract shows one format, and the platform's documentation shows the other";
    "pipeline-stages": "the required fields of pipeline stages that the contract does not define"
        => "rcs: signature and message; viber: any `type`; whatsapp: nothing, not even its object; objects for \
            channels that are not listed are ignored"
        because "contract 4.3 leaves WhatsApp unchecked; the rest is the minimum for a message";
    "sender-names": "which sender names are accepted"
        => "for SMS 3 to 11 Latin letters, digits, dots, dashes, underscores or spaces with at least one letter; any text for Viber and RCS; with a list of senders, only names on it that are `Checked`"
        because "mobile operators have this rule; WhatsApp is not checked (contract 4.3)" changed by "accounts[].senders";
    "addresses": "valid addresses in images, links and hooks"
        => "http or https with a host name"
        because "the contract says only that it is a URL";
    "text-limits": "the length limit for message texts and captions"
        => "none"
        because "the contract shows no limit";
    "field-errors": "the error for a missing or invalid field"
        => "`Please enter <field>` or `Error in <field>`, as an error of the operation"
        because "in the style of the few error messages in the contract";
    "extra-properties": "properties that are not in the contract"
        => "ignored"
        because "contract 2.1 allows them";
};
