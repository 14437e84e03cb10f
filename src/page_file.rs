//! Files for pages and evidence: checks of the path, atomic writes, and opening a page in a browser.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::exit::CommandFailure;
use super::output::Output;
use campaign_core::finding::quote_for_shell;
use campaign_core::{private, regular_file};

/// The tag near the beginning of every page that this program writes.
const GENERATOR_TAG: &str = "<meta name=\"generator\" content=\"campaign\">";
/// The number of bytes at the start of a file that are searched for the tag.
const TAG_SEARCH_BYTES: u64 = 4096;
/// The time for which the command waits for an error of the program that opens files.
const OPENER_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks that a page can be written to a path.
///
/// # Errors
/// If the path is `-`, a folder, or a file that must not be replaced.
pub(super) fn check_page_path(path: &Path) -> Result<(), CommandFailure> {
    check_output_path(path, GENERATOR_TAG, "a page written by campaign")
}

/// Checks that a file can be written to a path. An existing file can be replaced only if `tag` is near its beginning.
/// `description` names such files.
///
/// # Errors
/// If the path is `-`, a folder, or a file that must not be replaced.
pub(super) fn check_output_path(path: &Path, tag: &str, description: &str) -> Result<(), CommandFailure> {
    if path.as_os_str() == "-" {
        return Err(CommandFailure::invalid(
            "a page cannot be written to standard output; specify a file, for example `preview.html`",
        ));
    }
    if path.is_dir() {
        return Err(CommandFailure::invalid(format!("`{}` is a folder; choose a file in it", path.display())));
    }
    match is_replaceable(path, tag) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(CommandFailure::invalid(format!("`{}` already exists and is not {description}", path.display()))
                .with_help("choose another file"))
        }
        Err(error) => Err(unwritable_page(path, &error)),
    }
}

/// Whether a path can be overwritten: there is no file, an empty file, or a file with `tag` near its beginning.
fn is_replaceable(path: &Path, tag: &str) -> io::Result<bool> {
    let mut beginning = Vec::new();
    match regular_file::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        opened => opened?.take(TAG_SEARCH_BYTES).read_to_end(&mut beginning)?,
    };
    Ok(beginning.is_empty() || String::from_utf8_lossy(&beginning).contains(tag))
}

/// Writes a page to a path.
///
/// # Errors
/// If the page cannot be written.
pub(super) fn write_page(path: &Path, page: &str) -> Result<(), CommandFailure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = (|| {
        // The file is private from the start.
        let mut file = tempfile::Builder::new().prefix(".campaign-page-").tempfile_in(folder)?;
        file.write_all(page.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        private::sync_entry(path)
    })();
    written.map_err(|error| unwritable_page(path, &error))
}

fn unwritable_page(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::invalid(format!("cannot write the page `{}`: {error}", path.display()))
}

/// Opens a page with the default program. If that is impossible, prints the reason and the path of the page.
pub(super) async fn open_page(output: &Output, path: &Path) {
    if let Err(reason) = try_open_page(path).await {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let page = quote_for_shell(&absolute);
        output.print_note(&format!("the page was not opened, because {reason}; open {page} in a browser"));
    }
}

/// Opens a page with the default program.
///
/// # Errors
/// If the page cannot be opened; the error is the reason.
pub(super) async fn try_open_page(path: &Path) -> Result<(), String> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let command = opener_command(&absolute).ok_or("no graphical display is available")?;
    start_opener(command).await
}

/// The command that opens a file. `None` if there is no graphical display.
fn opener_command(path: &PathBuf) -> Option<Command> {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        // Not `cmd`, which would interpret special characters in the file name.
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        let has_display = ["WAYLAND_DISPLAY", "DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        has_display.then(|| Command::new("xdg-open"))?
    };
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Some(command)
}

/// Starts the command, and waits briefly in case it fails. The command might run until the browser exits.
async fn start_opener(mut command: Command) -> Result<(), String> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    match tokio::time::timeout(OPENER_TIMEOUT, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(format!("`{program}` failed")),
        _ => Ok(()),
    }
}
