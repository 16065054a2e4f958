//! The process itself, from `/proc`, under the names that every exporter has for it. Where that cannot be read, the last
//! values stay.

use prometheus::{Counter, Error, Gauge, IntGauge};

use super::catalogue::Catalogue;
use super::signed;

/// Ticks of `/proc/self/stat` per second. It is 100 wherever Linux runs today, whatever the kernel's own rate.
const TICKS: f64 = 100.0;

pub(super) struct Process {
    memory: IntGauge,
    virtual_memory: IntGauge,
    threads: IntGauge,
    files: IntGauge,
    most_files: IntGauge,
    started: Gauge,
    cpu: Counter,
}

impl Process {
    pub fn new(c: &mut Catalogue) -> Result<Self, Error> {
        Ok(Process {
            memory: c.gauge("process_resident_memory_bytes", "Resident memory in bytes.")?,
            virtual_memory: c.gauge("process_virtual_memory_bytes", "Virtual memory in bytes.")?,
            threads: c.gauge("process_threads", "Threads of the process.")?,
            files: c.gauge("process_open_fds", "Open file descriptors.")?,
            most_files: c.gauge("process_max_fds", "The limit of open file descriptors.")?,
            started: c
                .seconds_gauge("process_start_time_seconds", "When the process started, in seconds since 1970.")?,
            cpu: c.seconds_counter("process_cpu_seconds_total", "User and system CPU time in seconds.")?,
        })
    }

    pub fn fill(&mut self) {
        if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
            let kilobytes = |key: &str| -> Option<u64> {
                let line = status.lines().find_map(|line| line.strip_prefix(key))?;
                line.split_whitespace().next()?.parse().ok()
            };
            set(&self.memory, kilobytes("VmRSS:").map(|kb| kb.saturating_mul(1024)));
            set(&self.virtual_memory, kilobytes("VmSize:").map(|kb| kb.saturating_mul(1024)));
            set(&self.threads, kilobytes("Threads:"));
        }
        if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
            // The folder that is being read is one of them.
            self.files.set(signed(files.count() as u64).saturating_sub(1));
        }
        if let Ok(limits) = std::fs::read_to_string("/proc/self/limits") {
            let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
            set(&self.most_files, line.and_then(|line| line.split_whitespace().next()?.parse().ok()));
        }
        if let Ok(stat) = std::fs::read_to_string("/proc/self/stat") {
            // The second field is the program's name in brackets, in which anything may stand.
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            let ticks = |at: usize| -> Option<f64> { fields.get(at)?.parse().ok() };
            if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
                self.cpu.inc_by(((user + system) / TICKS - self.cpu.get()).max(0.0));
            }
            if let (Some(started), Some(boot)) = (ticks(19), boot_seconds()) {
                self.started.set(boot + started / TICKS);
            }
        }
    }
}

/// When the machine started, in seconds since 1970.
fn boot_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn set(gauge: &IntGauge, value: Option<u64>) {
    if let Some(value) = value {
        gauge.set(signed(value));
    }
}
