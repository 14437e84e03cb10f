//! Campaign files and gateway profiles: YAML becomes `Campaign` and `Profile`.
