//! The keys `variants` and `holdout`, which divide recipients.

use super::Resolver;
use crate::campaign::{Holdout, MessageVariant, VARIANT};
use crate::document::ConfigSection;
use crate::keys::{HOLDOUT, VARIANT_KEYS};
use crate::value::Percentage;
use crate::yaml::MapEntry;
use campaign_core::domain::{MessageContent, NamedTemplate};
use campaign_core::finding::{Finding, rules};

/// The maximum length of the name of a variant or a group, in characters.
const MAX_NAME_LENGTH: usize = 64;

impl Resolver<'_> {
    /// The variants, with reported placeholders for missing or wrong parts.
    pub(super) fn resolve_variants(
        &mut self,
        root: ConfigSection<'_>,
        content: Option<&MessageContent<NamedTemplate>>,
        vars: &[(String, String)],
    ) -> Vec<MessageVariant> {
        let Some(entry) = root.entry("variants").filter(|_| root.has_value("variants")) else { return Vec::new() };
        let columns = self.columns.clone();
        let Some(entries) = entry.value.as_entries() else {
            // A value that is not a map has no shares, and is reported as a wrong type.
            self.gaps.any = true;
            return Vec::new();
        };
        let variants: Vec<_> = entries.iter().map(|entry| self.resolve_variant(root, entry, &columns)).collect();
        for (name, _) in columns.iter().chain(vars).filter(|(name, _)| name == VARIANT) {
            let message = format!(
                "in templates, `{name}` is the recipient's variant, but there is also a \
                column or constant with this name"
            );
            let finding = Finding::new(&rules::NAME_CLASH, message).help("rename that column or constant");
            self.report.add(&entry.key_span, finding);
        }
        let single = content.filter(|content| content.kind.is_single()).map(|content| content.kind.name());
        if let Some(kind) = single {
            let finding =
                Finding::new(&rules::STANDS_ALONE, format!("`{kind}` has no message text, so it cannot have variants"));
            self.report.add(&entry.key_span, finding.help("remove `variants`"));
        }
        if entries.iter().all(|entry| read_share(entry).is_some()) {
            self.check_share_total(root, entry, &variants);
        }
        variants
    }

    fn resolve_variant(
        &mut self,
        root: ConfigSection<'_>,
        entry: &MapEntry,
        columns: &[(String, String)],
    ) -> MessageVariant {
        let name = self.check_group_name(entry.key.as_str(), &entry.key_span, "a variant");
        let name = self.or_stand_in(name, || entry.key.clone());
        let section = ConfigSection::new(Some(&entry.value), VARIANT_KEYS);
        let share = self.or_stand_in(read_share(entry), || Percentage::WHOLE);
        let vars = self.resolve_vars(section, columns);
        let path = format!("variants.{name}.");
        let content = match section.entry("channels") {
            Some(_) => {
                let content = self.resolve_content(root, section, &path);
                self.gaps.any |= content.is_none();
                if let Some(kind) = content.as_ref().map(|content| content.kind).filter(|kind| kind.is_single()) {
                    let message = format!("`{kind}` cannot be a variant of a message");
                    let finding = Finding::new(&rules::STANDS_ALONE, message).help("create a separate campaign for it");
                    self.report.add(&entry.key_span, finding);
                }
                content
            }
            None => None,
        };
        MessageVariant { name, share, content, vars }
    }

    /// Reports shares whose sum is not 100 %.
    fn check_share_total(&mut self, root: ConfigSection<'_>, entry: &MapEntry, variants: &[MessageVariant]) {
        let held = read_holdout(root).map_or(0, |holdout| u32::from(holdout.share.hundredths()));
        let shares = variants.iter().map(|variant| u32::from(variant.share.hundredths())).sum::<u32>() + held;
        if shares != 10_000 {
            let with = if held == 0 { "" } else { " and `holdout`" };
            let message =
                format!("the shares of the variants{with} add up to {}%, not 100%", f64::from(shares) / 100.0);
            let help = "change the shares so that they add up to 100%; use `holdout` for recipients who get no \
                message";
            self.report.add(&entry.key_span, Finding::new(&rules::SHARES, message).help(help));
        }
    }

    /// The holdout group.
    pub(super) fn resolve_holdout(&mut self, root: ConfigSection<'_>) -> Option<Holdout> {
        let (entry, holdout) = (root.entry("holdout")?, read_holdout(root)?);
        if let Some(group) = &holdout.group {
            self.check_group_name(group, &entry.value.span, "a group")?;
        }
        if holdout.share.hundredths() == 10_000 {
            let finding = Finding::new(&rules::SHARES, "`holdout` includes all recipients, so no messages are sent");
            self.report.add(&entry.key_span, finding.help("write a smaller share, such as `10%`"));
        }
        Some(holdout).filter(|holdout| holdout.share.hundredths() > 0)
    }

    fn check_group_name(&mut self, name: &str, span: &std::ops::Range<usize>, what: &str) -> Option<String> {
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if !name.is_empty() && name.chars().all(fits) && name.chars().count() <= MAX_NAME_LENGTH {
            return Some(name.to_owned());
        }
        let finding = Finding::new(&rules::VARIABLE_NAME, format!("`{name}` is not a valid name for {what}"));
        self.report.add(span, finding.help("use letters, digits, `-` and `_`, as in `a` or `short-text`"));
        None
    }
}

/// The share of a variant.
fn read_share(entry: &MapEntry) -> Option<Percentage> {
    ConfigSection::new(Some(&entry.value), VARIANT_KEYS).parse_value("share")
}

fn read_holdout(root: ConfigSection<'_>) -> Option<Holdout> {
    let node = root.find_value("holdout")?;
    if node.as_scalar().is_some() {
        return Some(Holdout { share: root.parse_value("holdout")?, group: None });
    }
    let section = ConfigSection::new(Some(node), HOLDOUT);
    Some(Holdout {
        share: section.parse_value("share")?,
        group: section.typed_text("group").map(|(group, _)| group.to_owned()),
    })
}
