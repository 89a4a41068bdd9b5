//! When a cassette is recorded, and when it is played.

use super::*;

#[test]
fn the_variable_says_what_becomes_of_a_cassette() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, there) = (
        directory.path().join("missing.ndjson"),
        directory.path().join("there.ndjson"),
    );
    std::fs::write(&there, "{\"t\":0,\"dir\":\"meta\",\"msg\":{\"cassette\":2}}\n").unwrap();
    for variable in [None, Some(""), Some("0"), Some("new")] {
        assert!(
            matches!(once(&there, variable), Ok(Once::Play(_))),
            "{variable:?}"
        );
    }
    for (path, variable) in [(&there, "1"), (&there, "all"), (&missing, "1"), (&missing, "new")] {
        assert!(
            matches!(once(path, Some(variable)), Ok(Once::Record(_))),
            "{variable}"
        );
    }
    let error = once(&missing, None).unwrap_err().to_string();
    assert!(
        error.contains("OUTRIGGER_RECORD=new") && error.contains("missing.ndjson"),
        "{error}"
    );
    let error = once(&there, Some("yes")).unwrap_err().to_string();
    assert!(error.contains("\"yes\""), "{error}");
    std::fs::write(&there, "{}\n").unwrap();
    let error = once(&there, None).unwrap_err().to_string();
    assert!(error.contains("no cassette"), "{error}");
}
