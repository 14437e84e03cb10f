//! The templates of an account: orders that somebody agrees to before they are given.

use super::consent::confirm;
use super::{AccountView, Consent, ConsentRefusal, Error, GatewayAccount, Proposal, ProposalKind, TemplateRefusal};
use crate::domain::GatewayMessageId;
use crate::gateway::{
    CreateSmsTemplate, CreateViberTemplate, DeleteSmsTemplate, DeleteViberTemplate, Inquiry, ListViberTemplates,
    SmsTemplate, ViberTemplate,
};

/// A change of the templates of an account.
#[derive(Clone, Debug)]
pub enum TemplateChange {
    /// A new SMS template.
    CreateSms(CreateSmsTemplate),
    /// An SMS template goes.
    DeleteSms(DeleteSmsTemplate),
    /// A new Viber template.
    CreateViber(CreateViberTemplate),
    /// A Viber template goes.
    DeleteViber(DeleteViberTemplate),
}

impl TemplateChange {
    /// What it does: `create` or `delete`.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::CreateSms(_) | Self::CreateViber(_) => "create",
            Self::DeleteSms(_) | Self::DeleteViber(_) => "delete",
        }
    }

    /// The list in which it can be seen.
    fn account_view(&self) -> AccountView {
        match self {
            Self::CreateSms(_) | Self::DeleteSms(_) => AccountView::SmsTemplates,
            Self::CreateViber(_) | Self::DeleteViber(_) => AccountView::ViberTemplates,
        }
    }
}

impl GatewayAccount {
    /// Creates an SMS template.
    ///
    /// # Errors
    /// When its name is blank, nobody agrees, or the gateway does not say that it was done.
    pub async fn create_sms_template(
        &self,
        mut template: CreateSmsTemplate,
        consent: &dyn Consent,
    ) -> Result<SmsTemplate, Error> {
        template.name = require_text("name", &template.name)?;
        self.order_change(&template, TemplateChange::CreateSms(template.clone()), consent).await
    }

    /// Deletes an SMS template; tells how many the gateway says that it deleted.
    ///
    /// # Errors
    /// When nobody agrees, or the gateway does not say that it was done.
    pub async fn delete_sms_template(&self, id: u64, consent: &dyn Consent) -> Result<Option<u64>, Error> {
        let template = DeleteSmsTemplate { id };
        let deleted = self.order_change(&template, TemplateChange::DeleteSms(template), consent).await?;
        require_deletion(id, deleted)
    }

    /// Creates a Viber template.
    ///
    /// # Errors
    /// When its signature is blank, nobody agrees, or the gateway does not say that it was done.
    pub async fn create_viber_template(
        &self,
        mut template: CreateViberTemplate,
        consent: &dyn Consent,
    ) -> Result<ViberTemplate, Error> {
        template.signature = require_text("signature", &template.signature)?;
        self.order_change(&template, TemplateChange::CreateViber(template.clone()), consent).await
    }

    /// Deletes a Viber template, whose text is looked up where it is not given; tells how many the gateway says that it
    /// deleted.
    ///
    /// # Errors
    /// When there is no such template, nobody agrees, or the gateway does not say that it was done.
    pub async fn delete_viber_template(
        &self,
        id: u64,
        text: Option<String>,
        consent: &dyn Consent,
    ) -> Result<Option<u64>, Error> {
        let text = match text {
            Some(text) => text,
            None => self.find_viber_text(id, consent).await?,
        };
        let template = DeleteViberTemplate { id, text };
        let deleted = self.order_change(&template, TemplateChange::DeleteViber(template.clone()), consent).await?;
        require_deletion(id, deleted)
    }

    /// Orders a change that somebody agrees to; one that stays on this machine needs no yes.
    async fn order_change<I: Inquiry>(
        &self,
        order: &I,
        change: TemplateChange,
        consent: &dyn Consent,
    ) -> Result<I::Answer, Error> {
        let view = change.account_view();
        if !self.profile.is_loopback() {
            confirm(consent, Proposal::Template { profile: &self.profile, change: &change }).await?;
        }
        self.ask(order).await.map_err(|error| match error {
            Error::Unanswered { gateway, failure, .. } if !failure.undone => {
                TemplateRefusal::Unclear { gateway, failure, view }.into()
            }
            error => error,
        })
    }

    /// The text of a template, which its deletion takes besides the identifier.
    ///
    /// Where no yes can come, the gateway is asked nothing.
    async fn find_viber_text(&self, id: u64, consent: &dyn Consent) -> Result<String, Error> {
        let gateway = || self.profile.name.clone();
        if !self.profile.is_loopback() && !consent.can_confirm() {
            let what = ProposalKind::Template { gateway: gateway(), verb: "delete" };
            return Err(Error::NotConfirmed { what, refusal: ConsentRefusal::NoTerminal });
        }
        let templates = self.ask(&ListViberTemplates).await?;
        let wanted =
            |template: &ViberTemplate| template.id.as_ref().map(GatewayMessageId::to_string) == Some(id.to_string());
        let template = templates.into_iter().find(wanted);
        let template = template.ok_or_else(|| TemplateRefusal::NoSuchTemplate { gateway: gateway(), id })?;
        Ok(template.text.ok_or(TemplateRefusal::TextUnknown { id })?)
    }
}

fn require_text(what: &str, text: &str) -> Result<String, Error> {
    match text.trim() {
        "" => Err(Error::Input(format!("the {what} of the template is empty"))),
        text => Ok(text.to_owned()),
    }
}

/// A deletion, unless the gateway says that it deleted nothing.
fn require_deletion(id: u64, deleted: Option<u64>) -> Result<Option<u64>, Error> {
    if deleted == Some(0) { Err(TemplateRefusal::NothingDeleted { id }.into()) } else { Ok(deleted) }
}
