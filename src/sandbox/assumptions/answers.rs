//! What is decided about answers and money.

use super::Assumption;

pub(super) const ROWS: &[Assumption] = rows! {
    // Answers.
    "send-result-data": "the `data` member of a send result"
        => "always 1"
        because "the platform's code for an accepted message";
    "parts": "`parts` of a message that is not a plain SMS"
        => "1, or the number of parts of the longest SMS among its stages"
        because "the gateway reserves the price of the most expensive stage";
    "refused-id": "the `data` of a failed operation"
        => "the operation's `id`, if it has one"
        because "contract 7 shows this for one error";
    "whatsapp-route": "whether the account has a WhatsApp route"
        => "it has one for every number; if the scenario removes it, the operation fails with `No route`"
        because "without it, WhatsApp campaigns cannot be rehearsed" changed by "accounts[].whatsapp";
    "senders": "the account's sender names"
        => "every well-formed name is accepted and none is listed, unless the scenario contains a list"
        because "an incomplete list rejects valid names" changed by "accounts[].senders";
    "code-call": "the result of `call/otp`"
        => "`code` with four digits derived from the `msg_id`, and `price`"
        because "the platform's public documentation; every run gets the same codes" changed by "prices.call/otp";
    "lookup": "the result of `hlr`"
        => "every number is reachable, not ported, and belongs to one fictitious Ukrainian operator; `status` is the result of the lookup: `DELIVERED`, or the status of the failure"
        because "the format of the record is public, but its contents depend on the subscriber" changed by "channels.hlr.delivered, channels.hlr.fails_as, exceptions";
    "templates": "the fields of the template operations that the contract does not define"
        => "`template/delete`: `id`; `template/viber/create`: `signature` and `template`; `template/viber/delete`: `id`; it deletes nothing if a different `template` text is sent with it"
        because "by analogy with the operations in the contract";
    "template-count": "what the two numbers in a template's `count` mean"
        => "characters and messages, as in `8 / 1`; characters are counted as in SMS billing"
        because "the platform's public documentation";
    "template-ids": "a template's `id`"
        => "numbers from 1, for each account and each of the two kinds; they are never reused"
        because "the contract says only that it is a number";
    "template-limit": "how many templates an account can have"
        => "10000 of each kind and 16 MiB of text; then an operation fails with `Too many templates`"
        because "it limits the sandbox's memory";
    "template-review": "the review of a Viber template"
        => "`new`, after ten seconds `submitted`, and after ten more seconds `approved`"
        because "the statuses are public, but the times are invented" changed by "templates.review, templates.approved";
    // Money.
    "balance": "the account's balance"
        => "100000000.123456 UAH at the start"
        because "amounts have many decimals, and a rehearsal must not run out of money by accident" changed by "accounts[].balance, accounts[].currency";
    "prices": "the price of a message part"
        => "an invented price for each channel; SMS are charged per part, other stages once"
        because "the contract shows no prices" changed by "prices.<channel>";
    "reservation": "which amount is reserved, and when"
        => "the most expensive stage of each message, when the message arrives; if the balance does not cover all recipients, the operation fails with `Not enough money` and nothing is reserved"
        because "contract 4.3 `pipeline`; other types are messages with fewer stages";
    "charge": "the price of a delivered message"
        => "the price of the stage that delivered it; the difference is refunded on delivery"
        because "contract 4.3 `pipeline`";
    "charge-undelivered": "the price of an undelivered message"
        => "the price of the last stage that was tried"
        because "gateways usually charge for accepted messages" changed by "charge_undelivered";
    "charge-at-once": "when `hlr` and `call/otp` are charged"
        => "immediately, whatever the result"
        because "their response contains the result, and for `call/otp` the price";
};
