//! Configuration of AI clients: the entry with which a client connects to the connector (contract 4.4) or starts it.

use serde_json::{Value, json};

/// The name of the connector in the configuration.
const SERVER_NAME: &str = "campaign";
/// The environment variable with the key of each call.
const KEY_VARIABLE: &str = "CAMPAIGN_KEY";

/// An AI client, by the format of its configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistantClient {
    /// Claude Code: `.mcp.json`.
    Claude,
    /// Cursor: `.cursor/mcp.json`.
    Cursor,
    /// Visual Studio Code: `.vscode/mcp.json`.
    VsCode,
    /// Any other client: only the entry.
    Generic,
}

/// How a client connects.
#[derive(Clone, Debug)]
pub enum ClientEntry {
    /// The connector listens at this URL; the client connects to it.
    Http(String),
    /// The client starts it.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// The environment variable with the key, if none of our files contains it. Clients pass on few variables.
        variable: Option<String>,
    },
}

impl AssistantClient {
    /// Every client.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Cursor, Self::VsCode, Self::Generic];

    /// The client's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Generic => "generic",
        }
    }

    /// The client with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// The whole configuration file, with a placeholder for the key.
    #[must_use]
    pub fn config_file(self, entry: &ClientEntry) -> Value {
        let (entry, has_key) = self.render_entry(entry);
        match self {
            Self::Claude | Self::Cursor => json!({ "mcpServers": { SERVER_NAME: entry } }),
            // VS Code asks for the key once and stores it with other passwords.
            Self::VsCode if has_key => json!({
                "inputs": [{
                    "type": "promptString",
                    "id": "campaign-key",
                    "description": "API key for the messaging gateway",
                    "password": true,
                }],
                "servers": { SERVER_NAME: entry },
            }),
            Self::VsCode => json!({ "servers": { SERVER_NAME: entry } }),
            Self::Generic => entry,
        }
    }

    /// The entry (contract 4.4), and whether it contains a key.
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

    /// The placeholder for the key: the client's syntax for an environment variable or a password.
    fn key_placeholder(self, variable: &str) -> String {
        match self {
            Self::Claude | Self::Generic => format!("${{{variable}}}"),
            Self::Cursor => format!("${{env:{variable}}}"),
            Self::VsCode => "${input:campaign-key}".to_owned(),
        }
    }
}
