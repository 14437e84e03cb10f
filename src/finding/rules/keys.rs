//! Keys and their values.

use super::Rule;

rules! {
    error UNKNOWN_KEY = "unknown-key":
        "A key that means nothing would be ignored, and what it asks for would not happen.",
        "Correct its name, or remove it.";
    error MISSING_KEY = "missing-key":
        "Some keys cannot be guessed.", "Add the key.";
    error ONE_OF_TWO = "one-of-two":
        "Two keys that say the same thing in different ways leave open which of them holds.", "Keep one of them.";
    error WRONG_TYPE = "wrong-type":
        "A value has to have the form that its key takes.", "Write it as the key's example shows it.";
    error OUT_OF_RANGE = "out-of-range":
        "A value outside of these bounds is not possible, or is a slip.", "Write a value within the bounds.";
    error UNKNOWN_VALUE = "unknown-value":
        "Only some words mean something here.", "Write one of those that are named.";
    error EMPTY_VALUE = "empty-value":
        "A key without a value says nothing.", "Write its value, or remove the key.";
    error SECRET = "secret":
        "A secret in a file is copied and shared with it.",
        "Write where the secret is kept: `{ env: NAME }` or `{ file: PATH }`.";
}
