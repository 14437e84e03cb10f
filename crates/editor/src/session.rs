//! The session of an editor: its open documents, and the answers to its requests.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, CompletionItem, CompletionItemKind, CompletionList,
    CompletionTextEdit, Diagnostic, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    Documentation, Hover, HoverContents, Location, MarkupContent, MarkupKind, NumberOrString, Position,
    PublishDiagnosticsParams, TextDocumentPositionParams, TextEdit, Url, WorkspaceEdit,
};

use crate::DocumentKind;
use crate::completion::{Completion, CompletionKind, complete};
use crate::cursor::{TemplateCursor, TemplateSlot, YamlCursor, YamlOutline, YamlSlot, find_template_cursor};
use crate::drafts::{CheckedDraft, ListCheck, ListOutcome};
use crate::explanation::{Explanation, KnownNames, explain, explain_rule, find_rule, find_senders};
use crate::protocol::{ColumnUnit, is_shown_in_file, to_anchored_diagnostic, to_diagnostic};
use campaign_core::finding::{Finding, FixEdit, SourceText};
use campaign_manifest::{
    CampaignPath, CampaignPaths, GatewaySearch, PathScope, PathStep, UnsavedTexts, load_gateways, read_text_file,
};
use campaign_runs::{DraftCampaign, Profiles, find_campaigns_near_text, list_campaign_files};
use campaign_sandbox::load_scenario_within;

/// The maximum number of neighbouring campaigns that are searched for sender names.
const MAX_NEIGHBOURS: usize = 50;

/// The open documents of an editor, with the drafts of their campaigns and the published diagnostics.
pub struct EditorSession {
    profiles: Profiles,
    unit: ColumnUnit,
    clock: fn() -> Timestamp,
    documents: BTreeMap<PathBuf, OpenDocument>,
    drafts: BTreeMap<PathBuf, CheckedDraft>,
    /// The campaigns that use each open template.
    template_users: BTreeMap<PathBuf, Vec<PathBuf>>,
    published: BTreeMap<PathBuf, Vec<Diagnostic>>,
}

struct OpenDocument {
    uri: Url,
    text: Arc<str>,
    version: i32,
    kind: DocumentKind,
}

impl EditorSession {
    /// A session without documents.
    pub fn new(profiles: Profiles, unit: ColumnUnit, clock: fn() -> Timestamp) -> Self {
        Self {
            profiles,
            unit,
            clock,
            documents: BTreeMap::new(),
            drafts: BTreeMap::new(),
            template_users: BTreeMap::new(),
            published: BTreeMap::new(),
        }
    }

    /// Adds a document. Documents that are not files are ignored.
    pub fn open(&mut self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        let Ok(path) = document.uri.to_file_path() else { return };
        let kind = self.detect_kind(&path, &document.text);
        let (text, version) = (Arc::from(document.text), document.version);
        self.documents.insert(path, OpenDocument { uri: document.uri, text, version, kind });
        self.forget_files();
    }

    /// Changes a document.
    pub fn change(&mut self, params: DidChangeTextDocumentParams) {
        let Ok(path) = params.text_document.uri.to_file_path() else { return };
        let unit = self.unit;
        let Some(document) = self.documents.get_mut(&path) else { return };
        let mut text = document.text.to_string();
        for change in params.content_changes {
            text = unit.apply_change(&text, change.range, &change.text);
        }
        (document.text, document.version) = (Arc::from(text.as_str()), params.text_document.version);
        let kind = self.detect_kind(&path, &text);
        if let Some(document) = self.documents.get_mut(&path) {
            document.kind = kind;
        }
    }

    /// Removes a document.
    pub fn close(&mut self, params: &DidCloseTextDocumentParams) {
        if let Ok(path) = params.text_document.uri.to_file_path() {
            self.documents.remove(&path);
            self.forget_files();
        }
    }

    /// Discards the cached state of files on disk after some of them changed.
    pub fn forget_files(&mut self) {
        self.drafts.values_mut().for_each(CheckedDraft::invalidate_list);
        self.template_users.clear();
    }

    /// Stops all list checks.
    pub fn stop_list_checks(&mut self) {
        self.drafts.values_mut().for_each(CheckedDraft::stop_list_check);
    }

    fn detect_kind(&self, path: &Path, text: &str) -> DocumentKind {
        let is_profiles = |explicit: &PathBuf| std::path::absolute(explicit).is_ok_and(|explicit| explicit == path);
        match self.profiles.explicit.as_ref().is_some_and(is_profiles) {
            true => DocumentKind::Gateways,
            false => DocumentKind::detect(path, text),
        }
    }

