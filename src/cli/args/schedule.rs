//! The arguments of what runs by itself.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ScheduleCommand {
    /// Arm a campaign with a schedule: it runs by itself from now on, while `campaign serve` does
    Add(ArmArgs),
    /// Show what is armed, and when it is due
    List,
    /// Show when a campaign with a schedule is due next
    Next(NextArgs),
    /// Have nothing of a schedule fire until it is resumed
    Pause(ScheduleName),
    /// Have a schedule fire again
    Resume(ScheduleName),
    /// Forget a schedule
    Remove(ScheduleName),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ArmArgs {
    /// The campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Arm it without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ScheduleName {
    /// The campaign's name
    #[arg(id = "schedule", value_name = "NAME")]
    pub(in crate::cli) name: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct NextArgs {
    /// The campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// How many times to show
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(in crate::cli) count: u32,
    /// The moment after which they are looked for: 2026-12-01, `2026-12-01 10:00` on the campaign's clocks, or with an offset
    /// [default: now]
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) from: Option<String>,
}
