//! Sending a campaign: request bodies, results, and protection from duplicate messages.

mod batches;
mod limits;
mod operations;
mod outcome;
mod pauses;
mod repeated_edition;
mod rounds;
mod rows_of_a_number;
mod wire;
