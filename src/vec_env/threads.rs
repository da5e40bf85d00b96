//! How many threads run lanes.

use super::config::ConfigError;
use super::crew::Crew;

/// Variables that people already set to bound threads; the first one that is a number counts.
const VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "OMP_NUM_THREADS"];

/// Threads for `lanes` lanes: as asked, else as the environment says, else the processors that this process may use
/// (its affinity and cgroup limits counted); never more than lanes.
pub(super) fn count(asked: Option<usize>, lanes: usize) -> usize {
    let from_environment = || VARIABLES.iter().find_map(|name| number(&std::env::var(name).ok()?));
    let usable = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.or_else(from_environment).unwrap_or_else(usable).clamp(1, lanes.max(1))
}

/// The first number of a list such as `4` or `4,2`; 0 means no limit.
fn number(text: &str) -> Option<usize> {
    text.split(',').next()?.trim().parse().ok().filter(|&n| n > 0)
}

/// The threads beside the caller's own.
pub(super) fn crew(threads: usize) -> Result<Crew, ConfigError> {
    Crew::new(threads - 1).map_err(|e| {
        ConfigError(format!(
            "num_threads: could not start {threads} threads ({e}); ask for fewer, or raise the limit on processes (ulimit -u)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{count, number};

    #[test]
    fn an_explicit_number_wins_and_lanes_are_the_most() {
        assert_eq!(count(Some(3), 16), 3);
        assert_eq!(count(Some(64), 16), 16);
        assert!(count(None, 1) == 1);
    }

    #[test]
    fn a_limit_is_the_first_number_of_its_list() {
        assert_eq!(["4", "4,2", " 8 ", "0", "all", ""].map(number), [Some(4), Some(4), Some(8), None, None, None]);
    }
}
