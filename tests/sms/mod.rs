//! SMS parts, characters that need more parts, and their replacements.

mod costs;
mod plain;
mod segments;
