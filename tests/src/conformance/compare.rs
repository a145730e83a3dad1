//! Check by check: what is worse through the gateway than directly.

use std::collections::BTreeMap;

use super::check::{Check, Status};

/// A check that is worse through the gateway.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What is checked.
    pub id: String,
    /// Which of the checks with this id.
    pub name: String,
    /// What came of it without the gateway.
    pub directly: Status,
    /// What came of it through the gateway.
    pub through: Status,
    /// What the suite says about it.
    pub message: String,
}

impl Difference {
    /// Whether it is about the same check.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        self.id == other.id && self.name == other.name
    }
}

/// Compares the checks of one scenario. Checks that occur several times count with their worst verdict, as the suite has it.
#[must_use]
pub fn compare(directly: &[Check], through: &[Check]) -> Vec<Difference> {
    let (directly, through) = (worst(directly), worst(through));
    let mut differences = Vec::new();
    for ((id, name), (status, _)) in &directly {
        // Notes about the traffic come and go with it.
        let wanted = matches!(status, Status::Success | Status::Warning);
        let (found, message) = match through.get(&(*id, *name)) {
            Some((found, message)) => (*found, *message),
            None if wanted => (Status::Missing, "the scenario never came to this check"),
            None => continue,
        };
        if found > *status && (wanted || found >= Status::Warning) {
            differences.push(difference(id, name, *status, found, message));
        }
    }
    for ((id, name), (status, message)) in &through {
        if *status >= Status::Warning && !directly.contains_key(&(*id, *name)) {
            differences.push(difference(id, name, Status::Missing, *status, message));
        }
    }
    differences
}

fn difference(id: &str, name: &str, directly: Status, through: Status, message: &str) -> Difference {
    Difference { id: id.to_owned(), name: name.to_owned(), directly, through, message: message.to_owned() }
}

fn worst(checks: &[Check]) -> BTreeMap<(&str, &str), (Status, &str)> {
    let mut worst: BTreeMap<(&str, &str), (Status, &str)> = BTreeMap::new();
    for check in checks {
        let verdict = (check.status, check.error_message.as_deref().unwrap_or_default());
        let known = worst.entry((&check.id, &check.name)).or_insert(verdict);
        if verdict.0 > known.0 {
            *known = verdict;
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, status: Status) -> Check {
        Check { id: "id".to_owned(), name: name.to_owned(), status, error_message: None }
    }

    fn worse(directly: Status, through: Status) -> bool {
        !compare(&[check("a", directly)], &[check("a", through)]).is_empty()
    }

    #[test]
    fn only_what_is_worse_is_a_difference() {
        assert!(worse(Status::Success, Status::Failure));
        assert!(worse(Status::Success, Status::Info));
        assert!(worse(Status::Warning, Status::Failure));
        assert!(worse(Status::Info, Status::Warning));
        assert!(!worse(Status::Success, Status::Success));
        assert!(!worse(Status::Failure, Status::Success));
        assert!(!worse(Status::Info, Status::Skipped));
    }

    #[test]
    fn a_check_that_went_away_or_came_with_a_fault_is_a_difference() {
        assert_eq!(compare(&[check("a", Status::Success)], &[])[0].through, Status::Missing);
        assert_eq!(compare(&[], &[check("a", Status::Failure)])[0].directly, Status::Missing);
        assert!(compare(&[check("a", Status::Info)], &[]).is_empty());
        assert!(compare(&[], &[check("a", Status::Success)]).is_empty());
    }

    #[test]
    fn of_several_the_worst_counts() {
        let through = [check("a", Status::Success), check("a", Status::Failure)];
        assert_eq!(compare(&[check("a", Status::Success)], &through)[0].through, Status::Failure);
    }
}
