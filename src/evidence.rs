//! `campaign find --evidence`: evidence for an authority about one phone number, on the terminal, as JSON or as a page.

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::args::{EvidenceArgs, LanguageName};
use super::context::Context;
use super::exit::CommandFailure;
use super::text::{StyledLine, StyledText, bad, caution, copyable, plain, strong};
use super::{exit, output, page_file, suppress};
use campaign_core::domain::Phone;
use campaign_core::finding::escape_to_one_line;
use campaign_engine::report::{
    EVIDENCE_FORMAT, Evidence, OptOutHistory, RecipientRecord, RowSelection, UnreadableRun, format_count, load_evidence,
};
use campaign_runs::PrivateKey;
use campaign_server::web::files::{EvidencePage, EvidenceSignature, render_evidence_page};

/// The form of a file of evidence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvidenceForm {
    Page,
    Json,
}

/// Evidence with its signature.
struct SignedEvidence {
    evidence: Evidence,
    signature: Option<EvidenceSignature>,
}

pub(super) async fn show_evidence(context: &Context, phone: Phone, args: &EvidenceArgs) -> Result<u8, CommandFailure> {
    let form = args.out.as_deref().map(choose_form).transpose()?;
    let key = args.key.as_deref().map(PrivateKey::read).transpose()?;
    let (person, opt_outs, evidence) = match context.open_existing_ledger().await? {
        None => {
            let (nobody, opt_outs) = (RecipientRecord::default(), OptOutHistory::default());
            let evidence = Evidence::from_messages(phone, &nobody, Vec::new(), &opt_outs, Timestamp::now());
            (nobody, opt_outs, evidence)
        }
        Some(ledger) => {
            let ledger = ledger.as_ref();
            let person = RecipientRecord::find(ledger, phone, &RowSelection::default()).await?;
            let opt_outs = OptOutHistory::load(ledger, phone).await?;
            let messages = load_evidence(ledger, &person).await?;
            let evidence = Evidence::from_messages(phone, &person, messages, &opt_outs, Timestamp::now());
            (person, opt_outs, evidence)
        }
    };
    let signature = key.map(|key| EvidenceSignature {
        key: key.public_key().map(|key| key.to_string()).unwrap_or_default(),
        signature: key.sign_evidence(&evidence.digest),
    });
    let signed = SignedEvidence { evidence, signature };
    // Evidence that omits a run must not look complete.
    let code = if person.unreadable.is_empty() { exit::SUCCESS } else { exit::STORAGE };
    if let Some((path, form)) = args.out.as_deref().zip(form) {
        let content = match form {
            EvidenceForm::Json => format!("{:#}\n", signed.to_json()),
            EvidenceForm::Page => {
                let page = EvidencePage { evidence: &signed.evidence, signature: signed.signature.as_ref() };
                render_evidence_page(&page, LanguageName::choose_language(args.lang))?
            }
        };
        page_file::write_page(path, &content)?;
    }
    if context.output.json {
        let mut object = signed.to_json();
        if let Some(path) = &args.out {
            object["file"] = json!(path);
        }
        object["exit"] = code.into();
        if code != exit::SUCCESS {
            object["error"] = "some runs could not be searched".into();
        }
        context.output.print_object(&object);
    } else {
        let mut text = describe_messages(phone, &signed, &person);
        suppress::add_opt_out_history(&mut text, &opt_outs);
        text.extend(describe_proof(&signed, &person));
        match &args.out {
            Some(path) => text.push(StyledLine::new([plain(format!("evidence: {}", path.display()))]).unbroken()),
            None => text.push(StyledLine::next_step(
                context.output.command(format!("find +{phone} --evidence --out evidence.html")),
            )),
        }
        context.output.print_result(text);
    }
    Ok(code)
}

