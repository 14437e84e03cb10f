//! What a person writes into a program of an assistant, so that it finds the connector (contract 4.4).

use serde_json::{Value, json};

/// How the connector is called there.
const NAME: &str = "campaign";

/// A program that reaches assistants, by the form of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Claude Code: `.mcp.json`.
    Claude,
    /// Cursor: `.cursor/mcp.json`.
    Cursor,
    /// Visual Studio Code: `.vscode/mcp.json`.
    VsCode,
    /// Any other one: the entry alone.
    Generic,
}

impl Client {
    /// Every client.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Cursor, Self::VsCode, Self::Generic];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Generic => "generic",
        }
    }

    /// The client of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// The whole file of this client for a connector at `url`. In the place of the key it has the client's variable.
    #[must_use]
    pub fn file(self, url: &str) -> Value {
        match self {
            Self::Claude => json!({ "mcpServers": { NAME: entry(url, "${CAMPAIGN_KEY}") } }),
            Self::Cursor => json!({ "mcpServers": { NAME: entry(url, "${env:CAMPAIGN_KEY}") } }),
            // It asks for the key once and keeps it where it keeps passwords.
            Self::VsCode => json!({
                "inputs": [{
                    "type": "promptString",
                    "id": "campaign-key",
                    "description": "API key of the messaging gateway",
                    "password": true,
                }],
                "servers": { NAME: entry(url, "${input:campaign-key}") },
            }),
            Self::Generic => entry(url, "${CAMPAIGN_KEY}"),
        }
    }
}

/// The entry of contract 4.4.
fn entry(url: &str, variable: &str) -> Value {
    json!({ "type": "http", "url": url, "headers": { "Authorization": format!("Bearer {variable}") } })
}
