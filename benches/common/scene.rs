//! A temporary folder with a campaign, its list and a gateway profile.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::list;

const CAMPAIGN: &str = r#"
name: bench
gateway: bench
recipients: { file: bench.csv }
vars: { shop: "Olena & Co" }
channels:
  - sms:
      signature: OlenaCo
      message: "Hello {{ first_name }} {{ last_name }}, {{ shop }} has -20% for you until {{ until }}: https://shop.example/?c={{ code }}"
delivery: { batch: 100, in_flight: 16 }
"#;

/// A temporary folder with all the files that a run needs.
pub(crate) struct Scene(tempfile::TempDir);

impl Scene {
    /// Creates a campaign to `rows` recipients, and a profile for the gateway at `server` with the rate limit `rate`.
    pub(crate) fn new(rows: u64, server: SocketAddr, rate: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        fs::write(path.join("bench.yaml"), CAMPAIGN).expect("the campaign is written");
        let profile = format!(
            "bench: {{ base_url: \"http://{server}\", async_url: \"http://{server}\", api_key: {{ env: BENCH_KEY }}, rate: {rate} }}\n"
        );
        fs::write(path.join("gateways.yaml"), profile).expect("the profile is written");
        list::write(&path.join("bench.csv"), rows).expect("the list is written");
        Self(folder)
    }

    /// A `campaign` command in this folder. If `BENCH_PROGRAM` is set, the command runs that program instead.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let program = std::env::var_os("BENCH_PROGRAM");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_campaign").into()));
        command.current_dir(self.path()).env("BENCH_KEY", "key").args(arguments).args(["--state-dir", "state"]);
        command
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Checks that every recipient got a message. Otherwise, the figures are meaningless.
    pub(crate) fn assert_all_accepted(&self, rows: u64) {
        let results = File::open(self.path().join("results/bench.csv")).expect("the results");
        let accepted = BufReader::new(results).lines().map_while(Result::ok).filter(|line| line.contains(",accepted,"));
        assert_eq!(accepted.count() as u64, rows, "every row is accepted");
    }
}
