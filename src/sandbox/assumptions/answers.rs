//! What is decided about answers and money.

use super::Assumption;

pub(super) const ROWS: &[Assumption] = rows! {
    // Answers.
    "send-result-data": "the member `data` of a send result"
        => "always 1"
        because "the platform's code for a message that was received";
    "parts": "`parts` of a message that is not a plain SMS"
        => "1, or the parts of the longest SMS among its stages"
        because "the dearest stage is what the gateway reserves";
    "refused-id": "the `data` of an item that failed"
        => "its `id` if one was sent"
        because "contract 7 shows it for one error";
    "whatsapp-route": "whether the account has a WhatsApp route"
        => "it has one for every number; without it the item error is `No route`"
        because "without it no such campaign could be rehearsed" changed by "accounts[].whatsapp";
    "senders": "the account's sender names"
        => "every well-formed name is accepted and none is listed, unless a list is given"
        because "a list that is not complete would deny the names that it lacks" changed by "accounts[].senders";
    "code-call": "the result of `call/otp`"
        => "`code` of four digits made from the `msg_id`, and `price`"
        because "the platform's public documentation; the same in every run" changed by "prices.call/otp";
    "lookup": "the result of `hlr`"
        => "every number is reachable, not ported, and of one made-up Ukrainian operator; `status` is what becomes of the lookup: `DELIVERED`, or the word with which it fails"
        because "the record's form is public, its contents are a subscriber's" changed by "channels.hlr.delivered, channels.hlr.fails_as, exceptions";
    "templates": "the fields of the template operations that the contract leaves open"
        => "`template/delete`: `id`; `template/viber/create`: `signature` and `template`; `template/viber/delete`: `id`, and nothing is deleted if a `template` beside it is another text"
        because "by analogy with the operations that are shown";
    "template-count": "the two numbers of a template's `count`"
        => "signs and messages, as in `8 / 1`; signs are counted as an SMS bills them"
        because "the platform's public documentation";
    "template-ids": "the `id` of a template"
        => "numbers from 1, for each account and each of the two sorts; none is used again"
        because "the contract says only that it is a number";
    "template-limit": "how many templates an account may have"
        => "10000 of each sort and 16 MiB of text; then an item error `Too many templates`"
        because "it bounds the memory of the sandbox";
    "template-review": "what becomes of a Viber template"
        => "`new`, ten seconds later `submitted`, and ten seconds later `approved`"
        because "the values are public, the times are made up" changed by "templates.review, templates.approved";
    // Money.
    "balance": "how much money there is"
        => "100000000.123456 UAH at the beginning"
        because "amounts come with many decimals, and a rehearsal should not run dry unasked" changed by "accounts[].balance, accounts[].currency";
    "prices": "what a part costs"
        => "an invented price for each channel; a stage costs it once, an SMS once for each part"
        because "no prices are shown" changed by "prices.<channel>";
    "reservation": "what is reserved, and when"
        => "the dearest stage of each message, at its intake; if the balance is below the sum for all recipients the item error is `Not enough money` and nothing is reserved"
        because "contract 4.3 `pipeline`; other types are messages with fewer stages";
    "charge": "what a delivered message costs"
        => "the stage that delivered it; the difference is returned at that moment"
        because "contract 4.3 `pipeline`";
    "charge-undelivered": "what an undelivered message costs"
        => "the stage that was tried last"
        because "gateways charge what they accepted" changed by "charge_undelivered";
    "charge-at-once": "when `hlr` and `call/otp` are charged"
        => "at once, whatever becomes of them"
        because "their answer tells the result, and for `call/otp` the price";
};
