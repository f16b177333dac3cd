//! Progress lines for people who watch the tests.

use std::io::Write;

/// Writes one line to the real standard error.
///
/// The print macros would go through the test harness, which shows nothing until a test has failed;
/// a developer who waits minutes for a build should see why.
pub(super) fn notice(line: &str) {
    // With standard error closed there is no reader.
    let _ = writeln!(std::io::stderr().lock(), "cloudkeel-testkit: {line}");
}
