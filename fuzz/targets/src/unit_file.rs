//! Unit files, and what they ask of machines.

use os_upgrade_scheduler::{
    Requirements, UNIT_BYTES_MAX, UnitFile, UnitFileProblem, UnitName, VALUES_MAX, unknown_options,
};

use crate::text::{is_one_line, split};

/// A line with the name of a unit, then its file.
pub fn unit_file(data: &[u8]) {
    let [name, text] = split(data, b'\n').map(str::from_utf8);
    let (Ok(name), Ok(text)) = (name, text) else { return };
    let file = match UnitFile::parse(text) {
        Ok(file) => file,
        Err(error) => return assert!(error.line > 0 && is_one_line(&error.to_string())),
    };
    assert!(file.text() == text && text.len() <= UNIT_BYTES_MAX);
    is_read_back(&file);
    match UnitName::new(name) {
        Ok(name) => may_be_required(&name, &file),
        Err(error) => assert!(is_one_line(&error.to_string())),
    }
}

/// A file that is written from the options of another one has the same.
fn is_read_back(file: &UnitFile) {
    let written = match UnitFile::from_options(file.options().to_vec()) {
        Ok(written) => written,
        // An empty line between sections may be too much.
        Err(error) => return assert_eq!(error.problem, UnitFileProblem::TooLong),
    };
    assert_eq!(written.options().len(), file.options().len());
    assert_eq!((written.file_hash(), written.options_hash()), (file.options_hash(), file.options_hash()));
    // Each call goes through all options.
    for option in file.options().iter().take(16) {
        assert!(file.values(&option.section, &option.name).eq(written.values(&option.section, &option.name)));
    }
}

fn may_be_required(name: &UnitName, file: &UnitFile) {
    assert!(unknown_options(file).len() <= file.options().len());
    let requirements = match Requirements::read(name, file) {
        Ok(requirements) => requirements,
        Err(error) => return assert!(error.line > 0 && is_one_line(&error.to_string())),
    };
    let Requirements { machine_of, conflicts, replaces, .. } = &requirements;
    assert!([machine_of.len(), conflicts.len(), replaces.len()].iter().all(|values| *values <= VALUES_MAX));
    assert!(conflicts.is_empty() || replaces.is_empty());
    let mut opposed = conflicts.iter().chain(replaces);
    assert!(!opposed.any(|pattern| machine_of.iter().any(|peer| pattern.matches(peer))));
    if requirements.is_global || requirements.machine_id.is_some() {
        assert!(machine_of.is_empty() && replaces.is_empty());
    }
}
