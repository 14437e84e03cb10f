//! Tests of an editor session with a campaign, its list and templates, and a profile.

use std::fs;

use lsp_types::{
    TextDocumentContentChangeEvent, TextDocumentIdentifier, TextDocumentItem, VersionedTextDocumentIdentifier,
};

use super::*;

const CAMPAIGN: &str = "\
gateway: main
recipients:
  file: list.csv
vars: { shop: Olena }
channels:
  - sms:
      signature: Shop
      message: { file: sms.txt }
purpose: service
";
const GATEWAYS: &str = "# profiles\nmain:\n  base_url: http://127.0.0.1:9\n  api_key: { env: NOBODY_HAS_IT }\n";
const LIST: &str = "phone,plan\n+380500000001,gold\n+380500000002,basic\n";

struct Editor {
    folder: tempfile::TempDir,
    session: EditorSession,
}

impl Editor {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("sale.yaml", CAMPAIGN),
            ("gateways.yaml", GATEWAYS),
            ("list.csv", LIST),
            ("sms.txt", "Hi {{ plan }} {% include \"end.txt\" %}"),
            ("end.txt", "from {{ shop }}"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let clock = || "2026-12-01T12:00:00Z".parse().unwrap();
        Self { folder, session: EditorSession::new(Profiles::default(), ColumnUnit::Utf16, clock) }
    }

    fn uri(&self, name: &str) -> Url {
        Url::from_file_path(self.folder.path().join(name)).unwrap()
    }

    fn open(&mut self, name: &str, text: &str) {
        let text_document = TextDocumentItem::new(self.uri(name), "yaml".into(), 1, text.into());
        self.session.open(DidOpenTextDocumentParams { text_document });
    }

    fn change(&mut self, name: &str, text: &str) {
        let text_document = VersionedTextDocumentIdentifier::new(self.uri(name), 2);
        let change = TextDocumentContentChangeEvent { range: None, range_length: None, text: text.into() };
        self.session.change(DidChangeTextDocumentParams { text_document, content_changes: vec![change] });
    }

    /// Checks everything and returns the diagnostics that changed, except notes: file, line from 1, rule.
    fn check(&mut self) -> Vec<(String, u32, String)> {
        for check in self.session.refresh() {
            self.session.accept(check.run().expect("the check is not stopped"));
        }
        self.take_changed_diagnostics()
    }

    fn take_changed_diagnostics(&mut self) -> Vec<(String, u32, String)> {
        let changed = self.session.take_diagnostics();
        let list_findings = |params: PublishDiagnosticsParams| {
            let name = params.uri.path_segments().unwrap().next_back().unwrap().to_owned();
            let diagnostics = params.diagnostics.into_iter();
            let without_notes = diagnostics
                .filter(|diagnostic| diagnostic.severity != Some(lsp_types::DiagnosticSeverity::INFORMATION));
            without_notes
                .map(|diagnostic| {
                    (name.clone(), diagnostic.range.start.line + 1, rule_id(&diagnostic).unwrap().to_owned())
                })
                .collect::<Vec<_>>()
        };
        changed.into_iter().flat_map(list_findings).collect()
    }

    /// The position parameters for the end of `needle` in a text.
    fn position_after(&self, name: &str, text: &str, needle: &str) -> TextDocumentPositionParams {
        let byte = text.find(needle).unwrap() + needle.len();
        let position = ColumnUnit::Utf16.to_position(text, byte);
        TextDocumentPositionParams::new(TextDocumentIdentifier::new(self.uri(name)), position)
    }

    fn completion_labels(&mut self, name: &str, text: &str, needle: &str) -> Vec<String> {
        let params = self.position_after(name, text, needle);
        let list = self.session.complete(&params);
        list.into_iter().flat_map(|list| list.items).map(|item| item.label).collect()
    }

    fn hover_text(&mut self, name: &str, text: &str, needle: &str) -> String {
        let params = self.position_after(name, text, needle);
        match self.session.hover(&params).map(|hover| hover.contents) {
            Some(HoverContents::Markup(markup)) => markup.value,
            _ => String::new(),
        }
    }

    /// The file and the line from 1 of a definition.
    fn definition(&mut self, name: &str, text: &str, needle: &str) -> Option<(String, u32)> {
        let params = self.position_after(name, text, needle);
        let found = self.session.find_definition(&params)?;
        Some((found.uri.path_segments()?.next_back()?.to_owned(), found.range.start.line + 1))
    }
}

fn expected_diagnostic(file: &str, line: u32, rule: &str) -> (String, u32, String) {
    (file.to_owned(), line, rule.to_owned())
}

