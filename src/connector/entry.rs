//! What a person writes into a program of an assistant, so that it finds the connector (contract 4.4) or starts it.

use serde_json::{Value, json};

/// How the connector is called there.
const SERVER_NAME: &str = "campaign";
/// The variable that has the key of each call.
const KEY_VARIABLE: &str = "CAMPAIGN_KEY";

/// A program that reaches assistants, by the form of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistantClient {
    /// Claude Code: `.mcp.json`.
    Claude,
    /// Cursor: `.cursor/mcp.json`.
    Cursor,
    /// Visual Studio Code: `.vscode/mcp.json`.
    VsCode,
    /// Any other one: the entry alone.
    Generic,
}

/// How a client gets to the connector.
#[derive(Clone, Debug)]
pub enum ClientEntry {
    /// It listens here.
    Http(String),
    /// The client starts it.
    Stdio {
        /// The program.
        command: String,
        /// What stands behind it.
        arguments: Vec<String>,
        /// The variable of the environment that has the key, where it is in none of our files: clients hand on few of theirs.
        variable: Option<String>,
    },
}

impl AssistantClient {
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

    /// The whole file of this client. In the place of the key it has the client's variable.
    #[must_use]
    pub fn config_file(self, entry: &ClientEntry) -> Value {
        let (entry, has_key) = self.render_entry(entry);
        match self {
            Self::Claude | Self::Cursor => json!({ "mcpServers": { SERVER_NAME: entry } }),
            // It asks for the key once and keeps it where it keeps passwords.
            Self::VsCode if has_key => json!({
                "inputs": [{
                    "type": "promptString",
                    "id": "campaign-key",
                    "description": "API key of the messaging gateway",
                    "password": true,
                }],
                "servers": { SERVER_NAME: entry },
            }),
            Self::VsCode => json!({ "servers": { SERVER_NAME: entry } }),
            Self::Generic => entry,
        }
    }

    /// The entry (contract 4.4), and whether the key has a place in it.
    fn render_entry(self, entry: &ClientEntry) -> (Value, bool) {
        match entry {
            ClientEntry::Http(url) => {
                let bearer = format!("Bearer {}", self.key_placeholder(KEY_VARIABLE));
                (json!({ "type": "http", "url": url, "headers": { "Authorization": bearer } }), true)
            }
            ClientEntry::Stdio { command, arguments, variable } => {
                let mut entry = json!({ "type": "stdio", "command": command, "args": arguments });
                if let Some(variable) = variable {
                    entry["env"] = json!({ variable: self.key_placeholder(variable) });
                }
                (entry, variable.is_some())
            }
        }
    }

    /// What stands in the place of the key: the client's own way to a variable of its environment, or to a password.
    fn key_placeholder(self, variable: &str) -> String {
        match self {
            Self::Claude | Self::Generic => format!("${{{variable}}}"),
            Self::Cursor => format!("${{env:{variable}}}"),
            Self::VsCode => "${input:campaign-key}".to_owned(),
        }
    }
}
