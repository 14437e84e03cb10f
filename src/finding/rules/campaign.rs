//! What a campaign file alone shows.

use super::Rule;

rules! {
    error CAMPAIGN_NAME = "campaign-name":
        "The name of a campaign is part of the names of files and of commands.",
        "Use 1 to 64 of a-z, 0-9 and `-`, beginning and ending with a letter or a digit.";
    error UNKNOWN_TIMEZONE = "unknown-timezone":
        "Local times and `today` follow the time zone.", "Write the name of a zone such as `Europe/Kyiv`.";
    error MISSING_TIMEZONE = "missing-timezone":
        "A day and a local time are those of one place.", "Write the campaign's `timezone`, such as `Europe/Kyiv`.";
    error SCHEDULE = "schedule":
        "A campaign that runs by itself has to say when, in one way and by the clocks of one place.",
        "Write one of `at`, `every` and `cron` as shown, and the campaign's `timezone`.";
    error WINDOW = "window":
        "Outside its window nothing leaves, so it has to be clear when that is, and it has to open.",
        "Write hours such as `09:00-20:00`, with `days`, `except` and `zone` as shown, and the campaign's `timezone`.";
    error UNTIL = "until":
        "Nothing leaves after it, so it has to be clear when that is.",
        "Write a date and a time such as `2026-12-07 20:00`, with the campaign's `timezone`, or a time such as `12h`.";
    error FILE_NAME = "file-name":
        "The name of a file can have a date in it, and is no text.", "Write `{{ today }}` in it, or nothing in braces.";
    error PATH_OUTSIDE = "path-outside":
        "An assistant opens files of the folder of campaigns alone.",
        "Move the file into that folder, or have a person run the campaign from the command line.";
    error UNKNOWN_REGION = "unknown-region":
        "National numbers are read as those of the region.", "Write the ISO 3166 code of a country, such as `UA`.";
    error UNKNOWN_ENCODING = "unknown-encoding":
        "A list in another encoding than it is read in has garbage for names.",
        "Write the name of an encoding, such as `windows-1251`, or leave the key out.";
    error UNKNOWN_DELIMITER = "unknown-delimiter":
        "One sign stands between the cells of a list.", "Write that sign, or `tab`, or leave the key out.";
    error UNKNOWN_CHANNEL = "unknown-channel":
        "Only the gateway's channels can be tried.", "Write one of the channels that are named.";
    error CROWDED_ITEM = "crowded-item":
        "Each item of `channels` is one channel, so that their order is clear.",
        "Begin each channel with its own dash.";
    error REPEATED_CHANNEL = "repeated-channel":
        "A channel is tried once.", "Remove one of them.";
    error STANDS_ALONE = "stands-alone":
        "Beside a lookup or a code call no other channel can be tried.",
        "Give it a campaign of its own.";
    error SHARES = "shares":
        "Everybody gets one variant or is held out, so the shares are all of the people.",
        "Write shares that make 100% together, with `holdout`.";
    error NOT_CARRIED = "not-carried":
        "A message of these channels has no place for this key, so it would be dropped in silence.",
        "Remove it, or use channels whose message carries it.";
    error SHORT_LINK = "short-link":
        "One `short_link` serves all channels of a message.", "Make them agree.";
    error FIELD_COLLISION = "field-collision":
        "A property that is given twice would be one that nobody meant.",
        "Use the channel's own keys; `fields` is for properties that are not known here.";
    error VIBER_TYPE = "viber-type":
        "The form of a message says which keys it has.", "Add or remove the key that is named, or change the form.";
    error NEVER_RESENT = "never-resent":
        "A second code or call harms, and an asynchronous queue may only be slow.",
        "Write `hold`, and decide about rows in doubt by `campaign resolve`.";
    error NOTIFY = "notify":
        "It has to be clear how somebody is told.", "Write `url` with `preset` or `body`, or `command`.";
    note NOTIFY_COMMAND = "notify-command":
        "An assistant could write any program into a campaign file, so the connector starts none from there.",
        "Use `notify: { url: … }`, or `policy: { notify: { command: … } }` in the profile.";
    error LOOKS_LIKE_A_FILE = "looks-like-a-file":
        "The name of a file would be sent as the text.", "Write `{ file: NAME }`.";
    error TEXT_FILE = "text-file":
        "A text file has to be beside the campaign or in `templates/`.", "Check its name and where it is.";
    error EMPTY_TEXT = "empty-text":
        "An empty text is charged, or refused.", "Write a text.";
    warning SINGLE_BRACES = "single-braces":
        "A name in single braces is sent as it stands.", "Write `{{ name }}` if the recipient's value is meant.";
    warning FOREIGN_PLACEHOLDER = "foreign-placeholder":
        "A name in the signs of another program (`%name%`, `[name]`, `<name>`, `#name#`, `*|NAME|*`, `${name}`, `{!name}`) is sent as it stands.",
        "Write `{{ name }}` if the recipient's value is meant.";
    error NAME_CLASH = "name-clash":
        "A name that means two things would put the wrong value into texts.", "Give one of them another name.";
    error VARIABLE_NAME = "variable-name":
        "Texts can only use names of Latin letters, digits and `_` that are no words of their language.",
        "Choose another name, such as `first_name`.";
    error TEMPLATE_IN_CONSTANT = "template-in-constant":
        "Constants are used as they are; braces in them would be sent.",
        "Put the braces into the texts that use it.";
}
