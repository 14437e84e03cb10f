//! The templates of an account: texts for SMS, and texts for Viber that somebody has to approve.
//!
//! A Viber template's status follows from its age, so nothing happens between two questions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{OperationError, VirtualTime, WireTime};
use crate::domain::measure_sms;
use crate::sandbox::scenario::Scenario;

/// The most templates of each sort.
const MAX_TEMPLATES: usize = 10_000;
/// The most bytes of all texts and names of each sort.
const MAX_TEMPLATE_BYTES: usize = 16 << 20;

/// The templates of one account.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    pub sms: TemplateStore,
    pub viber: TemplateStore,
}

/// Templates of one sort under their numbers.
#[derive(Debug, Default)]
pub(crate) struct TemplateStore {
    all: BTreeMap<u64, Template>,
    /// The number of the last that was made: a deleted one's is not used again.
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Template {
    /// The name of an SMS template, the signature of a Viber one.
    title: Box<str>,
    text: Box<str>,
    created: VirtualTime,
}

impl Template {
    fn byte_count(&self) -> usize {
        self.title.len() + self.text.len()
    }
}

impl TemplateStore {
    fn insert(&mut self, title: &str, text: &str, created: VirtualTime) -> Result<(u64, &Template), OperationError> {
        let template = Template { title: title.into(), text: text.into(), created };
        if self.all.len() >= MAX_TEMPLATES || self.bytes + template.byte_count() > MAX_TEMPLATE_BYTES {
            return Err(OperationError::TOO_MANY_TEMPLATES);
        }
        self.bytes += template.byte_count();
        self.last += 1;
        Ok((self.last, self.all.entry(self.last).or_insert(template)))
    }

    /// Deletes a template, if its text is this one where one is given; tells how many it deleted.
    pub(crate) fn delete_template(&mut self, id: u64, text: Option<&str>) -> u64 {
        let meant = |template: &&Template| text.is_none_or(|text| *text == *template.text);
        if self.all.get(&id).filter(meant).is_none() {
            return 0;
        }
        self.bytes -= self.all.remove(&id).map_or(0, |template| template.byte_count());
        1
    }
}

impl Templates {
    /// Keeps an SMS template (contract 4.3 `template/create`).
    pub(crate) fn create_sms(&mut self, name: &str, text: &str, now: VirtualTime) -> Result<Value, OperationError> {
        self.sms.insert(name, text, now).map(|(id, template)| sms_record(id, template))
    }

    /// All SMS templates, the oldest first.
    pub(crate) fn list_sms(&self) -> Value {
        let dated = |(id, template): (&u64, &Template)| {
            let mut record = sms_record(*id, template);
            // Its time is told by the list alone (contract 2.5).
            record["datetime"] = json!(WireTime(template.created));
            record
        };
        self.sms.all.iter().map(dated).collect()
    }

    /// Keeps a Viber template; its status is `new`.
    pub(crate) fn create_viber(
        &mut self,
        signature: &str,
        text: &str,
        now: VirtualTime,
    ) -> Result<Value, OperationError> {
        self.viber.insert(signature, text, now).map(|(id, template)| viber_record(id, template, "new"))
    }

    /// All Viber templates with their statuses at `now`, the oldest first.
    pub(crate) fn list_viber(&self, scenario: &Scenario, now: VirtualTime) -> Value {
        let all = self.viber.all.iter();
        all.map(|(id, template)| viber_record(*id, template, review_status(scenario, template.created, now))).collect()
    }
}

/// How far the review of a Viber template is: submitted after a while, and decided after another.
fn review_status(scenario: &Scenario, created: VirtualTime, now: VirtualTime) -> &'static str {
    let submitted = created.saturating_add(scenario.template_review);
    let decided = submitted.saturating_add(scenario.template_review);
    if now < submitted {
        "new"
    } else if now < decided {
        "submitted"
    } else if scenario.templates_approved {
        "approved"
    } else {
        "rejected"
    }
}

/// An SMS template (contract 2.5); its `count` is signs and messages, as in `8 / 1`.
fn sms_record(id: u64, template: &Template) -> Value {
    let (size, Template { title, text, .. }) = (measure_sms(&template.text), template);
    json!({ "id": id, "name": title, "template": text, "count": format!("{} / {}", size.units, size.parts) })
}

/// A Viber template (contract 2.5).
fn viber_record(id: u64, Template { title, text, .. }: &Template, status: &str) -> Value {
    json!({ "id": id, "template": text, "signature": title, "status": status })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    fn now() -> VirtualTime {
        VirtualTime::from_timestamp(Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn template_counts_characters_and_messages() {
        let mut templates = Templates::default();
        for (text, count) in
            [("Hi there", "8 / 1"), (&*"я".repeat(71), "71 / 2"), ("€", "2 / 1"), (&*"a".repeat(161), "161 / 2")]
        {
            assert_eq!(templates.create_sms("name", text, now()).expect("kept")["count"], count);
        }
    }

    #[test]
    fn viber_template_status_follows_review_time() {
        let mut scenario = Scenario { template_review: Duration::from_secs(10), ..Scenario::default() };
        let mut templates = Templates::default();
        assert_eq!(templates.create_viber("OlenaCo", "Hi", now()).expect("kept")["status"], "new");
        for (seconds, approved, status) in [
            (9, true, "new"),
            (10, true, "submitted"),
            (19, false, "submitted"),
            (20, true, "approved"),
            (20, false, "rejected"),
            (2_000_000, false, "rejected"),
        ] {
            scenario.templates_approved = approved;
            let list = templates.list_viber(&scenario, now().saturating_add(Duration::from_secs(seconds)));
            assert_eq!(list[0]["status"], status, "after {seconds} s");
        }
    }

    #[test]
    fn deleted_template_id_is_never_reused() {
        let mut templates = Templates::default();
        let first = templates.create_sms("a", "text", now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!(
            (
                templates.sms.delete_template(first, None),
                templates.sms.delete_template(first, None),
                templates.sms.delete_template(9, None)
            ),
            (1, 0, 0)
        );
        assert!(templates.create_sms("b", "text", now()).expect("kept")["id"].as_u64().expect("a number") > first);
        let viber = templates.create_viber("OlenaCo", "text", now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!([Some("another"), Some("text")].map(|text| templates.viber.delete_template(viber, text)), [0, 1]);
        assert!(templates.list_viber(&Scenario::default(), now()) == json!([]));
    }

    #[test]
    fn template_limit_holds_until_one_is_deleted() {
        let mut templates = Templates::default();
        for _ in 0..MAX_TEMPLATES {
            templates.create_sms("a", "b", now()).expect("kept");
        }
        assert_eq!(templates.create_sms("a", "b", now()).err(), Some(OperationError::TOO_MANY_TEMPLATES));
        assert_eq!(templates.sms.delete_template(1, None), 1);
        templates.create_sms("a", "b", now()).expect("kept");
        let whole = "b".repeat(MAX_TEMPLATE_BYTES);
        let kept = templates.create_viber("", &whole, now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!(templates.create_viber("", "b", now()).err(), Some(OperationError::TOO_MANY_TEMPLATES));
        assert_eq!(templates.viber.delete_template(kept, None), 1);
        templates.create_viber("", "b", now()).expect("kept");
    }
}