/// Chooses the format of a file by its extension, if the file can be written.
fn choose_form(path: &Path) -> Result<EvidenceForm, CommandFailure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("html" | "htm") => page_file::check_page_path(path).map(|()| EvidenceForm::Page),
        Some("json") => {
            let what = "evidence written by campaign";
            page_file::check_output_path(path, EVIDENCE_FORMAT, what).map(|()| EvidenceForm::Json)
        }
        _ => Err(CommandFailure::invalid(format!("`{}` must end in `.html` or `.json`", path.display()))),
    }
}

impl SignedEvidence {
    fn to_json(&self) -> Value {
        let Self { evidence: Evidence { facts, digest, text: _ }, signature } = self;
        let mut object = json!({ "digest": format!("sha256:{digest}"), "evidence": facts });
        if let Some(EvidenceSignature { key, signature }) = signature {
            object["signature"] = json!({ "key": key, "signature": signature });
        }
        object
    }
}

/// Describes the messages to a number.
fn describe_messages(phone: Phone, signed: &SignedEvidence, person: &RecipientRecord) -> StyledText {
    let messages = signed.evidence.facts["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = StyledText::new();
    let found = match messages.len() as u64 {
        0 => "not in any run".to_owned(),
        rows => format!("{} in {}", format_count(rows, "row"), format_count(person.runs.len() as u64, "run")),
    };
    text.add_line(0, [strong(format!("+{phone}")), plain(format!(": {found}"))]);
    messages.iter().for_each(|message| add_message(&mut text, message));
    text
}

/// Describes the missing runs, the digest and the signature.
fn describe_proof(signed: &SignedEvidence, person: &RecipientRecord) -> StyledText {
    let mut text = StyledText::new();
    for UnreadableRun { run, why } in &person.unreadable {
        text.add_line(0, [bad(format!("cannot search {run}: ")), plain(why.as_str())]);
    }
    if person.purged > 0 {
        let runs = format_count(person.purged, "purged run");
        text.add_line(0, [caution("incomplete: "), plain(format!("the recipients of {runs} were erased"))]);
    }
    text.add_line(0, [plain("SHA-256: "), copyable(signed.evidence.digest.as_str())]);
    if let Some(EvidenceSignature { key, signature }) = &signed.signature {
        text.add_line(0, [plain("signature: "), copyable(signature.as_str())]);
        text.add_line(0, [plain("public key: "), copyable(key.as_str())]);
    }
    text
}

/// Adds a message with its consent and approvals.
fn add_message(text: &mut StyledText, message: &Value) {
    let cell = |name: &str| message[name].as_str().unwrap_or_default();
    let mut parts = vec![format!("row {}", message["row"]), cell("state").to_owned(), cell("purpose").to_owned()];
    for property in ["mandatory", "rehearsal"].into_iter().filter(|property| message[*property] == true) {
        parts.push(property.to_owned());
    }
    let times = [("sent", "sent_at"), ("delivered", "delivered_at")];
    for (what, name) in times.into_iter().filter(|(_, name)| !cell(name).is_empty()) {
        parts.push(format!("{what} {}", output::format_timestamp(cell(name))));
    }
    parts.extend(["reason", "error"].map(cell).into_iter().filter(|why| !why.is_empty()).map(str::to_owned));
    text.add_line(2, [strong(cell("run").to_owned()), plain(format!(" {}", parts.join(" · ")))]);
    let consent = match &message["consent"] {
        Value::Object(consent) => {
            let named = ["value", "at", "source", "wording"].map(|name| consent[name].as_str().unwrap_or_default());
            escape_to_one_line(&named.into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" · "))
        }
        _ => "none recorded".to_owned(),
    };
    text.add_line(4, [plain(format!("consent: {consent}"))]);
    for approval in message["approvals"].as_array().into_iter().flatten() {
        let (by, at) = (approval["by"].as_str().unwrap_or_default(), approval["at"].as_str().unwrap_or_default());
        let by = escape_to_one_line(by);
        text.add_line(4, [plain(format!("approved by {by}, {}", output::format_timestamp(at)))]);
    }
}
