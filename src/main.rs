//! The binary: collects the arguments, calls the command line, exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(campaign::cli::main(std::env::args_os()))
}