    /// The locations of profiles, with the texts of the open documents.
    fn current_profiles(&self) -> Profiles {
        let texts = self.documents.iter().filter(|(_, document)| {
            matches!(document.kind, DocumentKind::Campaign | DocumentKind::Gateways | DocumentKind::Template)
        });
        let unsaved = UnsavedTexts::new(texts.map(|(path, document)| (path.clone(), Arc::clone(&document.text))));
        Profiles { unsaved, ..self.profiles.clone() }
    }

    /// Checks the open documents, and returns the list checks that are needed.
    pub fn refresh(&mut self) -> Vec<ListCheck> {
        let (profiles, now) = (self.current_profiles(), (self.clock)());
        self.update_template_users(&profiles, now);
        let open = self.documents.iter().filter(|(_, document)| document.is_written_campaign()).map(|(path, _)| path);
        let needed_paths: BTreeSet<PathBuf> = open.chain(self.template_users.values().flatten()).cloned().collect();
        self.drafts.retain(|path, _| needed_paths.contains(path));
        let mut checks = Vec::new();
        for path in needed_paths {
            let draft = Arc::new(DraftCampaign::load(&path, &profiles, now));
            let checked_draft =
                self.drafts.entry(path.clone()).or_insert_with(|| CheckedDraft::new(Arc::clone(&draft)));
            checks.extend(checked_draft.update(&path, draft));
        }
        checks
    }

    /// Stores the result of a list check.
    pub fn accept(&mut self, outcome: ListOutcome) {
        if let Some(draft) = self.drafts.get_mut(&outcome.file) {
            draft.accept(outcome);
        }
    }

    /// Records the campaigns that use the open templates.
    fn update_template_users(&mut self, profiles: &Profiles, now: Timestamp) {
        let is_template = |document: &OpenDocument| document.kind == DocumentKind::Template;
        let open: Vec<PathBuf> = self
            .documents
            .iter()
            .filter(|(path, document)| is_template(document) && !self.template_users.contains_key(*path))
            .map(|(path, _)| path.clone())
            .collect();
        let campaigns: Vec<PathBuf> = self
            .documents
            .iter()
            .filter(|(_, document)| document.is_written_campaign())
            .map(|(path, _)| path.clone())
            .collect();
        for template in open {
            let candidates: BTreeSet<PathBuf> =
                find_campaigns_near_text(&template).into_iter().chain(campaigns.iter().cloned()).collect();
            let uses = |campaign: &PathBuf| DraftCampaign::load(campaign, profiles, now).uses_text(&template);
            self.template_users.insert(template.clone(), candidates.into_iter().filter(uses).collect());
        }
    }

    /// The diagnostics that changed since the last call.
    pub fn take_diagnostics(&mut self) -> Vec<PublishDiagnosticsParams> {
        let current = self.collect_diagnostics();
        let paths: BTreeSet<&PathBuf> = current.keys().chain(self.published.keys()).collect();
        let changed = paths.into_iter().filter(|path| current.get(*path) != self.published.get(*path));
        let changed = changed.filter_map(|path| {
            let document = self.documents.get(path);
            let uri = document.map(|document| document.uri.clone()).or_else(|| Url::from_file_path(path).ok())?;
            let diagnostics = current.get(path).cloned().unwrap_or_default();
            Some(PublishDiagnosticsParams { uri, diagnostics, version: document.map(|document| document.version) })
        });
        let changed = changed.collect();
        self.published = current;
        changed
    }

