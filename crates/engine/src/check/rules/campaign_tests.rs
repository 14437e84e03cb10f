//! Rules about the results of the tests in a campaign file.

use campaign_core::define_rules;

define_rules! {
    CAMPAIGN:
    pub(in crate::check) error TEST_FAILED = "test-failed" {
        cause: "A test in the campaign file fails. The message or the reason for skipping is not as expected.",
        example: [
            "message: \"Hi {{ first_name }}\"",
            "tests:",
            "  - { name: greeting, given: { first_name: Olena },",
            "      expect: { sms: { text: \"Hello Olena\" } } }",
        ],
        fix: "correct the text, the condition or the test",
    }
    pub(in crate::check) note TEST_NOT_RUN = "test-not-run" {
        cause: "A test was not run completely. It needs rows of the list or the prices of a gateway profile.",
        example: [
            "recipients: { url: https://crm.example/people.csv }",
            "tests:",
            "  - { name: short, each: 5, expect: { sms: { max_parts: 2 } } }",
        ],
        fix: "fetch the list with `--fetch`, or check the campaign for a gateway whose profile has prices",
    }
}
