//! Lays the committed corpus out the way that bolero reads it: a file of bytes for each case.

use std::path::Path;

use cases::fuzz::corpus;

/// Writes the cases of the corpus of that name, and more to start from, into `package/NAME/corpus`; what is there stays.
///
/// # Panics
///
/// The folder cannot be written.
pub fn lay_out(package: &str, name: &str, seeds: &[Vec<u8>]) {
    let folder = Path::new(package).join(name).join("corpus");
    let seeds = seeds.iter().enumerate().map(|(number, seed)| (format!("seed-{number}"), seed.clone()));
    let cases = corpus(name).into_iter().chain(seeds);
    let written = std::fs::create_dir_all(&folder).and_then(|()| {
        cases.into_iter().try_for_each(|(file, case)| std::fs::write(folder.join(file.trim_end_matches(".hex")), case))
    });
    assert!(written.is_ok(), "{}: {written:?}", folder.display());
}
