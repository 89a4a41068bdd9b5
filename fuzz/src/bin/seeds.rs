//! Writes the inputs to begin with into `fuzz/corpus`; then `cargo xtask fuzz --minimize` keeps what adds coverage.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let targets = [
        ("codec", outrigger_fuzz::seeds::codec()),
        ("core", outrigger_fuzz::seeds::core()),
        ("host", outrigger_fuzz::seeds::host()),
        ("session", outrigger_fuzz::seeds::session()),
    ];
    for (target, seeds) in targets {
        let directory = corpus.join(target);
        std::fs::create_dir_all(&directory)?;
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{number:03}")), seed)?;
        }
    }
    Ok(())
}
