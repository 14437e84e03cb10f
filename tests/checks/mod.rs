//! `campaign check`: what it finds, in which forms, and what it shows of a campaign before a message leaves.

mod at_once;
mod damaged;
mod empty_cells;
mod explained;
mod failing;
mod forms;
mod opted_out;
mod people;
mod texts;
