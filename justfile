# The everyday commands; `cargo xtask` has what is more than a line.

# List the recipes.
default:
    @just --list

# The README's test command.
test *args:
    cargo xtask test {{args}}

# What CI runs.
ci:
    .ci/run

# A real session with a scripted model; no key needed.
demo:
    cargo run -p outrigger-cli -- demo

# Format and lint.
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings

# The documentation, as published.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --open
