//! What is known against versions of etcd.

/// What is known against a version, such as `3.5.1`. Nothing is known of one that cannot be read.
pub(super) fn known_fault(version: &str) -> Option<String> {
    let release = version
        .split_once('-')
        .map_or(version, |(release, _)| release);
    let mut numbers = release.split('.').map(|number| number.parse::<u32>().ok());
    let mut next = || numbers.next().flatten();
    let (major, minor, patch) = (next()?, next()?, next()?);
    let is_bad = match (major, minor) {
        (..=2, _) | (3, ..=3) => true,
        (3, 4) => patch < 22,
        (3, 5) => patch < 6,
        (3.., _) => false,
    };
    is_bad.then(|| {
        format!(
            "its version is {version}, which may damage its data when it is killed: take 3.4.22 or later, or 3.5.6 or later"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_damage_data_are_known_by_their_numbers() {
        for bad in ["3.5.1", "3.5.5", "3.4.21", "3.3.27", "2.3.8", "3.5.0-rc.1"] {
            let told = known_fault(bad).unwrap();
            assert!(told.contains(bad), "{told}");
        }
        for good in [
            "3.5.6", "3.5.21", "3.4.22", "3.4.23", "3.6.0", "4.0.0", "", "3", "x.y.z",
        ] {
            assert_eq!(known_fault(good), None, "{good}");
        }
    }
}
