//! The OpenAPI document.

use std::path::Path;

/// `UPDATE=1 cargo test -p outrigger-host-http --test it documents` writes it anew.
#[test]
fn the_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/openapi.json");
    let current = format!("{:#}\n", outrigger_host_http::openapi());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == current,
        "the document is out of date: run UPDATE=1 cargo test -p outrigger-host-http --test it documents"
    );
}
