//! Hashes of a run's frozen texts for the rows of a list, which identify a row in another list.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::FrozenInputs;
use crate::audience::{Chunk, Number, RecordRef};
use crate::check::{CompiledCampaign, Composed, Composer, TextHash, Texts, cores, ordered, prepare};
use crate::domain::{MessageId, Phone, Row};
use crate::finding::Finding;
use crate::gateway::{EncodedOperation, OperationForm};
use crate::manifest::Brief;

/// Compiles the frozen texts of a run for a list.
///
/// # Errors
/// When the texts do not fit the list, or the list has problems.
pub fn compile_frozen<R: Read>(frozen: &FrozenInputs, list: (R, &Path)) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    compile(&frozen.brief, frozen, list)
}

/// The same for all rows of the list, without `where`, which selects recipients and does not change texts.
///
/// # Errors
/// As for [`compile_frozen`].
pub fn compile_for_everybody<R: Read>(
    frozen: &FrozenInputs,
    list: (R, &Path),
) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    compile(&Brief { condition: None, ..frozen.brief.clone() }, frozen, list)
}

fn compile<R: Read>(
    brief: &Brief,
    frozen: &FrozenInputs,
    list: (R, &Path),
) -> Result<CompiledCampaign<R>, Vec<Finding>> {
    let mut load = |name: &str| {
        let found = frozen.includes.iter().find(|(include, _)| include == name);
        found
            .map(|(_, source)| source.clone())
            .ok_or_else(|| format!("the stored inputs do not contain the template `{name}`"))
    };
    let texts = Texts { places: None, trims_cells: frozen.trims_cells, load: &mut load };
    prepare(brief, list, texts, &frozen.today).map_err(|unprepared| unprepared.findings)
}

/// Gives the number of each row of a list that has one, in the order of the rows, with the hash of its text if it has a message.
///
/// # Errors
/// When the list cannot be read to its end.
pub fn each_text<R: Read + Send>(
    prepared: CompiledCampaign<R>,
    mut take: impl FnMut(Row, Phone, Option<TextHash>),
) -> Result<(), Box<Finding>> {
    let CompiledCampaign { mut reader, recipe, .. } = prepared;
    let forms: Vec<OperationForm> = recipe.sources().map(|sources| OperationForm::of(&sources)).collect();
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
        let numbered = chunk.iter().filter_map(|record| Some((record, recipe.phone(record)?)));
        numbered.map(|(record, phone)| (record.row, phone, text_of(composer, &forms, record))).collect()
    };
    ordered(
        cores(),
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
fn text_of(composer: &mut Composer<'_>, forms: &[OperationForm], record: RecordRef<'_>) -> Option<TextHash> {
    let Composed { number: Number { phone, .. }, arm, message } = composer.compose(record).ok()?;
    // Each run gives a row another identifier, so an unused one replaces it.
    let id = MessageId::new(0)?;
    Some(EncodedOperation::filled(record.row, (id, phone), &forms[arm], |place| message.text(place)).digest)
}
