//! What it costs to keep strangers out of a cluster.

use super::{Case, Target, Unit, row};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::light(
        &[row(
            "cluster-find-all-stream-tls",
            "3 nodes, `FindAllStream`, with certificates and TLS on all connections, and a token, against none of them, right \
             before it",
            Target::AtLeast(0.85),
            Unit::Times,
        )],
        |programs| {
            let case = "find_all_stream";
            let plain = programs.cluster(&[case])?;
            let secured = programs.cluster_with_tls(&[case])?;
            let [plain, secured] =
                [plain, secured].map(|figures| figures.of(case)?.number("per_second"));
            Ok(vec![secured? / plain?])
        },
    )]
}
