//! The binary: passes the arguments to the command line and exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(campaign::main(std::env::args_os()))
}
