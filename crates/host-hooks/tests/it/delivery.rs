//! Messages by HTTP, to receivers on the loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outrigger_host::AddressRule;
use outrigger_host_hooks::{Deliver as _, DeliveryError, HttpDeliver, Message};
use rustls::RootCertStore;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// For a test that would otherwise hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads a request and answers with this text.
async fn answer(mut io: impl AsyncRead + AsyncWrite + Unpin, answer: &str) -> String {
    let mut request = String::new();
    while !request.ends_with("{\"n\":1}") {
        let mut bytes = [0; 1024];
        let read = io.read(&mut bytes).await.unwrap();
        assert_ne!(read, 0, "{request}");
        request.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }
    io.write_all(answer.as_bytes()).await.unwrap();
    let _ = io.shutdown().await;
    request
}

/// A receiver of one request, without TLS.
async fn receiver(text: &str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let text = text.to_owned();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, &text).await
    });
    (address, task)
}

fn loopback() -> AddressRule {
    AddressRule::public().allow("127.0.0.0/8").unwrap()
}

async fn send(rule: AddressRule, roots: RootCertStore, url: String) -> Result<(), DeliveryError> {
    let mut message: Message = message();
    message.url = url;
    let deliver = HttpDeliver::with_roots(rule, roots).unwrap();
    let sent = tokio::time::timeout(PATIENCE, deliver.deliver(message)).await;
    sent.expect("the message is on its way for ever")
}

fn message() -> Message {
    Message::new(
        "https://example.com/",
        "evt_1",
        1_614_265_330,
        "v1,c2lnbmF0dXJl",
        r#"{"n":1}"#,
    )
}

#[tokio::test]
async fn a_message_has_the_headers_of_the_standard() {
    let (address, request) = receiver("HTTP/1.1 204 No Content\r\n\r\n").await;
    send(
        loopback(),
        RootCertStore::empty(),
        format!("http://{address}/in?x=1"),
    )
    .await
    .unwrap();
    let request = request.await.unwrap().to_ascii_lowercase();
    assert!(request.starts_with("post /in?x=1 http/1.1\r\n"), "{request}");
    for line in [
        &format!("host: {address}"),
        "content-type: application/json",
        "webhook-id: evt_1",
        "webhook-timestamp: 1614265330",
        "webhook-signature: v1,c2lnbmf0dxjl",
    ] {
        assert!(request.contains(line), "{line} in {request}");
    }
}

#[tokio::test]
async fn a_receiver_with_tls_has_to_be_known() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        assert!(
            acceptor.accept(stream).await.is_err(),
            "the first one does not trust it"
        );
        let (stream, _) = listener.accept().await.unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        answer(stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await
    });
    let url = format!("https://localhost:{port}/");
    let unknown = send(loopback(), RootCertStore::empty(), url.clone())
        .await
        .unwrap_err();
    assert!(unknown.reason.contains("certificate"), "{unknown}");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    send(loopback(), roots, url).await.unwrap();
    assert!(served.await.unwrap().contains("webhook-id: evt_1"));
}

#[tokio::test]
async fn no_name_and_no_redirect_leads_to_an_address_that_the_rule_does_not_have() {
    // The name of the loopback resolves to what is not public.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for url in [
        format!("https://localhost:{port}/"),
        format!("https://127.0.0.1:{port}/"),
    ] {
        let refused = send(AddressRule::public(), RootCertStore::empty(), url)
            .await
            .unwrap_err();
        assert!(
            refused
                .reason
                .contains("the operator's rule does not allow calls to"),
            "{refused}"
        );
    }
    // Not without TLS either, when only another network may be called so.
    let elsewhere = AddressRule::public().allow("10.0.0.0/8").unwrap();
    let refused = send(
        elsewhere,
        RootCertStore::empty(),
        format!("http://localhost:{port}/"),
    )
    .await
    .unwrap_err();
    assert!(refused.reason.contains("does not allow"), "{refused}");

    let (address, request) = receiver(&format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n"
    ))
    .await;
    let refused = send(loopback(), RootCertStore::empty(), format!("http://{address}/"))
        .await
        .unwrap_err();
    assert!(refused.reason.contains("redirects are not followed"), "{refused}");
    request.await.unwrap();
    // Nobody has called.
    let called = tokio::select! {
        biased;
        called = listener.accept() => Some(called),
        () = std::future::ready(()) => None,
    };
    assert!(called.is_none());
}

#[tokio::test]
async fn what_an_address_answers_is_understood() {
    for (text, retry_after, is_gone) in [
        (
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
            Some(7),
            false,
        ),
        ("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", None, true),
        (
            "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops",
            None,
            false,
        ),
        ("no HTTP\r\n\r\n", None, false),
        ("", None, false),
    ] {
        let (address, request) = receiver(text).await;
        let error = send(loopback(), RootCertStore::empty(), format!("http://{address}/"))
            .await
            .unwrap_err();
        let seconds = error.retry_after.map(|pause| pause.as_secs());
        assert_eq!(
            (seconds, error.is_gone),
            (retry_after, is_gone),
            "{text}: {error}"
        );
        request.await.unwrap();
    }
}
