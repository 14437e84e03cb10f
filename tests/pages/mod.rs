//! What people look at in a browser: files that `preview` and `plan` write.

mod files;
