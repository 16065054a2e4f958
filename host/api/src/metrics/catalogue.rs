//! Makes metrics, registers them, and keeps a list of them.

use prometheus::core::Collector;
use prometheus::{Counter, Error};
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// What kind of metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts by size: `_bucket`, `_sum`, `_count`.
    Histogram,
}

/// A metric, without its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels, in order.
    pub labels: Vec<&'static str>,
    /// What it says.
    pub text: &'static str,
}

/// Where metrics are made.
#[derive(Default)]
pub(super) struct Catalogue {
    registry: Registry,
    described: Vec<Described>,
}

type Labels = &'static [&'static str];

impl Catalogue {
    pub fn done(self) -> (Registry, Vec<Described>) {
        (self.registry, self.described)
    }

    pub fn counter(&mut self, name: &'static str, text: &'static str) -> Result<IntCounter, Error> {
        let made = IntCounter::new(name, text)?;
        self.keep(made, Described { name, kind: Kind::Counter, labels: Vec::new(), text })
    }

    /// A counter of something that comes in parts.
    pub fn seconds_counter(&mut self, name: &'static str, text: &'static str) -> Result<Counter, Error> {
        let made = Counter::new(name, text)?;
        self.keep(made, Described { name, kind: Kind::Counter, labels: Vec::new(), text })
    }

    pub fn counters(&mut self, name: &'static str, text: &'static str, labels: Labels) -> Result<IntCounterVec, Error> {
        let made = IntCounterVec::new(Opts::new(name, text), labels)?;
        self.keep(made, Described { name, kind: Kind::Counter, labels: labels.to_vec(), text })
    }

    pub fn gauge(&mut self, name: &'static str, text: &'static str) -> Result<IntGauge, Error> {
        let made = IntGauge::new(name, text)?;
        self.keep(made, Described { name, kind: Kind::Gauge, labels: Vec::new(), text })
    }

    /// A gauge of something that comes in parts.
    pub fn seconds_gauge(&mut self, name: &'static str, text: &'static str) -> Result<Gauge, Error> {
        let made = Gauge::new(name, text)?;
        self.keep(made, Described { name, kind: Kind::Gauge, labels: Vec::new(), text })
    }

    pub fn gauges(&mut self, name: &'static str, text: &'static str, labels: Labels) -> Result<IntGaugeVec, Error> {
        let made = IntGaugeVec::new(Opts::new(name, text), labels)?;
        self.keep(made, Described { name, kind: Kind::Gauge, labels: labels.to_vec(), text })
    }

    /// As [`Self::gauges`], of something that comes in parts.
    pub fn seconds_gauges(
        &mut self,
        name: &'static str,
        text: &'static str,
        labels: Labels,
    ) -> Result<prometheus::GaugeVec, Error> {
        let made = prometheus::GaugeVec::new(Opts::new(name, text), labels)?;
        self.keep(made, Described { name, kind: Kind::Gauge, labels: labels.to_vec(), text })
    }

    pub fn histogram(&mut self, name: &'static str, text: &'static str, buckets: &[f64]) -> Result<Histogram, Error> {
        let made = Histogram::with_opts(HistogramOpts::new(name, text).buckets(buckets.to_vec()))?;
        self.keep(made, Described { name, kind: Kind::Histogram, labels: Vec::new(), text })
    }

    pub fn histograms(
        &mut self,
        name: &'static str,
        text: &'static str,
        labels: Labels,
        buckets: &[f64],
    ) -> Result<HistogramVec, Error> {
        let made = HistogramVec::new(HistogramOpts::new(name, text).buckets(buckets.to_vec()), labels)?;
        self.keep(made, Described { name, kind: Kind::Histogram, labels: labels.to_vec(), text })
    }

    fn keep<M: Collector + Clone + 'static>(&mut self, made: M, described: Described) -> Result<M, Error> {
        self.registry.register(Box::new(made.clone()))?;
        self.described.push(described);
        Ok(made)
    }
}