    /// The current diagnostics of the open documents and their campaigns, by file.
    fn collect_diagnostics(&self) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
        // An open document without findings is published too, so that the editor knows that it was checked.
        let mut all: BTreeMap<PathBuf, Vec<Diagnostic>> =
            self.documents.keys().map(|path| (path.clone(), Vec::new())).collect();
        let mut add = |path: &Path, diagnostic: Diagnostic| {
            let file_diagnostics = all.entry(path.to_owned()).or_default();
            if !file_diagnostics.contains(&diagnostic) {
                file_diagnostics.push(diagnostic);
            }
        };
        for (path, document) in &self.documents {
            self.check_document(path, document).iter().for_each(|finding| add(path, to_diagnostic(finding, self.unit)));
        }
        let texts = self.source_texts();
        for (campaign, draft) in &self.drafts {
            let is_open = self.documents.contains_key(campaign);
            let anchor = draft.readable_draft().and_then(DraftCampaign::locate_list);
            for finding in draft.findings(&texts) {
                let place = finding.place.as_ref().map(|place| place.source.path());
                match place.filter(|place| is_shown_in_file(place)) {
                    // Open profiles were checked above.
                    Some(place) if self.is_open_as(place, DocumentKind::Gateways) => {}
                    Some(place) if is_open || self.documents.contains_key(place) => {
                        add(place, to_diagnostic(&finding, self.unit));
                    }
                    None if is_open => add(campaign, to_anchored_diagnostic(&finding, anchor.as_ref(), self.unit)),
                    Some(_) | None => {}
                }
            }
        }
        all
    }

    fn is_open_as(&self, path: &Path, kind: DocumentKind) -> bool {
        self.documents.get(path).is_some_and(|document| document.kind == kind)
    }

    /// The findings about a document that is not a campaign.
    fn check_document(&self, path: &Path, document: &OpenDocument) -> Vec<Finding> {
        if document.is_blank() {
            return Vec::new();
        }
        let unsaved = UnsavedTexts::new([(path.to_owned(), Arc::clone(&document.text))]);
        match document.kind {
            DocumentKind::Gateways => {
                let search = GatewaySearch { explicit: Some(path.to_owned()), unsaved, ..GatewaySearch::default() };
                let loaded = load_gateways(&search);
                let profile_findings = loaded.value.or(loaded.draft).map(|gateways| gateways.findings());
                [loaded.findings, profile_findings.unwrap_or_default()].concat()
            }
            DocumentKind::Scenario => load_scenario_within(&CampaignPath::in_editor(path, &unsaved)).findings,
            DocumentKind::Campaign | DocumentKind::Template | DocumentKind::Other => Vec::new(),
        }
    }

    fn source_texts(&self) -> BTreeMap<PathBuf, SourceText> {
        let texts = self.documents.iter();
        texts.map(|(path, document)| (path.clone(), SourceText::new(path, document.text.to_string()))).collect()
    }

    /// Explains the findings at a position, and the key, value or name there.
    pub fn hover(&mut self, params: &TextDocumentPositionParams) -> Option<Hover> {
        let (path, cursor) = self.find_cursor(params)?;
        let names = self.collect_names(&path);
        let document = self.documents.get(&path)?;
        let explained = explain(document.kind, &document.text, cursor, &names);
        let (position, published) = (params.position, self.published.get(&path));
        let at_position = published.into_iter().flatten().filter(|diagnostic| contains(&diagnostic.range, position));
        let mut rules: Vec<&str> = at_position.clone().filter_map(rule_id).collect();
        rules.dedup();
        let rule_texts = rules.into_iter().filter_map(find_rule).map(explain_rule);
        let range = explained.as_ref().map(|Explanation { span, .. }| self.unit.to_range(&document.text, span));
        let range = range.or_else(|| at_position.map(|diagnostic| diagnostic.range).next());
        let texts: Vec<String> = rule_texts.chain(explained.map(|explained| explained.text)).collect();
        let contents = HoverContents::Markup(markdown(texts.join("\n\n---\n\n")));
        (!texts.is_empty()).then_some(Hover { contents, range })
    }

    /// The completions at a position.
    pub fn complete(&mut self, params: &TextDocumentPositionParams) -> Option<CompletionList> {
        let (path, cursor) = self.find_cursor(params)?;
        let names = self.collect_names(&path);
        let OpenDocument { text, kind, .. } = self.documents.get(&path)?;
        let completions = complete(*kind, text, cursor, &names)?;
        let range = self.unit.to_range(text, &completions.word);
        let items =
            completions.items.into_iter().enumerate().map(|(index, item)| to_item(index, item, range)).collect();
        Some(CompletionList { is_incomplete: false, items })
    }

    /// The fixes of the findings in a range. The fixes apply to the text as of the last [`Self::refresh`].
    pub fn collect_fixes(&self, params: &CodeActionParams) -> Vec<CodeAction> {
        let uri = &params.text_document.uri;
        let Ok(path) = uri.to_file_path() else { return Vec::new() };
        let Some(document) = self.documents.get(&path) else { return Vec::new() };
        let texts = self.source_texts();
        let campaign_findings = self.drafts.values().flat_map(|draft| draft.findings(&texts));
        let mut actions: Vec<CodeAction> = Vec::new();
        for finding in self.check_document(&path, document).into_iter().chain(campaign_findings) {
            let Some((place, fix)) = finding.placed_fix().filter(|(place, _)| place.source.path() == path) else {
                continue;
            };
            let range = self.unit.locate(place);
            if range.start > params.range.end || range.end < params.range.start {
                continue;
            }
            let to_edit =
                |edit: &FixEdit| TextEdit::new(self.unit.to_range(place.source.text(), &edit.span), edit.text.clone());
            let edits = fix.edits.iter().map(to_edit).collect();
            let edit = WorkspaceEdit { changes: Some([(uri.clone(), edits)].into()), ..WorkspaceEdit::default() };
            let action = CodeAction {
                title: fix.title.clone(),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![to_diagnostic(&finding, self.unit)]),
                edit: Some(edit),
                is_preferred: Some(true),
                ..CodeAction::default()
            };
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
        actions
    }

    /// The location of the file or profile that is named at a position.
    pub fn find_definition(&mut self, params: &TextDocumentPositionParams) -> Option<Location> {
        let (path, cursor) = self.find_cursor(params)?;
        let document = self.documents.get(&path)?;
        if let Some(TemplateCursor { slot, word }) = find_template_cursor(&document.text, cursor) {
            let name = document.text.get(word).filter(|_| slot == TemplateSlot::Include)?.to_owned();
            return self.find_template(&path, &name).and_then(|file| self.locate_file(&file));
        }
        if document.kind != DocumentKind::Campaign {
            return None;
        }
        let YamlCursor { path: keys, slot, word, .. } = YamlOutline::read(&document.text, cursor).cursor?;
        let name = document.text.get(word)?.trim_matches(['"', '\'']).to_owned();
        let keys: Vec<&str> = keys.iter().filter_map(step_name).collect();
        match keys.as_slice() {
            _ if slot == YamlSlot::Key && !matches!(keys.as_slice(), [.., "suppress"]) => None,
            ["gateway"] => self.locate_profile(&path, &name),
            ["recipients", "file"] => self.locate_file(self.drafts.get(&path)?.readable_draft()?.list_file()?.path()),
            ["channels" | "variants", .., "file"] => {
                self.find_template(&path, &name).and_then(|file| self.locate_file(&file))
            }
            ["recipients", "suppress" | "consent", ..] | ["data", _, "file"] => {
                let paths = CampaignPaths::new(&path, PathScope::Anywhere);
                self.locate_file(paths.resolve_path(&name).ok()?.path())
            }
            _ => None,
        }
    }

    /// The document that contains a position, and the byte at that position.
    fn find_cursor(&self, params: &TextDocumentPositionParams) -> Option<(PathBuf, usize)> {
        let path = params.text_document.uri.to_file_path().ok()?;
        let document = self.documents.get(&path)?;
        let cursor = self.unit.to_byte(&document.text, params.position);
        Some((path, cursor))
    }

    /// The campaign whose names a document uses: the document itself, or the first campaign that uses the template.
    fn find_campaign(&self, path: &Path) -> Option<PathBuf> {
        match self.template_users.get(path) {
            Some(template_users) => template_users.iter().find(|campaign| self.drafts.contains_key(*campaign)).cloned(),
            None => Some(path.to_owned()),
        }
    }

    /// The names that a document can use.
    fn collect_names(&mut self, path: &Path) -> KnownNames {
        let mut names = KnownNames { senders: self.find_senders(path), ..KnownNames::default() };
        if self.is_open_as(path, DocumentKind::Campaign)
            && let Ok(gateways) = self.current_profiles().load(Some(path))
        {
            let profiles = gateways.profiles().iter();
            names.gateways = profiles.map(|profile| (profile.name.clone(), profile.base_url.to_string())).collect();
            let valid_names: Vec<String> = names.gateways.iter().map(|(name, _)| name.clone()).collect();
            let others = gateways.profile_names().filter(|name| !valid_names.iter().any(|valid| valid == name));
            names.gateways.extend(others.map(|name| (name.to_owned(), "a profile with errors".to_owned())));
        }
        let Some(draft) = self.find_campaign(path).and_then(|campaign| self.drafts.get_mut(&campaign)) else {
            return names;
        };
        names.columns = draft.columns().to_vec();
        if let Some(campaign) = draft.readable_draft().and_then(DraftCampaign::campaign) {
            names.constants.clone_from(&campaign.brief.vars);
            names.tables.clone_from(&campaign.brief.tables);
        }
        names
    }

    /// The sender names in this document and in the campaigns of its folder.
    fn find_senders(&self, path: &Path) -> Vec<String> {
        let Some(document) = self.documents.get(path).filter(|document| document.kind == DocumentKind::Campaign) else {
            return Vec::new();
        };
        let mut senders = find_senders(&document.text);
        let near = path.parent().and_then(|folder| list_campaign_files(folder).ok()).unwrap_or_default();
        for text in near.iter().take(MAX_NEIGHBOURS).filter_map(|file| read_text_file(file).ok()) {
            let new: Vec<String> = find_senders(&text).into_iter().filter(|name| !senders.contains(name)).collect();
            senders.extend(new);
        }
        senders
    }

    /// The text file with this name in the folders of the document's campaign.
    fn find_template(&self, path: &Path, name: &str) -> Option<PathBuf> {
        let campaign = self.drafts.get(&self.find_campaign(path)?)?.readable_draft()?.campaign()?;
        campaign.folders.read_text(name).ok().map(|(file, _)| file)
    }

    /// The location of the beginning of a file, if the file exists.
    fn locate_file(&self, path: &Path) -> Option<Location> {
        let is_found = CampaignPath::anywhere(path).is_present() || self.documents.contains_key(path);
        let uri = self.documents.get(path).map(|document| document.uri.clone());
        let uri = uri.or_else(|| Url::from_file_path(path).ok()).filter(|_| is_found)?;
        Some(Location::new(uri, lsp_types::Range::default()))
    }

    /// The location of a profile in the profiles file that applies to a campaign.
    fn locate_profile(&self, campaign: &Path, name: &str) -> Option<Location> {
        let gateways = self.current_profiles().load(Some(campaign)).ok()?;
        let file = std::path::absolute(gateways.file()?).ok()?;
        let text = match self.documents.get(&file) {
            Some(document) => document.text.to_string(),
            None => read_text_file(&file).ok()?,
        };
        let outline = YamlOutline::read(&text, usize::MAX);
        let is_profile =
            |span: &&Range<usize>| text.get((*span).clone()).is_some_and(|key| key.trim_matches(['"', '\'']) == name);
        let at_top = outline.keys.iter().filter(|key| key.parent.is_empty()).map(|key| &key.span);
        let range = self.unit.to_range(&text, at_top.clone().find(is_profile)?);
        Some(Location { range, ..self.locate_file(&file)? })
    }
}

