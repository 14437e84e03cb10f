//! What is decided about answers and money.

use super::{Assumption, row};

pub(super) const ROWS: &[Assumption] = &[
    // Answers.
    row(
        "send-result-data",
        "the member `data` of a send result",
        "always 1",
        "the platform's code for a message that was received",
    ),
    row(
        "parts",
        "`parts` of a message that is not a plain SMS",
        "1, or the parts of the longest SMS among its stages",
        "the dearest stage is what the gateway reserves",
    ),
    row(
        "refused-id",
        "the `data` of an item that failed",
        "its `id` if one was sent",
        "contract 7 shows it for one error",
    ),
    row(
        "whatsapp-route",
        "whether the account has a WhatsApp route",
        "it has one for every number; without it the item error is `No route`",
        "without it no such campaign could be rehearsed",
    )
    .changed_by("accounts[].whatsapp"),
    row(
        "senders",
        "the account's sender names",
        "those of the messages that it took so far, at most 1000, all `Checked`, unless a list is given",
        "every well-formed name is accepted anyway, and none is better than any other",
    )
    .changed_by("accounts[].senders"),
    row(
        "code-call",
        "the result of `call/otp`",
        "`code` of four digits made from the `msg_id`, and `price`",
        "the platform's public documentation; the same in every run",
    )
    .changed_by("prices.call/otp"),
    row(
        "lookup",
        "the result of `hlr`",
        "every number is reachable, not ported, and of one made-up Ukrainian operator; `status` is what becomes of the lookup: `DELIVERED`, or the word with which it fails",
        "the record's form is public, its contents are a subscriber's",
    )
    .changed_by("channels.hlr.delivered, channels.hlr.fails_as, exceptions"),
    row(
        "templates",
        "the fields of the template operations that the contract leaves open",
        "`template/delete`: `id`; `template/viber/create`: `signature` and `template`; `template/viber/delete`: `id`, and nothing is deleted if a `template` beside it is another text",
        "by analogy with the operations that are shown",
    ),
    row(
        "template-count",
        "the two numbers of a template's `count`",
        "signs and messages, as in `8 / 1`; signs are counted as an SMS bills them",
        "the platform's public documentation",
    ),
    row(
        "template-ids",
        "the `id` of a template",
        "numbers from 1, for each account and each of the two sorts; none is used again",
        "the contract says only that it is a number",
    ),
    row(
        "template-limit",
        "how many templates an account may have",
        "10000 of each sort and 16 MiB of text; then an item error `Too many templates`",
        "it bounds the memory of the sandbox",
    ),
    row(
        "template-review",
        "what becomes of a Viber template",
        "`new`, ten seconds later `submitted`, and ten seconds later `approved`",
        "the values are public, the times are made up",
    )
    .changed_by("templates.review, templates.approved"),
    // Money.
    row(
        "balance",
        "how much money there is",
        "100000000.123456 UAH at the beginning",
        "amounts come with many decimals, and a rehearsal should not run dry unasked",
    )
    .changed_by("accounts[].balance, accounts[].currency"),
    row(
        "prices",
        "what a part costs",
        "an invented price for each channel; a stage costs it once, an SMS once for each part",
        "no prices are shown",
    )
    .changed_by("prices.<channel>"),
    row(
        "reservation",
        "what is reserved, and when",
        "the dearest stage of each message, at its intake; if the balance is below the sum for all recipients the item error is `Not enough money` and nothing is reserved",
        "contract 4.3 `pipeline`; other types are messages with fewer stages",
    ),
    row(
        "charge",
        "what a delivered message costs",
        "the stage that delivered it; the difference is returned at that moment",
        "contract 4.3 `pipeline`",
    ),
    row(
        "charge-undelivered",
        "what an undelivered message costs",
        "the stage that was tried last",
        "gateways charge what they accepted",
    )
    .changed_by("charge_undelivered"),
    row(
        "charge-at-once",
        "when `hlr` and `call/otp` are charged",
        "at once, whatever becomes of them",
        "their answer tells the result, and for `call/otp` the price",
    ),
];
