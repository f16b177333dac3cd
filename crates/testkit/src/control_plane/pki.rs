//! The keys and certificates of one run.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::ControlPlaneError;

/// The attribute that carries a group. rcgen keeps one value for each attribute type, so a second group is
/// written under the same object identifier spelled out.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// The names under which the API server may be addressed.
const SERVER_NAMES: [&str; 5] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// A certificate authority, made for one run.
#[derive(Debug)]
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: Vec<u8>,
}

/// A certificate and its key, in PEM.
#[derive(Debug)]
pub(super) struct Identity {
    certificate: String,
    key: String,
}

/// The files of an [`Identity`].
#[derive(Clone, Debug)]
pub(super) struct IdentityFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Authority {
    pub(super) fn new(common_name: &str) -> Result<Self, ControlPlaneError> {
        let (params, key) = (authority_params(common_name), KeyPair::generate()?);
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            der: certificate.der().to_vec(),
            issuer: Issuer::new(params, key),
        })
    }

    /// The authority of another process, of the same name, by its certificate and its key.
    pub(super) fn of(
        common_name: &str,
        pem: String,
        der: Vec<u8>,
        key: &str,
    ) -> Result<Self, ControlPlaneError> {
        let key = KeyPair::from_pem(key)?;
        let issuer = Issuer::new(authority_params(common_name), key);
        Ok(Self { issuer, pem, der })
    }

    pub(super) fn pem(&self) -> String {
        self.pem.clone()
    }

    pub(super) fn der(&self) -> Vec<u8> {
        self.der.clone()
    }

    /// Its private key, in PEM.
    pub(super) fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The certificate of the API server itself.
    pub(super) fn server(&self) -> Result<Identity, ControlPlaneError> {
        let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
        params
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate that the API server reads as a user in up to two groups.
    pub(super) fn client(
        &self,
        user: &str,
        groups: &[&str],
    ) -> Result<Identity, ControlPlaneError> {
        let mut params = CertificateParams::default();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, user);
        let spellings = [
            DnType::OrganizationName,
            DnType::CustomDnType(ORGANIZATION.into()),
        ];
        if groups.len() > spellings.len() {
            return Err(ControlPlaneError::TooManyGroups {
                user: user.to_owned(),
                groups: groups.join(", "),
            });
        }
        for (spelling, group) in spellings.into_iter().zip(groups) {
            name.push(spelling, *group);
        }
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, ControlPlaneError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        // Every extension makes the certificate X.509 v3; rustls accepts nothing older.
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// What makes a certificate that of an authority.
fn authority_params(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

impl Identity {
    /// Writes `NAME.crt` and `NAME.key`.
    pub(super) fn write(&self, dir: &Path, name: &str) -> io::Result<IdentityFiles> {
        let files = IdentityFiles {
            certificate: dir.join(format!("{name}.crt")),
            key: dir.join(format!("{name}.key")),
        };
        std::fs::write(&files.certificate, &self.certificate)?;
        std::fs::write(&files.key, &self.key)?;
        Ok(files)
    }
}

/// The keys that sign and check the tokens of service accounts, in PEM.
pub(super) struct TokenKeys {
    pub(super) signing: String,
    pub(super) verifying: String,
}

impl TokenKeys {
    pub(super) fn new() -> Result<Self, ControlPlaneError> {
        let key = KeyPair::generate()?;
        Ok(Self {
            signing: key.serialize_pem(),
            verifying: key.public_key_pem(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_in_three_groups_is_refused_with_their_names() {
        let error = Authority::new("test")
            .unwrap()
            .client("jane", &["a", "b", "c"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("jane") && error.contains("a, b, c"),
            "{error}"
        );
    }

    #[test]
    fn every_authority_has_a_key_of_its_own() {
        let [first, second] = ["same", "same"].map(|name| Authority::new(name).unwrap().pem());
        assert_ne!(first, second);
    }
}
