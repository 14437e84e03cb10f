//! Words for an unfinished run whose inputs changed since it began.

use crate::runs::EarlierEdition;

/// Why a run does not go on with other inputs, and the ways on; what is of no use any more comes to its end first.
pub(super) fn inputs_changed(run: &str, changes: &[String], edition: Option<&EarlierEdition>, stop: &str) -> String {
    let changes = changes.join(", ");
    let Some(EarlierEdition { unfinished, now, is_kept }) = edition else {
        return format!(
            "{run} is unfinished, and since it began these changed: {changes}; put them back to go on, or end it and begin \
             anew with `--accept-changes` (whoever has a message is skipped), or cancel the rows that \
             are left: `{stop}`"
        );
    };
    let named = |edition: &str| match edition {
        "" => "no edition".to_owned(),
        edition => format!("the edition `{edition}`"),
    };
    let accept = match is_kept {
        true => format!(
            "`--accept-changes` sends the earlier one to all on the list of now who have nothing of it, and the start after \
             that sends {} to them as well",
            named(now)
        ),
        false => "`--accept-changes` begins the one of now for those who have nothing of the earlier one, and the start after that sends \
                  it to the others as well"
            .to_owned(),
    };
    format!(
        "{run}, of {}, is unfinished; now it would be {}, and since it began these changed: {changes}. If nothing more of \
         the earlier one is to be sent: `{stop}`, then the same start again. To go on with it, put them back. {accept}",
        named(unfinished),
        named(now)
    )
}
