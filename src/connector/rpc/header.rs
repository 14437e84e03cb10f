//! The head of a request repeats what its body says, so that who stands between need not read the body.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// What the head of a request says of its message.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connector) struct RpcHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub(in crate::connector) version: Option<&'a str>,
    /// `Mcp-Method`.
    pub(in crate::connector) method: Option<&'a str>,
    /// `Mcp-Name`.
    pub(in crate::connector) name: Option<&'a str>,
}

impl RpcHeaders<'_> {
    /// Why a head names another revision than the message; nothing if it names none.
    ///
    /// That is a contradiction even where one of the two is not known here.
    pub(super) fn check_version(self, version: &str) -> Option<String> {
        self.version.and_then(|told| check_header("MCP-Protocol-Version", Some(told), version))
    }

    /// Why a head does not say what the message says; nothing if it does.
    pub(super) fn check_headers(self, version: &str, method: &str, name: Option<&Value>) -> Option<String> {
        check_header("MCP-Protocol-Version", self.version, version)
            .or_else(|| check_header("Mcp-Method", self.method, method))
            .or_else(|| {
                (method == "tools/call").then(|| check_header("Mcp-Name", self.name, name?.as_str()?)).flatten()
            })
    }
}

/// Why a header does not say what is; nothing if it does.
fn check_header(header: &str, told: Option<&str>, is: &str) -> Option<String> {
    match told.map(decode_header) {
        Some(Some(told)) if told == is => None,
        Some(Some(_)) => Some(format!("`{header}` differs from the body")),
        Some(None) => Some(format!("`{header}` cannot be decoded")),
        None => Some(format!("`{header}` is missing")),
    }
}

/// The text of a header: as it stands, or in Base64 where it could not stand there.
fn decode_header(text: &str) -> Option<String> {
    match text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}
