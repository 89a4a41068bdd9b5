//! Tests of the judge.
