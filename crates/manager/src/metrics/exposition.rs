//! The text that is scraped, in the format that the scraper asks for.

use std::fmt::Write as _;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::catalogue::COUNTER_SUFFIX;

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The classic Prometheus format.
    Plain,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// The best format that an `Accept` header allows. A client that does not ask for `OpenMetrics` gets the
    /// classic format, which every scraper reads.
    pub fn accepted(accept: &str) -> Self {
        let (mut open_metrics, mut plain) = (0.0_f64, 0.0_f64);
        for range in accept.split(',').map(MediaRange::parse) {
            if range.is_open_metrics() {
                open_metrics = open_metrics.max(range.quality);
            } else if range.media_type == "text/plain" {
                plain = plain.max(range.quality);
            }
        }
        if open_metrics > 0.0 && open_metrics >= plain {
            Self::OpenMetrics
        } else {
            Self::Plain
        }
    }

    /// The content type of the answer.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

struct MediaRange<'a> {
    media_type: &'a str,
    version: Option<&'a str>,
    quality: f64,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self {
            media_type: parts.next().unwrap_or_default(),
            version: None,
            quality: 1.0,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "version" => range.version = Some(value),
                "q" => range.quality = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        range
    }

    fn is_open_metrics(&self) -> bool {
        self.media_type == "application/openmetrics-text"
            && self.version.is_none_or(|version| version == "1.0.0")
    }
}

/// Writes everything in the registry.
pub(crate) fn expose(registry: &Registry, format: Format) -> Result<String, std::fmt::Error> {
    let mut open_metrics = String::new();
    text::encode(&mut open_metrics, registry)?;
    Ok(match format {
        Format::OpenMetrics => open_metrics,
        Format::Plain => plain(&open_metrics),
    })
}

/// Turns `OpenMetrics` into the classic format: there, a counter is described under its full name, bucket
/// bounds are written as Go writes numbers, and there is no end mark.
fn plain(open_metrics: &str) -> String {
    let mut plain = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        // Writing to a String cannot fail.
        let _ = match line.strip_prefix("# ") {
            None => writeln!(plain, "{}", with_go_bound(line)),
            Some(comment) => match described(comment) {
                ("HELP", name, text) => {
                    help = Some((name, text));
                    Ok(())
                }
                ("TYPE", name, kind) => describe(&mut plain, help.take(), name, kind),
                _ => Ok(()),
            },
        };
    }
    plain
}

/// `HELP name text` or `TYPE name kind`.
fn described(comment: &str) -> (&str, &str, &str) {
    let (keyword, rest) = comment.split_once(' ').unwrap_or((comment, ""));
    let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
    (keyword, name, text)
}

fn describe(
    plain: &mut String,
    help: Option<(&str, &str)>,
    name: &str,
    kind: &str,
) -> std::fmt::Result {
    let suffix = if kind == "counter" {
        COUNTER_SUFFIX
    } else {
        ""
    };
    if let Some((_, text)) = help.filter(|(of, _)| *of == name) {
        writeln!(plain, "# HELP {name}{suffix} {text}")?;
    }
    writeln!(plain, "# TYPE {name}{suffix} {kind}")
}

/// A sample with its bucket bound, if it has one, written as Go does: dashboards match it as text.
fn with_go_bound(sample: &str) -> String {
    const BOUND: &str = "le=\"";
    let parts = sample.split_once(BOUND).and_then(|(before, rest)| {
        let (bound, after) = rest.split_once('"')?;
        let bound: f64 = bound.parse().ok()?;
        Some((before, bound, after))
    });
    match parts {
        Some((before, bound, after)) if bound.is_finite() && before.ends_with(['{', ',']) => {
            format!("{before}{BOUND}{}\"{after}", go_float(bound))
        }
        _ => sample.to_owned(),
    }
}

/// The shortest form of a number as Go's formatter writes it, with an exponent from a million up and
/// below a ten-thousandth.
fn go_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::Catalogue;

    #[test]
    fn the_scraper_gets_the_format_it_prefers() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (case, accept, format) in [
            ("nothing", "", Format::Plain),
            ("anything", "*/*", Format::Plain),
            ("plain", "text/plain;version=0.0.4", Format::Plain),
            ("open", "application/openmetrics-text", Format::OpenMetrics),
            ("prometheus", prometheus, Format::OpenMetrics),
            (
                "only an old draft",
                "application/openmetrics-text;version=0.0.1",
                Format::Plain,
            ),
            (
                "plain preferred",
                "application/openmetrics-text;q=0.1, text/plain",
                Format::Plain,
            ),
            ("refused", "application/openmetrics-text;q=0", Format::Plain),
            (
                "a quality that is none",
                "application/openmetrics-text;q=high",
                Format::Plain,
            ),
        ] {
            assert_eq!(Format::accepted(accept), format, "{case}");
        }
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (value, text) in [
            (1.0, "1"),
            (0.25, "0.25"),
            (16384.0, "16384"),
            (0.0001, "0.0001"),
            (1e-8, "1e-08"),
            (9.999_999_999_999_999e-6, "9.999999999999999e-06"),
            (100_000.0, "100000"),
            (1_048_576.0, "1.048576e+06"),
        ] {
            assert_eq!(go_float(value), text);
        }
    }

    fn sample_registry() -> Registry {
        let mut catalogue = Catalogue::new();
        let calls = catalogue.counters("calls_total", ["name"], "Calls.");
        calls.with([r#"a{le="2.0"} \ quoted"#]).inc();
        let ages = catalogue.histograms("age_seconds", ["name"], &[1e-8, 1.0], "Ages.");
        ages.with(["x"]).observe(0.5);
        let _ = catalogue.gauges("idle", ["name"], "Never set.");
        catalogue.finish().0
    }

    #[test]
    fn the_classic_format_describes_counters_by_their_full_name_and_has_no_end_mark() {
        let text = expose(&sample_registry(), Format::Plain).unwrap();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "# HELP calls_total Calls.",
                "# TYPE calls_total counter",
                r#"calls_total{name="a{le=\"2.0\"} \\ quoted"} 1"#,
                "# HELP age_seconds Ages.",
                "# TYPE age_seconds histogram",
                r#"age_seconds_sum{name="x"} 0.5"#,
                r#"age_seconds_count{name="x"} 1"#,
                r#"age_seconds_bucket{le="1e-08",name="x"} 0"#,
                r#"age_seconds_bucket{le="1",name="x"} 1"#,
                r#"age_seconds_bucket{le="+Inf",name="x"} 1"#,
            ]
        );
    }

    #[test]
    fn open_metrics_describes_counters_without_suffix_and_ends_with_a_mark() {
        let text = expose(&sample_registry(), Format::OpenMetrics).unwrap();
        assert!(text.contains("# TYPE calls counter\n"), "{text}");
        assert!(text.contains("\ncalls_total{"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
