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

    /// The same, kept nowhere.
    pub(super) fn in_memory(self) -> Self {
        Self {
            files: None,
            ..self
        }
    }

    /// Whether a certificate is one of ours that should be replaced.
    pub(super) fn is_due(organization: Option<&str>, expires: Timestamp, now: Timestamp) -> bool {
        let renewal = expires
            .checked_sub(LEFT_AT_RENEWAL)
            .unwrap_or(Timestamp::MIN);
        organization == Some(ORGANIZATION) && now >= renewal
    }

    /// Makes a certificate.
    pub(super) fn make(&self, now: Timestamp) -> Result<PairBytes, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = self
            .params(now)
            .and_then(|params| params.self_signed(&key))
            .map_err(|error| format!("for {}: {error}", self.names.join(", ")))?;
        Ok(PairBytes::new(certificate.pem(), key.serialize_pem()))
    }

    /// Keeps a certificate, if there is a place for it. Both files are written before one is in its place:
    /// half a pair would be in the way of every start to come.
    pub(super) fn keep(&self, pair: &PairBytes) -> Result<(), String> {
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
        let key = Draft::write(&files.key, &pair.key, 0o600).map_err(failed(&files.key))?;
        let certificate = Draft::write(&files.certificate, &pair.certificate, 0o644)
            .map_err(failed(&files.certificate))?;
        key.put_in_place().map_err(failed(&files.key))?;
        certificate
            .put_in_place()
            .map_err(failed(&files.certificate))
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

/// A file that is written beside its place, and gone unless it is put there. The key is for nobody else to
/// read.
struct Draft<'a> {
    path: PathBuf,
    place: &'a Path,
}

impl<'a> Draft<'a> {
    fn write(place: &'a Path, content: &[u8], mode: u32) -> io::Result<Self> {
        let mut path = place.as_os_str().to_owned();
        path.push(format!(".{}.tmp", std::process::id()));
        let draft = Self {
            path: PathBuf::from(path),
            place,
        };
        // What stands there may be left over, or somebody's link, or a file that others may read: none of
        // them gets the key.
        if let Err(error) = std::fs::remove_file(&draft.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&draft.path)?;
        file.write_all(content)?;
        // Else a machine that fails now may find an empty file under the final name, and refuse to start.
        file.sync_all()?;
        Ok(draft)
    }

    fn put_in_place(self) -> io::Result<()> {
        std::fs::rename(&self.path, self.place)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // One that is in its place is not here any more.
        let _ = std::fs::remove_file(&self.path);
    }
}
