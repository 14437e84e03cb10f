//! Programs that notify someone: no shell, a minimal environment, and a timeout.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use campaign_content::message::{Notice, fill_notice};

/// The environment variables that a program gets. Others might contain keys and addresses.
const PASSED_VARIABLES: [&str; 9] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Starts the program with the notice in its arguments and as JSON on standard input, and waits until the timeout.
pub(super) async fn run_program(
    words: &[String],
    notice: &Notice,
    all: &[Notice],
    patience: Duration,
) -> Result<(), String> {
    let words = words.iter().map(|word| fill_notice(word, notice, all.len())).collect::<Result<Vec<_>, _>>()?;
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true);
    command.envs(PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot start `{program}`: {error}"))?;
    let json = serde_json::to_vec(all).unwrap_or_default();
    let ended = async {
        if let Some(mut stdin) = child.stdin.take() {
            // The program does not have to read its input.
            let _ = stdin.write_all(&json).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(patience, ended).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("`{program}` failed: {status}")),
        Ok(Err(error)) => Err(format!("cannot wait for `{program}`: {error}")),
        Err(_) => Err(format!("`{program}` did not finish within {} s, so it was stopped", patience.as_secs())),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    async fn run_words(words: &[&str], patience: Duration) -> Result<(), String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let notice = Notice { text: "a; touch /nowhere $(x) `y`".to_owned(), ..Notice::sample() };
        run_program(&words, &notice, std::slice::from_ref(&notice), patience).await
    }

    #[tokio::test]
    async fn program_gets_exact_arguments_and_json_on_stdin() {
        let folder = tempfile::tempdir().unwrap();
        let (out, input) = (folder.path().join("out"), folder.path().join("in"));
        let script =
            format!("printf %s \"$1\" > {}; cat > {}; env >> {}.env", out.display(), input.display(), out.display());
        run_words(&["sh", "-c", &script, "sh", "{{ text }}"], Duration::from_secs(30)).await.unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "a; touch /nowhere $(x) `y`");
        let notices: Vec<Notice> = serde_json::from_str(&std::fs::read_to_string(&input).unwrap()).unwrap();
        assert_eq!(notices.len(), 1);
        let env = std::fs::read_to_string(folder.path().join("out.env")).unwrap();
        assert!(!env.contains("CARGO"), "{env}");
    }

    #[tokio::test]
    async fn failing_missing_or_hanging_program_is_reported() {
        assert!(run_words(&["false"], Duration::from_secs(30)).await.is_err());
        assert!(run_words(&["/nowhere/at/all"], Duration::from_secs(30)).await.unwrap_err().contains("cannot start"));
        assert!(run_words(&["sleep", "600"], Duration::from_millis(50)).await.unwrap_err().contains("was stopped"));
    }
}
