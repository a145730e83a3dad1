//! The text of metrics in the two formats that Prometheus reads.

use super::exemplar::Exemplar;
use metrics_exporter_prometheus::formatting;
use std::fmt::{Display, Write};
use std::time::UNIX_EPOCH;

/// What a page of metrics is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The older text format of Prometheus.
    Prometheus,
    /// OpenMetrics, which has exemplars.
    OpenMetrics,
}

/// A page that is being written, metric by metric.
pub(super) struct Page {
    format: Format,
    text: String,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::new() }
    }

    /// Begins a metric.
    pub(super) fn head(&mut self, name: &str, kind: &str, help: Option<&str>) {
        match self.format {
            Format::Prometheus => {
                if let Some(help) = help {
                    formatting::write_help_line(&mut self.text, name, None, None, help);
                }
                formatting::write_type_line(&mut self.text, name, None, None, kind);
            }
            Format::OpenMetrics => {
                // A counter bears the suffix in its samples only.
                let family = if kind == "counter" { name.strip_suffix("_total").unwrap_or(name) } else { name };
                let _always = writeln!(self.text, "# TYPE {family} {kind}");
                if let Some(help) = help {
                    let help = formatting::sanitize_label_value(help);
                    let _always = writeln!(self.text, "# HELP {family} {help}");
                }
            }
        }
    }

    /// One line: a name, its labels, and what is recorded under them.
    pub(super) fn sample(&mut self, name: &str, suffix: &str, labels: &str, value: impl Display) {
        let _always = match labels {
            "" => writeln!(self.text, "{name}{suffix} {value}"),
            _ => writeln!(self.text, "{name}{suffix}{{{labels}}} {value}"),
        };
    }

    /// How many lie below a border of a histogram; the last border is infinite.
    pub(super) fn bucket(&mut self, (name, labels): (&str, &str), border: f64, count: u64, example: Option<Exemplar>) {
        let comma = if labels.is_empty() { "" } else { "," };
        let _always = write!(self.text, "{name}_bucket{{{labels}{comma}le=\"");
        let _always = match (self.format, border.is_finite()) {
            (_, false) => self.text.write_str("+Inf"),
            (Format::Prometheus, true) => write!(self.text, "{border}"),
            // Always with a decimal point.
            (Format::OpenMetrics, true) => write!(self.text, "{border:?}"),
        };
        let _always = write!(self.text, "\"}} {count}");
        if let (Format::OpenMetrics, Some(example)) = (self.format, example) {
            self.example(example);
        }
        self.text.push('\n');
    }

    fn example(&mut self, example: Exemplar) {
        let since = example.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (trace, span) = (u128::from_be_bytes(example.trace), u64::from_be_bytes(example.span));
        let _always = write!(
            self.text,
            " # {{trace_id=\"{trace:032x}\",span_id=\"{span:016x}\"}} {} {}.{:03}",
            example.value,
            since.as_secs(),
            since.subsec_millis()
        );
    }

    /// Ends a metric.
    pub(super) fn end(&mut self) {
        if self.format == Format::Prometheus {
            self.text.push('\n');
        }
    }

    /// The whole page.
    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}