#[test]
fn findings_are_updated_as_unsaved_text_changes() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    assert_eq!(editor.check(), []);
    editor.change("sale.yaml", &CAMPAIGN.replace("signature", "signatur"));
    assert!(editor.check().contains(&expected_diagnostic("sale.yaml", 7, "unknown-key")));
    editor.change("sale.yaml", CAMPAIGN);
    assert_eq!(editor.check(), []);
    let text_document = TextDocumentIdentifier::new(editor.uri("sale.yaml"));
    editor.change("sale.yaml", "name: [");
    assert!(!editor.check().is_empty());
    editor.session.close(&DidCloseTextDocumentParams { text_document });
    let cleared = editor.session.take_diagnostics();
    assert!(cleared.iter().all(|params| params.diagnostics.is_empty()), "{cleared:?}");
}

#[test]
fn mistake_in_a_template_is_shown_in_the_template() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    editor.open("end.txt", "from {{ shopp }}");
    assert_eq!(editor.check(), [expected_diagnostic("end.txt", 1, "unknown-variable")]);
    editor.change("end.txt", "from {{ shop }}");
    assert_eq!(editor.check(), []);
}

#[test]
fn open_template_is_checked_with_campaigns_in_its_folder() {
    let mut editor = Editor::new();
    editor.open("end.txt", "\nfrom {{ shop");
    let diagnostics = editor.check();
    assert_eq!(diagnostics.iter().map(|(file, line, _)| (file.as_str(), *line)).collect::<Vec<_>>(), [("end.txt", 2)]);
    editor.change("end.txt", "from {{ shopp }}");
    assert_eq!(editor.check(), [expected_diagnostic("end.txt", 1, "unknown-variable")]);
    assert!(editor.completion_labels("end.txt", "from {{ shopp }}", "{{ sh").contains(&"plan".to_owned()));
}

#[test]
fn list_finding_is_anchored_at_the_file_key() {
    let mut editor = Editor::new();
    fs::write(editor.folder.path().join("list.csv"), format!("{LIST}12,gold\n")).unwrap();
    editor.open("sale.yaml", CAMPAIGN);
    let diagnostics = editor.check();
    assert!(diagnostics.contains(&expected_diagnostic("sale.yaml", 3, "invalid-row")), "{diagnostics:?}");
}

#[test]
fn list_is_checked_once_per_text_and_again_after_a_save() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    let checks = editor.session.refresh();
    assert_eq!(checks.len(), 1);
    assert!(editor.session.refresh().is_empty(), "the check is running");
    editor.session.accept(checks[0].run().unwrap());
    assert!(editor.session.refresh().is_empty(), "the check is cached");
    editor.session.forget_files();
    assert_eq!(editor.session.refresh().len(), 1);
}

#[test]
fn check_stops_once_the_text_changes() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    let checks = editor.session.refresh();
    editor.change("sale.yaml", &CAMPAIGN.replace("Olena", "Ivan"));
    assert_eq!(editor.session.refresh().len(), 1);
    assert!(checks[0].run().is_none());
}

#[test]
fn list_check_finding_moves_with_its_line() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    editor.open("sms.txt", "Hi {{ plam }}");
    assert_eq!(editor.check(), [expected_diagnostic("sms.txt", 1, "unknown-variable")]);
    editor.change("sms.txt", "Hello\nHi {{ plam }}");
    editor.session.refresh();
    assert_eq!(editor.take_changed_diagnostics(), [expected_diagnostic("sms.txt", 2, "unknown-variable")]);
    editor.change("sms.txt", "Hello\nHi {{ plan }}");
    editor.session.refresh();
    assert_eq!(editor.take_changed_diagnostics(), []);
}

#[test]
fn profiles_and_scenarios_are_checked_without_a_campaign() {
    let mut editor = Editor::new();
    editor.open("gateways.yaml", "main:\n  base_url: x\n");
    editor.open("bad-day.yaml", "seed: 7\nspeed: fast\n");
    let diagnostics = editor.check();
    assert!(diagnostics.iter().any(|(file, line, _)| file == "gateways.yaml" && *line == 2), "{diagnostics:?}");
    assert!(diagnostics.iter().any(|(file, line, _)| file == "bad-day.yaml" && *line == 2), "{diagnostics:?}");
}

#[test]
fn unrelated_and_empty_documents_have_no_findings() {
    let mut editor = Editor::new();
    editor.open("ci.yaml", "name: CI\non: push\njobs: {}\n");
    editor.open("new.yaml", "# a campaign\n\n");
    editor.open("notes.txt", "{{ not a template");
    editor.session.open(DidOpenTextDocumentParams {
        text_document: TextDocumentItem::new("untitled:1".parse().unwrap(), "yaml".into(), 1, "name: [".into()),
    });
    assert_eq!(editor.check(), []);
    assert!(editor.completion_labels("new.yaml", "# a campaign\n\n", "campaign\n").contains(&"recipients".to_owned()));
}

