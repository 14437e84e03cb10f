//! The command line: arguments, output, exit codes, one file per command.
