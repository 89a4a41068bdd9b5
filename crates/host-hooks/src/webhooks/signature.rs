//! Signatures as Standard Webhooks has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use outrigger_host::WebhookSecret;
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// A new secret: 256 random bits.
pub(super) fn secret() -> std::io::Result<WebhookSecret> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(WebhookSecret::new(format!("{PREFIX}{}", STANDARD.encode(key))))
}

/// The header `webhook-signature` of a message; `None` if the secret is none.
pub(super) fn signature(secret: &WebhookSecret, id: &str, timestamp: i64, body: &str) -> Option<String> {
    let key = STANDARD.decode(secret.reveal().strip_prefix(PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body.as_bytes());
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// The example of the libraries of Standard Webhooks.
    #[test]
    fn a_signature_is_that_of_the_standard() {
        let secret = WebhookSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = signature(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signed.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_differ_and_can_sign() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one != other);
        assert_ne!(
            signature(&one, "a", 1, "b").unwrap(),
            signature(&other, "a", 1, "b").unwrap()
        );
        assert_eq!(signature(&WebhookSecret::new("no secret"), "a", 1, "b"), None);
    }
}
