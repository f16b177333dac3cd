//! A certificate of our own, where none was given.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};

use super::pair::{PairBytes, PairFiles};

/// The organization in our own certificates, by which we know that we may replace one.
const ORGANIZATION: &str = "cloudkeel self-made";

const DAYS_VALID: i64 = 365;

/// A third of its life before it ends, a certificate is made anew.
const LEFT_AT_RENEWAL: SignedDuration = SignedDuration::from_hours(24 * DAYS_VALID / 3);

/// How to make a certificate, and where to keep it.
#[derive(Debug, Clone)]
pub(super) struct SelfMade {
    /// Names and addresses of this server.
    names: Vec<String>,
    /// The files it is kept in; in memory without.
    files: Option<PairFiles>,
}

impl SelfMade {
    pub(super) fn new(names: &[String], directory: Option<&Path>, pair_name: &str) -> Self {
        let mut all: Vec<_> = ["localhost", "127.0.0.1"].map(str::to_owned).into();
        for name in names {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        Self {
            names: all,
            files: directory.map(|directory| PairFiles {
                certificate: directory.join(format!("{pair_name}.crt")),
                key: directory.join(format!("{pair_name}.key")),
            }),
        }
    }

    pub(super) fn files(&self) -> Option<&PairFiles> {
        self.files.as_ref()
    }

    /// Whether a certificate is one of ours that should be replaced.
    pub(super) fn is_due(organization: Option<&str>, expires: Timestamp, now: Timestamp) -> bool {
        let renewal = expires
            .checked_sub(LEFT_AT_RENEWAL)
            .unwrap_or(Timestamp::MIN);
        organization == Some(ORGANIZATION) && now >= renewal
    }

    /// Makes a certificate, and keeps it if there is a place for it.
    pub(super) fn make(&self, now: Timestamp) -> Result<PairBytes, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = self
            .params(now)
            .and_then(|params| params.self_signed(&key))
            .map_err(|error| format!("for {}: {error}", self.names.join(", ")))?;
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        if let Some(files) = &self.files {
            keep(files, &certificate, &key)?;
        }
        Ok(PairBytes::new(certificate, key))
    }

    fn params(&self, now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::new(self.names.clone())?;
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "cloud-controller-manager");
        name.push(DnType::OrganizationName, ORGANIZATION);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let today = now.to_zoned(TimeZone::UTC).date();
        let day = |offset: i64| {
            let date = today.saturating_add(offset.days());
            let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
            rcgen::date_time_ymd(date.year().into(), month, day)
        };
        // A day of grace for clocks that are behind.
        params.not_before = day(-1);
        params.not_after = day(DAYS_VALID);
        Ok(params)
    }
}

/// Writes both files, each whole or not at all, the key for nobody else to read.
fn keep(files: &PairFiles, certificate: &str, key: &str) -> Result<(), String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    if let Some(directory) = files.key.parent() {
        std::fs::create_dir_all(directory).map_err(failed(directory))?;
    }
    write_whole(&files.key, key, 0o600).map_err(failed(&files.key))?;
    write_whole(&files.certificate, certificate, 0o644).map_err(failed(&files.certificate))
}

fn write_whole(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut draft = PathBuf::from(path).into_os_string();
    draft.push(format!(".{}.tmp", std::process::id()));
    let draft = PathBuf::from(draft);
    // What stands there may be left over, or somebody's link, or a file that others may read: none of them
    // gets the key.
    if let Err(error) = std::fs::remove_file(&draft)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&draft)?;
    file.write_all(text.as_bytes())?;
    // Else a machine that fails now may find an empty file under the final name, and refuse to start.
    file.sync_all()?;
    std::fs::rename(&draft, path)
}
