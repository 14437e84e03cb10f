//! Fuzz target for opt-outs in replies: changes of a reply that must not change its meaning, and changes that must.

use campaign_core::domain::{MAX_OPT_OUT_WORDS, OptOutWords, Purpose, ReplyReading};

/// Commands that opt out in any reply.
const COMMANDS: [&str; 5] = ["stop", "стоп", "unsubscribe", "відписатися", "отписаться"];

/// Checks how these bytes are classified as a reply.
pub(super) fn check(data: &[u8]) {
    let Ok(reply) = std::str::from_utf8(data) else { return };
    let built_in = OptOutWords::default();
    let marketing = built_in.classify_reply(reply, Purpose::Marketing);
    let service = built_in.classify_reply(reply, Purpose::Service);
    if let ReplyReading::OptOut(phrase) = &service {
        assert_eq!(marketing, ReplyReading::OptOut(phrase.clone()), "{reply:?} opts out of service messages only");
    }
    assert_eq!(service.may_opt_out(), marketing.may_opt_out(), "{reply:?} is hidden from one of the two");
    if COMMANDS.contains(&reply.trim().to_lowercase().as_str()) {
        assert!(matches!(service, ReplyReading::OptOut(_)), "{reply:?} is a command, but {service:?}");
    }
    let spaced = format!("  {} \n", reply.replace(' ', "  "));
    assert_eq!(
        built_in.classify_reply(&spaced, Purpose::Marketing),
        marketing,
        "spaces change the meaning of {reply:?}"
    );
    if matches!(marketing, ReplyReading::OptOut(_)) {
        let longer = format!("{reply} zqxvk");
        let reading = built_in.classify_reply(&longer, Purpose::Marketing);
        assert!(!matches!(reading, ReplyReading::OptOut(_)), "an unknown word is ignored in {longer:?}");
    }
    check_further_words(reply, &marketing);
}

/// Checks that a reply opts out or in if it is a further word.
fn check_further_words(reply: &str, built_in: &ReplyReading<'_>) {
    let count = OptOutWords::count_words(reply);
    let opt_outs = OptOutWords::default().with_words([reply.to_owned()]);
    let reading = opt_outs.classify_reply(reply, Purpose::Service);
    assert_eq!(matches!(reading, ReplyReading::OptOut(_)), count > 0 || matches!(built_in, ReplyReading::OptOut(_)));
    let opt_ins = OptOutWords::default().with_opt_in_words([reply.to_owned()]);
    let reading = opt_ins.classify_reply(reply, Purpose::Marketing);
    if (1..=MAX_OPT_OUT_WORDS).contains(&count) && !matches!(built_in, ReplyReading::OptOut(_) | ReplyReading::Unclear)
    {
        assert!(matches!(reading, ReplyReading::OptIn(_)), "{reply:?} does not opt in, but is the word: {reading:?}");
    }
    if matches!(built_in, ReplyReading::OptOut(_)) {
        assert!(matches!(reading, ReplyReading::OptOut(_)), "{reply:?} opts in, but is an opt-out");
    }
}
