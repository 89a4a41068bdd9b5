//! Real servers, each in a directory of its own.

pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod seaweedfs;
