//! `campaign check`: findings, output formats, and warnings before a campaign is sent.

mod at_once;
mod campaign_tests;
mod damaged;
mod empty_cells;
mod explained;
mod failing;
mod fixing;
mod forms;
mod opted_out;
mod people;
mod texts;
mod ways_out;
