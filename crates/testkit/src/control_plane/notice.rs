//! Lines for the person who watches the tests.

use std::io::Write;

/// Writes one line to the real standard error.
///
/// The print macros would go through the test harness, which shows nothing until a test has failed;
/// someone who waits minutes for a build should see why.
pub(super) fn notice(line: &str) {
    // With standard error closed there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "cloudkeel-testkit: {line}");
}
