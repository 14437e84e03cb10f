//! The arguments of `schedule`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ScheduleCommand {
    /// Activate the schedule of a campaign
    ///
    /// From then on, `campaign serve` runs the campaign without asking, whenever it is due.
    Add(ScheduleAddArgs),
    /// List the active schedules and their next runs
    List,
    /// Show when a campaign's schedule fires next
    Next(NextArgs),
    /// Pause a schedule until you resume it
    Pause(ScheduleName),
    /// Resume a paused schedule
    Resume(ScheduleName),
    /// Deactivate and remove a schedule
    Remove(ScheduleName),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ScheduleAddArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Activate without asking
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ScheduleName {
    /// Name of the campaign
    #[arg(id = "schedule", value_name = "NAME")]
    pub(in crate::cli) name: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct NextArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Show the times of N runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(in crate::cli) count: u32,
    /// Show runs after this time [default: now]
    ///
    /// Write 2026-12-01 or `2026-12-01 10:00`, in the campaign's time zone, or a time with an offset.
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) from: Option<String>,
}
