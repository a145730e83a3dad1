//! The client's side of stdio: a child of its own, or a bridge; its frames sorted to whoever waits for them.

use std::collections::{HashMap, VecDeque};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::client::answer::Answer;
use crate::client::bridge::Pipes;
use crate::client::desk::Desk;
use crate::client::request::Request;
use crate::frame::Frame;
use crate::process::Program;
use crate::tape::Tape;
use crate::within::within;

/// Where lines are written, until it is closed.
type Stdin = Arc<AsyncMutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>;

/// A child, or a bridge, and what is expected of it.
pub struct StdioWire {
    /// Its process id; 0 where it is no child.
    pub pid: u32,
    /// Its lines on stderr.
    pub stderr: Arc<Tape<String>>,
    /// Every line on its stdout, where a test asked for them.
    pub lines: Arc<Tape<String>>,
    child: AsyncMutex<Option<Child>>,
    stdin: Stdin,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    answers: HashMap<String, VecDeque<(String, oneshot::Sender<Answer>)>>,
    listeners: HashMap<String, Arc<Tape<Frame>>>,
    tokens: HashMap<String, Arc<Tape<Frame>>>,
    keeps_lines: bool,
}

/// Where the reader sorts to.
struct Sorter {
    waiting: Arc<Mutex<Waiting>>,
    notices: Arc<Tape<Frame>>,
    desk: Arc<Desk>,
    lines: Arc<Tape<String>>,
    stdin: Stdin,
}

impl StdioWire {
    /// Starts the child, in a process group of its own.
    #[must_use]
    pub fn start(program: &Program, notices: Arc<Tape<Frame>>, desk: Arc<Desk>) -> Arc<StdioWire> {
        let mut child = Command::new(&program.path)
            .args(&program.args)
            .envs(program.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", program.path.display()));
        let stdin = child.stdin.take().expect("a pipe was asked for");
        let stdout = child.stdout.take().expect("a pipe was asked for");
        StdioWire::over(Some(child), (Box::new(stdout), Box::new(stdin)), notices, desk)
    }

    /// Speaks by way of a bridge.
    pub(crate) fn bridged(pipes: Pipes, notices: Arc<Tape<Frame>>, desk: Arc<Desk>) -> Arc<StdioWire> {
        StdioWire::over(None, pipes, notices, desk)
    }

    fn over(mut child: Option<Child>, pipes: Pipes, notices: Arc<Tape<Frame>>, desk: Arc<Desk>) -> Arc<StdioWire> {
        let (stdout, stdin) = pipes;
        let stdin: Stdin = Arc::new(AsyncMutex::new(Some(stdin)));
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let lines = Arc::new(Tape::default());
        let sorter = Sorter { waiting: waiting.clone(), notices, desk, lines: lines.clone(), stdin: stdin.clone() };
        tokio::spawn(sorter.run(stdout));
        let stderr = Arc::new(Tape::default());
        if let Some(pipe) = child.as_mut().and_then(|child| child.stderr.take()) {
            let tape = stderr.clone();
            tokio::spawn(async move {
                let mut lines = BufReader::new(pipe).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    tape.push(line);
                }
            });
        }
        let pid = child.as_ref().and_then(Child::id).unwrap_or_default();
        Arc::new(StdioWire { pid, stderr, lines, child: AsyncMutex::new(child), stdin, waiting })
    }

    /// Keeps every line of stdout from now on.
    pub fn keep_lines(&self) {
        lock(&self.waiting).keeps_lines = true;
    }

    /// Says that an answer with this id will come, and progress with this token.
    pub fn expect(&self, id: &str, request: &Request, sender: oneshot::Sender<Answer>, notices: Arc<Tape<Frame>>) {
        let mut waiting = lock(&self.waiting);
        waiting.answers.entry(id.into()).or_default().push_back((request.method.clone(), sender));
        if let Some(token) = &request.token {
            waiting.tokens.insert(token.clone(), notices.clone());
        }
        waiting.listeners.insert(id.into(), notices);
    }

