//! Sending: what goes over the wire, what the results say of it, and that nobody gets it twice.

mod batches;
mod limits;
mod operations;
mod outcome;
mod pauses;
mod repeated_edition;
mod rounds;
mod rows_of_a_number;
mod wire;
