//! The templates of an account: texts for SMS, and texts for Viber that somebody has to approve.
//!
//! A Viber template's status follows from its age, so nothing happens between two questions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Moment, Refusal, WireMoment};
use crate::domain::sms_text;
use crate::sandbox::scenario::Scenario;

/// The most templates of each sort.
const MOST: usize = 10_000;
/// The most bytes of all texts and names of each sort.
const MOST_BYTES: usize = 16 << 20;

/// The templates of one account.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    pub sms: Shelf,
    pub viber: Shelf,
}

/// Templates of one sort under their numbers.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
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
    created: Moment,
}

impl Template {
    fn bytes(&self) -> usize {
        self.title.len() + self.text.len()
    }
}

impl Shelf {
    fn add(&mut self, title: &str, text: &str, created: Moment) -> Result<(u64, &Template), Refusal> {
        let template = Template { title: title.into(), text: text.into(), created };
        if self.all.len() >= MOST || self.bytes + template.bytes() > MOST_BYTES {
            return Err(Refusal::TOO_MANY_TEMPLATES);
        }
        self.bytes += template.bytes();
        self.last += 1;
        Ok((self.last, self.all.entry(self.last).or_insert(template)))
    }

    /// Deletes a template, if its text is this one where one is given; tells how many it deleted.
    pub(crate) fn delete(&mut self, id: u64, text: Option<&str>) -> u64 {
        let meant = |template: &&Template| text.is_none_or(|text| *text == *template.text);
        if self.all.get(&id).filter(meant).is_none() {
            return 0;
        }
        self.bytes -= self.all.remove(&id).map_or(0, |template| template.bytes());
        1
    }
}

impl Templates {
    /// Keeps an SMS template (contract 4.3 `template/create`).
    pub(crate) fn create(&mut self, name: &str, text: &str, now: Moment) -> Result<Value, Refusal> {
        self.sms.add(name, text, now).map(|(id, template)| record(id, template))
    }

    /// All SMS templates, the oldest first.
    pub(crate) fn list(&self) -> Value {
        let dated = |(id, template): (&u64, &Template)| {
            let mut record = record(*id, template);
            // Its time is told by the list alone (contract 2.5).
            record["datetime"] = json!(WireMoment(template.created));
            record
        };
        self.sms.all.iter().map(dated).collect()
    }

    /// Keeps a Viber template; its status is `new`.
    pub(crate) fn create_viber(&mut self, signature: &str, text: &str, now: Moment) -> Result<Value, Refusal> {
        self.viber.add(signature, text, now).map(|(id, template)| viber_record(id, template, "new"))
    }

    /// All Viber templates with their statuses at `now`, the oldest first.
    pub(crate) fn list_viber(&self, scenario: &Scenario, now: Moment) -> Value {
        let all = self.viber.all.iter();
        all.map(|(id, template)| viber_record(*id, template, review(scenario, template.created, now))).collect()
    }
}

/// How far the review of a Viber template is: submitted after a while, and decided after another.
fn review(scenario: &Scenario, created: Moment, now: Moment) -> &'static str {
    let submitted = created.after(scenario.template_review);
    let decided = submitted.after(scenario.template_review);
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
fn record(id: u64, template: &Template) -> Value {
    let (size, Template { title, text, .. }) = (sms_text(&template.text), template);
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

    fn now() -> Moment {
        Moment::of(Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_template_counts_its_signs_and_its_messages() {
        let mut templates = Templates::default();
        for (text, count) in
            [("Hi there", "8 / 1"), (&*"я".repeat(71), "71 / 2"), ("€", "2 / 1"), (&*"a".repeat(161), "161 / 2")]
        {
            assert_eq!(templates.create("name", text, now()).expect("kept")["count"], count);
        }
    }

    #[test]
    fn a_viber_template_is_reviewed_in_time() {
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
            let list = templates.list_viber(&scenario, now().after(Duration::from_secs(seconds)));
            assert_eq!(list[0]["status"], status, "after {seconds} s");
        }
    }

    #[test]
    fn a_template_is_deleted_once_and_its_number_never_comes_back() {
        let mut templates = Templates::default();
        let first = templates.create("a", "text", now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!(
            (templates.sms.delete(first, None), templates.sms.delete(first, None), templates.sms.delete(9, None)),
            (1, 0, 0)
        );
        assert!(templates.create("b", "text", now()).expect("kept")["id"].as_u64().expect("a number") > first);
        let viber = templates.create_viber("OlenaCo", "text", now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!([Some("another"), Some("text")].map(|text| templates.viber.delete(viber, text)), [0, 1]);
        assert!(templates.list_viber(&Scenario::default(), now()) == json!([]));
    }

    #[test]
    fn an_account_keeps_no_more_templates_than_it_may_and_deleting_makes_room() {
        let mut templates = Templates::default();
        for _ in 0..MOST {
            templates.create("a", "b", now()).expect("kept");
        }
        assert_eq!(templates.create("a", "b", now()).err(), Some(Refusal::TOO_MANY_TEMPLATES));
        assert_eq!(templates.sms.delete(1, None), 1);
        templates.create("a", "b", now()).expect("kept");
        let whole = "b".repeat(MOST_BYTES);
        let kept = templates.create_viber("", &whole, now()).expect("kept")["id"].as_u64().expect("a number");
        assert_eq!(templates.create_viber("", "b", now()).err(), Some(Refusal::TOO_MANY_TEMPLATES));
        assert_eq!(templates.viber.delete(kept, None), 1);
        templates.create_viber("", "b", now()).expect("kept");
    }
}
