//! Hashes of a run's frozen texts for the rows of a list, which identify a row in another list.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::FrozenInputs;
use crate::audience::{Chunk, RecordRef, ValidNumber};
use crate::check::{
    CompiledCampaign, ComposedMessage, Composer, TextHash, TextInputs, count_cores, prepare_campaign, process_in_order,
};
use crate::domain::{MessageId, Phone, Row};
use crate::finding::Finding;
use crate::gateway::{EncodedOperation, OperationForm};
use crate::manifest::CampaignBrief;

/// Compiles the frozen texts of a run for a list.
///
/// # Errors
/// When the texts do not fit the list, or the list has problems.
pub fn compile_frozen<R: Read>(frozen: &FrozenInputs, list: (R, &Path)) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    compile_brief(&frozen.brief, frozen, list)
}

/// The same for all rows of the list, without `where`, which selects recipients and does not change texts.
///
/// # Errors
/// As for [`compile_frozen`].
pub fn compile_without_condition<R: Read>(
    frozen: &FrozenInputs,
    list: (R, &Path),
) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    compile_brief(&CampaignBrief { condition: None, ..frozen.brief.clone() }, frozen, list)
}

fn compile_brief<R: Read>(
    brief: &CampaignBrief,
    frozen: &FrozenInputs,
    list: (R, &Path),
) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    let mut load = |name: &str| {
        let found = frozen.includes.iter().find(|(include, _)| include == name);
        found
            .map(|(_, source)| source.clone())
            .ok_or_else(|| format!("the stored inputs do not contain the template `{name}`"))
    };
    let texts = TextInputs { places: None, trims_cells: frozen.trims_cells, load: &mut load };
    prepare_campaign(brief, list, texts, &frozen.today).map_err(|unprepared| unprepared.findings)
}

/// Gives the number of each row of a list that has one, in the order of the rows, with the hash of its text if it has a message.
///
/// # Errors
/// When the list cannot be read to its end.
pub fn for_each_text<R: Read + Send>(
    prepared: CompiledCampaign<R>,
    mut take: impl FnMut(Row, Phone, Option<TextHash>),
) -> Result<(), Box<Finding>> {
    let CompiledCampaign { mut reader, recipe, .. } = prepared;
    let forms: Vec<OperationForm> =
        recipe.text_sources().map(|sources| OperationForm::from_content(&sources)).collect();
    let mut damage = None;
    let read = || {
        let mut chunk = Chunk::new();
        match reader.read_chunk(&mut chunk) {
            Ok(true) => Some(chunk),
            Ok(false) => None,
            Err(finding) => {
                damage = Some(finding);
                None
            }
        }
    };
    let hash = |composer: &mut Composer<'_>, chunk: Chunk| -> Vec<(Row, Phone, Option<TextHash>)> {
        let numbered = chunk.iter().filter_map(|record| Some((record, recipe.parse_phone(record)?)));
        numbered.map(|(record, phone)| (record.row, phone, hash_text(composer, &forms, record))).collect()
    };
    process_in_order(
        count_cores(),
        read,
        || recipe.composer(),
        hash,
        |texts| {
            texts.into_iter().for_each(|(row, phone, text)| take(row, phone, text));
            ControlFlow::Continue(())
        },
    );
    damage.map_or(Ok(()), Err)
}

/// The hash of the text of a row. `None` if the row has no message.
fn hash_text(composer: &mut Composer<'_>, forms: &[OperationForm], record: RecordRef<'_>) -> Option<TextHash> {
    let ComposedMessage { number: ValidNumber { phone, .. }, arm, message } = composer.compose(record).ok()?;
    // Each run gives a row another identifier, so an unused one replaces it.
    let id = MessageId::new(0)?;
    Some(EncodedOperation::from_form(record.row, (id, phone), &forms[arm], |place| message.text(place)).digest)
}
