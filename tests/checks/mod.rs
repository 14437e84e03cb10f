//! `campaign check`: findings, output formats, and warnings before a campaign is sent.

mod all_findings;
mod campaign_tests;
mod damaged;
mod empty_cells;
mod explained;
mod fixing;
mod forms;
mod opt_out_instructions;
mod opted_out;
mod people;
mod texts;
mod unrenderable_texts;
