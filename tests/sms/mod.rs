//! SMS: how many parts a text has, which characters cost parts, and what replaces them.

mod costs;
mod plain;
mod segments;