    /// Writes a line.
    pub async fn write(&self, text: &[u8]) {
        let mut line = Vec::with_capacity(text.len() + 1);
        line.extend_from_slice(text);
        line.push(b'\n');
        self.write_raw(&line).await;
    }

    /// Writes bytes as they are.
    pub async fn write_raw(&self, bytes: &[u8]) {
        let mut stdin = self.stdin.lock().await;
        let pipe = stdin.as_mut().expect("stdin is open");
        // A child that has ended does not read; the test learns it from what does not come back.
        let _ = pipe.write_all(bytes).await;
    }

    /// Closes the child's stdin.
    pub async fn close(&self) {
        self.stdin.lock().await.take();
    }

    /// Waits until the child has ended.
    pub async fn ended(&self) -> std::process::ExitStatus {
        let mut child = self.child.lock().await;
        let child = child.as_mut().expect("it is a child");
        within("the child ends", child.wait()).await.expect("a child can be waited for")
    }
}

impl Sorter {
    async fn run(self, stdout: impl AsyncRead + Unpin) {
        let mut stdout = BufReader::with_capacity(1 << 16, stdout);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).await.unwrap_or(0) > 0 {
            let bytes = line.trim_ascii_end();
            if lock(&self.waiting).keeps_lines {
                self.lines.push(String::from_utf8_lossy(bytes).into_owned());
            }
            match Frame::parse(bytes) {
                Ok(frame) => self.sort(frame).await,
                Err(fault) if bytes.first() != Some(&b'[') => self.desk.complain(format!("on stdout: {fault}")),
                Err(_) => {} // an answer to a batch; a test that sends one keeps the lines
            }
            line.clear();
        }
        // Whoever still waits learns that nothing will come.
        lock(&self.waiting).answers.clear();
    }

    async fn sort(&self, frame: Frame) {
        if frame.is_answer() {
            let sender = {
                let mut waiting = lock(&self.waiting);
                waiting.listeners.remove(frame.id_text());
                let queue = waiting.answers.get_mut(frame.id_text());
                queue.and_then(VecDeque::pop_front)
            };
            match sender {
                // Whoever asked may no longer want to know.
                Some((method, sender)) => {
                    self.desk.judge(&frame, Some(&method));
                    let _ = sender.send(Answer { status: 200, frame: Some(frame), ..Answer::default() });
                }
                None => self.desk.complain(format!("an answer that nobody waits for: {frame:?}")),
            }
            return;
        }
        self.desk.judge(&frame, None);
        if frame.method.is_none() {
            self.desk.complain(format!("on stdout: no message: {frame:?}"));
            return;
        }
        if frame.id.is_some() {
            self.reply(frame);
            return;
        }
        self.desk.hear(&frame);
        let tag = frame.meta("io.modelcontextprotocol/subscriptionId");
        let token = frame.param("progressToken").filter(|_| frame.is_notice("notifications/progress"));
        let tape = {
            let waiting = lock(&self.waiting);
            let listener = tag.and_then(|id| waiting.listeners.get(id.get()).cloned());
            listener.or_else(|| token.as_ref().and_then(|token| waiting.tokens.get(token.get()).cloned()))
        };
        match tape {
            Some(tape) => tape.push(frame),
            None if token.is_some() => self.desk.complain(format!("progress that nobody asked for: {frame:?}")),
            None => self.notices.push(frame),
        }
    }

    /// Has a question of the peer answered, while frames go on coming.
    fn reply(&self, frame: Frame) {
        let (desk, stdin) = (self.desk.clone(), self.stdin.clone());
        let asked = desk.take(&frame);
        tokio::spawn(async move {
            let Some(text) = desk.answer(asked).await else { return };
            if let Some(stdin) = stdin.lock().await.as_mut() {
                let _ = stdin.write_all(format!("{text}\n").as_bytes()).await;
            }
        });
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
