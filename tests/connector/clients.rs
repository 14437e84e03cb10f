//! Compatibility with a published MCP client (`rmcp`), in both lifecycles of the protocol: `initialize` and discovery.

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::{Value, json};

use super::Connector;
use crate::support::{KEY, SandboxProcess};

#[test]
fn rmcp_http_client_calls_tools_in_both_lifecycle_modes() {
    let sandbox = SandboxProcess::start();
    let connector = Connector::for_gateway(&sandbox);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // The `rmcp` client uses the default crypto provider of the process.
    rustls::crypto::ring::default_provider().install_default().expect("the first provider of this process");
    for lifecycle in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    ] {
        let url = format!("http://{}/mcp", connector.address);
        runtime.block_on(async {
            let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(KEY);
            let transport = StreamableHttpClientTransport::from_config(config);
            let client = ().serve_with_lifecycle(transport, lifecycle).await.expect("a session");
            let tools = client.list_all_tools().await.expect("tools");
            assert_eq!(tools.len(), 6);
            for tool in &tools {
                let annotations = tool.annotations.as_ref().expect("annotations");
                // A lookup costs money, so it is not read-only.
                let is_read_only = tool.name != "lookup_number";
                assert_eq!(
                    (annotations.read_only_hint, annotations.destructive_hint),
                    (Some(is_read_only), Some(false))
                );
            }
            let result = client.call_tool(CallToolRequestParams::new("balance")).await.expect("a result");
            let balance = result.structured_content.expect("a structured result");
            assert!(balance["amount"].is_number(), "{balance}");
            let wrong = CallToolRequestParams::new("message_status")
                .with_arguments(json!({ "id": "x" }).as_object().cloned().expect("an object"));
            let wrong = client.call_tool(wrong).await.expect("a result");
            assert_eq!((wrong.is_error, wrong.structured_content), (Some(true), None::<Value>));
            client.cancel().await.expect("a clean end");
        });
    }
}
