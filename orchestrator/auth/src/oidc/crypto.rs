//! Verifies signatures of JSON Web Tokens with ring, which the program uses for TLS anyway.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature as ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    // Nothing is signed here.
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        Verification::of(*algorithm)
            .map(|_| {
                Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }) as Box<dyn JwtVerifier>
            })
            .ok_or_else(|| ErrorKind::UnsupportedAlgorithm.into())
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs the provider for the whole process.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // This fails only if a provider is installed already.
        let _ = PROVIDER.install_default();
    });
}

/// How ring verifies signatures of an algorithm.
enum Verification {
    Rsa(&'static ring::RsaParameters),
    Other(&'static dyn ring::VerificationAlgorithm),
}

impl Verification {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library's list may grow, ours may not")]
    fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&ring::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&ring::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&ring::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&ring::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&ring::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&ring::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Other(&ring::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Other(&ring::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Self::Other(&ring::ED25519),
            _ => return None,
        })
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verification = Verification::of(self.algorithm).ok_or_else(signature::Error::new)?;
        let result = match (verification, self.key.kind()) {
            (Verification::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = ring::RsaPublicKeyComponents { n: strip_zeros(n), e: strip_zeros(e) };
                key.verify(parameters, message, signature)
            }
            (Verification::Other(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                ring::UnparsedPublicKey::new(algorithm, key).verify(message, signature)
            }
            (Verification::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (Verification::Other(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                return Err(signature::Error::new());
            }
        };
        result.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Strips leading zeros, which some providers write and ring does not accept.
fn strip_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
