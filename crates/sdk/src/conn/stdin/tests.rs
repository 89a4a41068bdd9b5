use std::collections::VecDeque;
use std::sync::Arc;

use super::*;

/// What a pipe does with a write.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Takes so many bytes.
    Takes(usize),
    /// Is full.
    Waits,
    Fails,
}

#[derive(Clone, Default)]
struct Fake(Arc<Mutex<(VecDeque<Does>, Vec<u8>)>>);

impl Fake {
    fn doing(does: &[Does]) -> Self {
        let fake = Self::default();
        fake.0.lock().unwrap().0.extend(does);
        fake
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().1.clone()).unwrap()
    }
}

impl AsyncWrite for Fake {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut fake = self.0.lock().unwrap();
        let taken = match fake.0.pop_front() {
            None => bytes.len(),
            Some(Does::Takes(most)) => bytes.len().min(most),
            Some(Does::Waits) => return Poll::Pending,
            Some(Does::Fails) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        };
        fake.1.extend(&bytes[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct StdinCase {
    control: (mpsc::Sender<OutgoingLine>, mpsc::Receiver<OutgoingLine>),
    prompts: (mpsc::Sender<OutgoingLine>, mpsc::Receiver<OutgoingLine>),
}

impl StdinCase {
    fn new() -> Self {
        Self {
            control: mpsc::channel(4),
            prompts: mpsc::channel(4),
        }
    }

    /// The writer's turn: writes until it would wait.
    fn run(&mut self, open: &OpenStdin<'_>) -> io::Result<()> {
        let mut cx = Context::from_waker(Waker::noop());
        while open
            .poll_begin(&mut cx, &mut self.control.1, &mut self.prompts.1)
            .is_ready()
        {
            match open.0.pipe().poll_rest(&mut cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => break,
            }
        }
        Ok(())
    }
}

#[test]
fn an_answer_goes_out_at_once_unless_something_is_before_it() {
    let (fake, mut case, stdin) = (Fake::default(), StdinCase::new(), StdinWriter::default());
    assert_eq!(
        stdin.write_now(b"a\n".into(), &case.control.0),
        Err(b"a\n".into()),
        "no pipe yet"
    );
    let open = stdin.open(Box::new(fake.clone()));
    stdin.write_now(b"a\n".into(), &case.control.0).unwrap();
    assert_eq!(fake.text(), "a\n");
    case.prompts.0.try_send(b"prompt\n".into()).unwrap();
    stdin.write_now(b"b\n".into(), &case.control.0).unwrap();
    case.control.0.try_send(b"c\n".into()).unwrap();
    let refused = stdin.write_now(b"d\n".into(), &case.control.0);
    case.control.0.try_send(refused.unwrap_err()).unwrap();
    assert_eq!(fake.text(), "a\nb\n");
    case.run(&open).unwrap();
    assert_eq!(fake.text(), "a\nb\nc\nd\nprompt\n");
    stdin.write_now(b"e\n".into(), &case.control.0).unwrap();
    drop(open);
    assert!(stdin.write_now(b"f\n".into(), &case.control.0).is_err(), "closed");
    assert!(fake.text().ends_with("e\n"));
}

#[test]
fn a_line_is_never_torn() {
    let fake = Fake::doing(&[Does::Takes(3), Does::Waits, Does::Waits, Does::Takes(1)]);
    let (mut case, stdin) = (StdinCase::new(), StdinWriter::default());
    let open = stdin.open(Box::new(fake.clone()));
    case.run(&open).unwrap();
    stdin.write_now(b"answer\n".into(), &case.control.0).unwrap();
    assert_eq!(fake.text(), "ans");
    let refused = stdin.write_now(b"another\n".into(), &case.control.0);
    case.control.0.try_send(refused.unwrap_err()).unwrap();
    case.run(&open).unwrap();
    assert_eq!(fake.text(), "ans", "the pipe is full");
    case.run(&open).unwrap();
    assert_eq!(fake.text(), "answer\nanother\n");
}

#[test]
fn the_rest_of_a_line_is_there_for_the_end() {
    let fake = Fake::doing(&[Does::Takes(3), Does::Waits]);
    let (case, stdin) = (StdinCase::new(), StdinWriter::default());
    let open = stdin.open(Box::new(fake));
    stdin.write_now(b"answer\n".into(), &case.control.0).unwrap();
    let (_, rest) = open.take().unwrap();
    assert_eq!(rest, b"wer\n");
    assert!(stdin.write_now(b"late\n".into(), &case.control.0).is_err());
}

#[test]
fn the_writer_is_woken_for_the_rest_and_told_of_errors() {
    struct Woken(std::sync::atomic::AtomicBool);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    for does in [Does::Waits, Does::Fails] {
        let (mut case, stdin) = (StdinCase::new(), StdinWriter::default());
        let open = stdin.open(Box::new(Fake::doing(&[does])));
        let woken = Arc::new(Woken(false.into()));
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let waits = open.poll_begin(&mut cx, &mut case.control.1, &mut case.prompts.1);
        assert!(waits.is_pending());
        stdin.write_now(b"answer\n".into(), &case.control.0).unwrap();
        assert!(woken.0.load(std::sync::atomic::Ordering::SeqCst));
        assert_eq!(case.run(&open).is_err(), matches!(does, Does::Fails));
    }
}