impl OpenDocument {
    /// Whether the document contains only comments and blank lines.
    fn is_blank(&self) -> bool {
        self.text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    }

    /// Whether the document is a campaign with at least one key. An empty YAML file gets no findings, because its
    /// author has only begun.
    fn is_written_campaign(&self) -> bool {
        self.kind == DocumentKind::Campaign && !self.is_blank()
    }
}

fn step_name(step: &PathStep) -> Option<&str> {
    match step {
        PathStep::Key(name) => Some(name),
        PathStep::Item(_) => None,
    }
}

fn rule_id(diagnostic: &Diagnostic) -> Option<&str> {
    match diagnostic.code.as_ref()? {
        NumberOrString::String(id) => Some(id),
        NumberOrString::Number(_) => None,
    }
}

/// Whether a range contains a position. The end of the range counts.
fn contains(range: &lsp_types::Range, position: Position) -> bool {
    range.start <= position && position <= range.end
}

fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

fn to_item(index: usize, item: Completion, range: lsp_types::Range) -> CompletionItem {
    let kind = match item.kind {
        CompletionKind::Key => CompletionItemKind::PROPERTY,
        CompletionKind::Value => CompletionItemKind::ENUM_MEMBER,
        CompletionKind::Column => CompletionItemKind::FIELD,
        CompletionKind::Constant => CompletionItemKind::CONSTANT,
        CompletionKind::Filter => CompletionItemKind::FUNCTION,
        CompletionKind::Tag => CompletionItemKind::KEYWORD,
    };
    CompletionItem {
        label: item.label,
        kind: Some(kind),
        documentation: Some(Documentation::MarkupContent(markdown(item.doc))),
        // Without this text, editors sort completions by their labels.
        sort_text: Some(format!("{index:04}")),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(range, item.insert))),
        ..CompletionItem::default()
    }
}

#[cfg(test)]
mod tests;
