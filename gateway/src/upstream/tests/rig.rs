//! For tests: an upstream in memory, played frame by frame, with the clock paused.

use super::super::config::{
    BreakerConfig, Checks, Config, Dialect, EraChoice, Filter, Restart, Sharing, Start, Transport,
};
use crate::call::Call;
use crate::call::caller::{Caller, Grants, Principal};
use crate::call::reply::{Outcome, Reply, Step};
use crate::health::StatusBoard;
use crate::memory::budget::Budget;
use crate::peer::{Offer, Peer, handshake};
use crate::protocol::capabilities::Capabilities;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Frame, Id};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::runtime::Tasks;
use crate::transport::link::Link;
use crate::transport::pipe::{Pipe, read as read_pipe, write as write_pipe};
use crate::upstream::calls::sessions::{keep_places, open_gate};
use crate::upstream::instance::Instance;
use crate::upstream::owner::Ownership;
use crate::upstream::status::notice::Notice;
use crate::upstream::supervise::keep_wanted;
use bytes::Bytes;
use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::oneshot;

/// A configuration that nothing is started from.
pub(crate) fn config() -> Config {
    Config {
        name: "a".into(),
        title: None,
        prefix: "a".into(),
        transport: Transport::Stdio { command: "false".into(), args: Vec::new(), env: Vec::new(), cwd: None },
        credentials: None,
        login: None,
        start: Start::Eager,
        idle_stop: None,
        era: EraChoice::Auto,
        dialect: Dialect::Mcp,
        defined: None,
        has_both_eras: false,
        startup_timeout: Duration::from_secs(60),
        start_wait: Duration::from_secs(5),
        request_timeout: Some(Duration::from_secs(30)),
        call_timeout: None,
        max_call_time: Some(Duration::from_secs(3600)),
        identity: None,
        tool_times: HashMap::new(),
        max_concurrency: None,
        call_rate: None,
        queue: 256,
        question_timeout: Duration::from_secs(600),
        sharing: Sharing::Shared,
        max_instances: 32,
        max_sessions: 1024,
        instance_idle: Duration::from_secs(600),
        offer: Some(Capabilities::FORM.with(Capabilities::URL)),
        principals: 1,
        roots: None,
        restart: Restart::default(),
        health: Checks::default(),
        hang_restart: false,
        no_new_privs: false,
        breaker: Some(BreakerConfig::default()),
        overlap: false,
        tools: Filter::default(),
        max_message: 1024 * 1024,
    }
}

/// The far end of a pipe: the upstream as a test plays it.
pub(crate) struct Far {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Far {
    /// The next line that was sent to the upstream, raw.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.input.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(3600), read).await.expect("a line comes").unwrap();
        line.trim_end().to_owned()
    }

    /// The next request: its id as it is written, its method, its parameters.
    pub(crate) async fn request(&mut self) -> (Id, Method, Object) {
        let line = self.line().await;
        match Frame::parse(&Bytes::from(line.clone())) {
            Ok(Frame::Request { id, method, params }) => (id, method, params),
            _ => panic!("not a request: {line}"),
        }
    }

    /// The next notification.
    pub(crate) async fn notification(&mut self) -> (Method, Object) {
        let line = self.line().await;
        match Frame::parse(&Bytes::from(line.clone())) {
            Ok(Frame::Notification { method, params }) => (method, params),
            _ => panic!("not a notification: {line}"),
        }
    }

    /// Whether nothing is sent for a while.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        self.line_unless_quiet().await.is_none()
    }

    /// The next line; nothing where none comes for a while. As the clock goes on only when nobody has anything to do, no line is
    /// cut by that.
    pub(crate) async fn line_unless_quiet(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_millis(100), self.input.read_line(&mut line)).await;
        read.is_ok().then_some(line)
    }

    /// All that is sent until nothing comes for a while.
    pub(crate) async fn so_far(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let a_while = Duration::from_millis(100);
        while let Ok(Ok(1..)) = tokio::time::timeout(a_while, self.input.read_buf(&mut all)).await {}
        all
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
        self.output.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn write_raw(&mut self, bytes: &[u8]) {
        self.output.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn result(&mut self, id: &Id, result: &str) {
        let id = String::from_utf8_lossy(id.raw()).into_owned();
        self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).await;
    }

    pub(crate) async fn error(&mut self, id: &Id, code: i64) {
        let id = String::from_utf8_lossy(id.raw()).into_owned();
        self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#)).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &str) {
        self.write(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)).await;
    }
}