#[test]
fn list_and_profile_names_are_completed_and_explained() {
    let mut editor = Editor::new();
    let text = CAMPAIGN.replace("{ file: sms.txt }", "\"Hi {{ plan }}\"");
    editor.open("sale.yaml", &text);
    editor.check();
    assert!(editor.completion_labels("sale.yaml", &text, "{{ p").contains(&"plan".to_owned()));
    assert!(editor.completion_labels("sale.yaml", &text, "gateway: m").contains(&"main".to_owned()));
    assert!(editor.completion_labels("sale.yaml", &text, "signature: S").contains(&"Shop".to_owned()));
    assert!(editor.hover_text("sale.yaml", &text, "{{ pl").contains("for example `gold`, `basic`"));
    assert!(editor.hover_text("sale.yaml", &text, "recip").contains("The list of recipients"));
}

#[test]
fn names_are_completed_in_a_file_with_syntax_errors() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    editor.check();
    let broken = CAMPAIGN.replace("{ file: sms.txt }", "\"Hi {{ ");
    editor.change("sale.yaml", &broken);
    assert!(!editor.check().is_empty());
    assert!(editor.completion_labels("sale.yaml", &broken, "{{ ").contains(&"plan".to_owned()));
}

#[test]
fn hover_over_a_finding_explains_its_rule() {
    let mut editor = Editor::new();
    let text = CAMPAIGN.replace("signature", "signatur");
    editor.open("sale.yaml", &text);
    editor.check();
    assert!(editor.hover_text("sale.yaml", &text, "signa").contains("**`unknown-key`**"));
}

#[test]
fn fix_of_a_finding_is_offered_only_in_its_range() {
    let mut editor = Editor::new();
    let text = CAMPAIGN.replace("signature", "signatur");
    editor.open("sale.yaml", &text);
    editor.check();
    let fixes = |editor: &Editor, line: u32| {
        let place = lsp_types::Range::new(Position::new(line, 0), Position::new(line, 20));
        let params = CodeActionParams {
            text_document: TextDocumentIdentifier::new(editor.uri("sale.yaml")),
            range: place,
            context: lsp_types::CodeActionContext::default(),
            work_done_progress_params: lsp_types::WorkDoneProgressParams::default(),
            partial_result_params: lsp_types::PartialResultParams::default(),
        };
        editor.session.collect_fixes(&params)
    };
    let found = fixes(&editor, 6);
    assert_eq!(found.len(), 1, "{found:?}");
    let changes = found[0].edit.clone().unwrap().changes.unwrap();
    let edits = &changes[&editor.uri("sale.yaml")];
    let fixed = ColumnUnit::Utf16.apply_change(&text, Some(edits[0].range), &edits[0].new_text);
    assert_eq!((edits.len(), fixed.as_str()), (1, CAMPAIGN));
    assert!(fixes(&editor, 1).is_empty());
}

#[test]
fn definitions_resolve_to_files_and_profiles() {
    let mut editor = Editor::new();
    let text = format!("{CAMPAIGN}consent: required\n")
        .replace("file: list.csv", "file: list.csv\n  suppress: [list.csv, none.csv]\n  consent: { file: end.txt }");
    editor.open("sale.yaml", &text);
    let template = "{% include \"end.txt\" %}";
    editor.open("sms.txt", template);
    editor.check();
    for (name, text, needle, expected) in [
        ("sale.yaml", text.as_str(), "gateway: ma", Some(("gateways.yaml", 2))),
        ("sale.yaml", &text, "file: lis", Some(("list.csv", 1))),
        ("sale.yaml", &text, "file: sms", Some(("sms.txt", 1))),
        ("sale.yaml", &text, "[lis", Some(("list.csv", 1))),
        ("sale.yaml", &text, "none", None),
        ("sale.yaml", &text, "file: end", Some(("end.txt", 1))),
        ("sale.yaml", &text, "signature: Sh", None),
        ("sms.txt", template, "end", Some(("end.txt", 1))),
    ] {
        let expected = expected.map(|(file, line)| (file.to_owned(), line));
        assert_eq!(editor.definition(name, text, needle), expected, "{needle}");
    }
}

#[test]
fn missing_list_is_reported_as_a_finding() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    editor.check();
    fs::remove_file(editor.folder.path().join("list.csv")).unwrap();
    editor.session.forget_files();
    assert!(editor.check().contains(&expected_diagnostic("sale.yaml", 3, "recipients-missing")));
}

#[test]
fn templates_that_include_each_other_are_reported() {
    let mut editor = Editor::new();
    editor.open("sale.yaml", CAMPAIGN);
    editor.open("end.txt", "{% include \"sms.txt\" %}");
    let diagnostics = editor.check();
    assert!(diagnostics.iter().any(|(_, _, rule)| rule.contains("include")), "{diagnostics:?}");
}
