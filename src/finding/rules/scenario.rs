//! Scenarios of the sandbox.

use super::Rule;

rules! {
    error ACCOUNT_KEY = "account-key":
        "A key opens one account.", "Give each account another `key`.";
    error ADDRESS = "address":
        "Statuses can only go to a web address.", "Write it like `http://127.0.0.1:9000/status`.";
    warning NOTIFY_ELSEWHERE = "notify-elsewhere":
        "A rehearsal sends nothing to other machines unless it is told to.",
        "Use `campaign sandbox --any-hook`, or an address of this machine.";
    error FAULT_EFFECT = "fault-effect":
        "A fault has one effect, and each effect its own keys.", "Give it one effect, and what that effect takes.";
    error NOT_KNOWN = "not-known":
        "Some channels do not tell what others tell, such as that a message was read.", "Remove it.";
}