/// One upstream in memory.
pub(crate) struct Rig {
    pub(crate) instance: Arc<Instance>,
    pub(crate) pipe: Arc<Pipe>,
    pub(crate) far: Far,
    pub(crate) tasks: Tasks,
    pub(crate) notices: Arc<Mutex<Vec<Notice>>>,
    pub(crate) board: StatusBoard,
}

impl Rig {
    pub(crate) fn new(config: Config) -> Self {
        let owner = Ownership::everyone(&config);
        Self::held(config, owner)
    }

    pub(crate) fn held(config: Config, owner: Ownership) -> Self {
        Self::on(StatusBoard::default(), config, owner)
    }

    /// An upstream whose peers make the gateway keep no more than that.
    pub(crate) fn within(budget: &Budget, config: Config) -> Self {
        let owner = Ownership::everyone(&config);
        Self::on(StatusBoard::new(budget.clone()), config, owner)
    }

    fn on(board: StatusBoard, config: Config, owner: Ownership) -> Self {
        let handle = board.add(&config.name, "stdio");
        let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let heard = notices.clone();
        let hear = Arc::new(move |notice| heard.lock().unwrap().push(notice));
        let instance = Instance::new(config, owner, handle, hear);
        let instance = Arc::new(instance);
        let tasks = Tasks::new();
        tasks.spawn_until_end(keep_places(instance.clone()));
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (near_in, near_out) = split(near);
        let (far_in, far_out) = split(far);
        let pipe = Pipe::new(instance.clone(), tasks.clone());
        let (reading, writing) = (pipe.clone(), pipe.clone());
        let max = instance.config.max_message;
        tasks.spawn_until_end(async move {
            let end = read_pipe(&reading, near_in, max).await;
            reading.close((&*format!("{end:?}")).into());
        });
        tasks.spawn_until_end(async move { drop(write_pipe(&writing, near_out, pending()).await) });
        let far = Far { input: BufReader::new(far_in), output: far_out };
        Self { instance, pipe, far, tasks, notices, board }
    }

    pub(crate) fn link(&self) -> Link {
        Link::Pipe(self.pipe.clone())
    }

    /// A peer that was met, without the frames of meeting it; the gate stands open.
    pub(crate) fn met(&self, revision: Revision, capabilities: &str) -> Arc<Peer> {
        let answer = Object::parse(format!("{{\"capabilities\":{capabilities}}}").into()).unwrap();
        let offer: Offer = handshake::offer(&answer, revision);
        let peer = Arc::new(Peer::new(self.link(), offer));
        self.instance.admission.gate.expect(&peer);
        open_gate(&self.instance, &peer);
        peer
    }

    /// Has a peer keep what is wanted; somebody waits until it does.
    pub(crate) fn listens(&self, life: &Tasks, peer: Arc<Peer>, was_away: bool) {
        let (settled, first) = oneshot::channel();
        life.spawn_until_end(keep_wanted(self.instance.clone(), peer, was_away, settled));
        life.spawn_until_end(async move { drop(first.await) });
    }

    /// An instance beside the primary one, which nobody keeps alive.
    pub(crate) fn beside(&self, whose: &str, number: u64) -> Instance {
        let handle = self.instance.status.handle.instance(&whose.into(), number);
        Instance::beside(&self.instance, (Ownership::everyone(&self.instance.config), None), handle, number)
    }

    pub(crate) fn upstream(&self) -> super::super::Upstream {
        super::super::Upstream::of(self.instance.clone())
    }
}

/// A call of a client.
pub(crate) fn call(revision: Revision, method: Method, params: &str) -> Call {
    Call {
        method,
        params: Object::parse(Bytes::copy_from_slice(params.as_bytes())).unwrap(),
        meta: Bytes::new(),
        caller: Arc::new(Caller {
            principal: Principal::anonymous(),
            address: None,
            grants: Grants::all(),
            revision,
            capabilities: "{}".into(),
            tenant: None,
            can: crate::call::caller::Can::default(),
        }),
        progress: false,
        log_level: None,
        is_notification: false,
        param_headers: None,
        target_name: None,
        public: None,
        bound_to: None,
        trace: None,
    }
}

/// The next step, which must be the outcome.
pub(crate) async fn outcome(reply: &mut Reply) -> Outcome {
    match reply.next().await {
        Step::Done(outcome) => outcome,
        Step::Event(event) => panic!("not the outcome: {event:?}"),
    }
}
