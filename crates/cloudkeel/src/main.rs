//! The `cloudkeel` binary.

fn main() {}
