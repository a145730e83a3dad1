//! What this process and the children take of the system.

use ::metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

const CPU: &str = "process_cpu_seconds_total";
const RESIDENT: &str = "process_resident_memory_bytes";
const OPEN_FDS: &str = "process_open_fds";
const MAX_FDS: &str = "process_max_fds";
const STARTED: &str = "process_start_time_seconds";
const THREADS: &str = "process_threads";
const CHILD_MEMORY: &str = "trunkline_child_memory_bytes";
const CHILD_CPU: &str = "trunkline_child_cpu_seconds_total";
const CHILD_FDS: &str = "trunkline_child_open_fds";

const WORKERS: &str = "trunkline_tokio_workers";
const WAITING: &str = "trunkline_tokio_global_queue_depth";
const BUSY: &str = "trunkline_tokio_busy_seconds_total";
const PARKS: &str = "trunkline_tokio_parks_total";

/// Counters of seconds: counted in microseconds, since a counter is a whole number, and written in seconds.
pub const IN_MICROSECONDS: [&str; 3] = [CPU, CHILD_CPU, BUSY];

/// Gauges that hold only while there is something to be seen, and are set anew at each reading.
pub(super) const SAMPLED: [&str; 2] = [CHILD_MEMORY, CHILD_FDS];

/// What processes take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The time on a processor, in microseconds.
    pub cpu: u64,
    /// Memory that is in memory.
    pub resident: u64,
    /// Open files and connections.
    pub open_fds: u64,
}

/// What only this process shows of itself.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// What it takes.
    pub usage: Usage,
    /// The most files and connections that it may have open.
    pub max_fds: Option<u64>,
    /// When it was started, in seconds since 1970.
    pub started: f64,
    /// Its threads.
    pub threads: u64,
}

/// Says what each of these metrics means.
pub(super) fn describe() {
    describe_counter!(CPU, Unit::Seconds, "Processor time of the gateway's process");
    describe_gauge!(RESIDENT, Unit::Bytes, "Resident memory of the gateway's process");
    describe_gauge!(OPEN_FDS, "Open file descriptors of the gateway's process");
    describe_gauge!(MAX_FDS, "Limit of the open file descriptors");
    describe_gauge!(STARTED, Unit::Seconds, "Start of the gateway's process, in seconds since 1970");
    describe_gauge!(THREADS, "Threads of the gateway's process");
    describe_gauge!(WORKERS, "Worker threads of the runtime");
    describe_gauge!(WAITING, "Tasks that wait for any worker thread");
    describe_counter!(BUSY, Unit::Seconds, "Time in which worker threads were at work, all together");
    describe_counter!(PARKS, "Times that a worker thread had nothing to do");
    describe_gauge!(CHILD_MEMORY, Unit::Bytes, "Resident memory of the process groups of an upstream's children");
    describe_counter!(CHILD_CPU, Unit::Seconds, "Processor time of the process groups of an upstream's children");
    describe_gauge!(CHILD_FDS, "Open file descriptors of the process groups of an upstream's children");
}

/// What the runtime tells of its workers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Workers {
    /// How many there are.
    pub count: usize,
    /// Tasks that wait for any of them.
    pub waiting: usize,
    /// The time in which they were at work, all together, in microseconds.
    pub busy: u64,
    /// How often one of them had nothing to do.
    pub parks: u64,
}

/// Shows what the workers do.
pub fn workers(workers: Workers) {
    gauge!(WORKERS).set(workers.count as f64);
    gauge!(WAITING).set(workers.waiting as f64);
    counter!(BUSY).absolute(workers.busy);
    counter!(PARKS).absolute(workers.parks);
}

/// Shows what this process takes.
pub fn own(own: &Own) {
    counter!(CPU).absolute(own.usage.cpu);
    gauge!(RESIDENT).set(own.usage.resident as f64);
    gauge!(OPEN_FDS).set(own.usage.open_fds as f64);
    if let Some(most) = own.max_fds {
        gauge!(MAX_FDS).set(most as f64);
    }
    gauge!(STARTED).set(own.started);
    gauge!(THREADS).set(own.threads as f64);
}

/// Shows what the children of an upstream take together; of the time on a processor what was added since the last reading.
pub fn children(upstream: &str, usage: Usage) {
    let label = || upstream.to_owned();
    gauge!(CHILD_MEMORY, "upstream" => label()).set(usage.resident as f64);
    counter!(CHILD_CPU, "upstream" => label()).increment(usage.cpu);
    gauge!(CHILD_FDS, "upstream" => label()).set(usage.open_fds as f64);
}
