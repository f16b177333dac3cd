//! A self-signed certificate, where none was given.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};

use super::key_pair::{KeyPairFiles, KeyPairPem};

/// The organization in certificates that we created, and may therefore replace. Never change it: saved certificates
/// contain it.
const ORGANIZATION: &str = "cloudkeel self-made";

const DAYS_VALID: i64 = 365;

/// A certificate is renewed when a third of its lifetime is left.
const RENEW_BEFORE_EXPIRY: SignedDuration = SignedDuration::from_hours(24 * DAYS_VALID / 3);

/// How to create a certificate, and where to save it.
#[derive(Debug, Clone)]
pub(super) struct SelfSigned {
    /// Names and addresses of this server.
    names: Vec<String>,
    /// The files it is saved in; `None` keeps it in memory.
    files: Option<KeyPairFiles>,
}

impl SelfSigned {
    pub(super) fn new(names: &[String], directory: Option<&Path>, pair_name: &str) -> Self {
        let mut all: Vec<_> = ["localhost", "127.0.0.1"].map(str::to_owned).into();
        for name in names {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        Self {
            names: all,
            files: directory.map(|directory| KeyPairFiles {
                certificate: directory.join(format!("{pair_name}.crt")),
                key: directory.join(format!("{pair_name}.key")),
            }),
        }
    }

    pub(super) fn files(&self) -> Option<&KeyPairFiles> {
        self.files.as_ref()
    }

    /// The same, kept in memory only.
    pub(super) fn in_memory(self) -> Self {
        Self {
            files: None,
            ..self
        }
    }

    /// Whether a certificate is one that we created and that is due for renewal.
    pub(super) fn is_due(organization: Option<&str>, expires: Timestamp, now: Timestamp) -> bool {
        let renewal = expires
            .checked_sub(RENEW_BEFORE_EXPIRY)
            .unwrap_or(Timestamp::MIN);
        organization == Some(ORGANIZATION) && now >= renewal
    }

    /// Creates a certificate.
    pub(super) fn make(&self, now: Timestamp) -> Result<KeyPairPem, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = self
            .params(now)
            .and_then(|params| params.self_signed(&key))
            .map_err(|error| format!("for {}: {error}", self.names.join(", ")))?;
        Ok(KeyPairPem::new(certificate.pem(), key.serialize_pem()))
    }

    /// Saves a certificate, if there is a directory for it. Both files are written before either is renamed into
    /// place: half a pair would make every later start fail.
    pub(super) fn save(&self, pair: &KeyPairPem) -> Result<(), String> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| format!("{path}: {error}")
        };
        if let Some(directory) = files.key.parent() {
            std::fs::create_dir_all(directory).map_err(failed(directory))?;
        }
        let key = TempFile::write(&files.key, &pair.key, 0o600).map_err(failed(&files.key))?;
        let certificate = TempFile::write(&files.certificate, &pair.certificate, 0o644)
            .map_err(failed(&files.certificate))?;
        key.rename().map_err(failed(&files.key))?;
        certificate.rename().map_err(failed(&files.certificate))
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
        // A day of tolerance for clocks that are behind.
        params.not_before = day(-1);
        params.not_after = day(DAYS_VALID);
        Ok(params)
    }
}

/// A file that is written beside its final path, and removed unless it is renamed. Only the owner can read the key.
struct TempFile<'a> {
    path: PathBuf,
    place: &'a Path,
}

impl<'a> TempFile<'a> {
    fn write(place: &'a Path, content: &[u8], mode: u32) -> io::Result<Self> {
        let mut path = place.as_os_str().to_owned();
        path.push(format!(".{}.tmp", std::process::id()));
        let temp = Self {
            path: PathBuf::from(path),
            place,
        };
        // An existing file may be left over, a symbolic link, or readable by others: it must not receive the key.
        if let Err(error) = std::fs::remove_file(&temp.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temp.path)?;
        file.write_all(content)?;
        // Without it, a crash may leave an empty file under the final name, and the next start fails.
        file.sync_all()?;
        Ok(temp)
    }

    fn rename(self) -> io::Result<()> {
        std::fs::rename(&self.path, self.place)
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = std::fs::remove_file(&self.path);
    }
}
