//! What npm installs, once for all tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What npm installs for the language, kept between runs beside the compiled tests.
pub fn packages(language: &str, project: &Path) -> PathBuf {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("languages").join(language);
    let wanted = std::fs::read_to_string(project.join("package.json")).unwrap();
    let stamp = kept.join("installed.json");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return kept.join("node_modules");
    }
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("package.json"), &wanted).unwrap();
    let install = || {
        Command::new("npm")
            .args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent", "--fetch-retries=5"])
            .current_dir(&kept)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("npm: {error} (HOMEOSTAT_SKIP_LANGUAGES={language} leaves it out)"))
    };
    let mut output = install();
    // A registry that stumbles is given time.
    for pause in [10, 60] {
        if output.status.success() {
            break;
        }
        std::thread::sleep(Duration::from_secs(pause));
        output = install();
    }
    assert!(
        output.status.success(),
        "npm install: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::write(stamp, wanted).unwrap();
    kept.join("node_modules")
}
