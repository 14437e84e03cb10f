//! The files under `suppress`: each a path, or a map that says more.

use std::path::Path;

use super::Resolver;
use crate::domain::Region;
use crate::manifest::keys::SUPPRESS_FILE;
use crate::manifest::section::Section;
use crate::manifest::suppress_file::SuppressFile;
use crate::manifest::yaml::Node;

impl Resolver<'_> {
    /// The files under `suppress`, relative to `folder`; national numbers are those of `region` unless they say another.
    pub(super) fn suppress(
        &mut self,
        recipients: Section<'_>,
        folder: &Path,
        region: Option<Region>,
    ) -> Vec<SuppressFile> {
        let items = recipients.value("suppress").and_then(Node::items).unwrap_or_default();
        let mut files = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let section = Section::new(Some(item), SUPPRESS_FILE);
            let (name, span, phone, own) = match item.scalar() {
                Some(scalar) => (scalar.text.trim(), &item.span, None, None),
                None => {
                    let Some((name, span)) = section.typed("file") else { continue };
                    let phone = section.typed("phone").map(|(header, _)| header.to_owned());
                    (name, span, phone, self.region(section))
                }
            };
            let Some(name) = self.on_the_day(name, span) else { continue };
            let key = format!("recipients.suppress[{index}]");
            files.push(SuppressFile { file: folder.join(name), phone, region: own.or(region), key });
        }
        files
    }
}
