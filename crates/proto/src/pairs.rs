//! Pairs of documents as columns: the ids behind a fingerprint stand once in a message, however many pairs they make.

use std::collections::{BTreeMap, HashMap};

use simshard_simhash::{Fingerprint, Pair};

use crate::MalformedColumns;
use crate::v1::FindPairsResponse;

/// A message is sent once it has about this many bytes. It never has more than three times as many.
const MESSAGE_BYTES: usize = 1 << 20;

/// Ids of one fingerprint that stand in one group, in bytes, but for the last of them.
const GROUP_BYTES: usize = MESSAGE_BYTES / 2;

/// Bytes of an id beside its text, of a group beside its ids, and of a row, about.
const ID: usize = 3;
const GROUP: usize = 10;
const ROW: usize = 8;

/// Documents with one fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    /// Their ids.
    pub ids: Vec<String>,
}

/// Two groups, by their places, or one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPair {
    /// One.
    pub left: usize,
    /// The other.
    pub right: usize,
    /// The distance between their fingerprints, in bits.
    pub distance: u32,
}

/// Messages for all pairs of documents behind these pairs of fingerprints: of two different ones, or of one with
/// itself. A fingerprint without documents makes no pairs. No message is made before it is asked for.
pub fn pair_messages<'a>(
    pairs: &'a [Pair],
    documents: &'a BTreeMap<Fingerprint, Vec<String>>,
) -> impl Iterator<Item = FindPairsResponse> + 'a {
    let grouped =
        |(&fingerprint, ids): (&Fingerprint, &'a Vec<String>)| (fingerprint, grouped(ids));
    let groups: HashMap<Fingerprint, Vec<&'a [String]>> = documents.iter().map(grouped).collect();
    let mut at = Places::default();
    std::iter::from_fn(move || {
        let mut message = Message::default();
        while message.bytes < MESSAGE_BYTES
            && let Some(pair) = pairs.get(at.pair)
        {
            let groups_of = |fingerprint| groups.get(&fingerprint).map_or(&[][..], Vec::as_slice);
            let (left, right) = (groups_of(pair.a), groups_of(pair.b));
            if let (Some(one), Some(other)) = (left.get(at.left), right.get(at.right)) {
                message.row((pair.a, at.left, one), (pair.b, at.right, other));
            }
            at.advance(pair.a == pair.b, left.len(), right.len());
        }
        let response = message.response;
        (!response.lefts.is_empty()).then_some(response)
    })
}

/// The ids of a fingerprint in groups of bounded size.
fn grouped(ids: &[String]) -> Vec<&[String]> {
    let mut groups = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (place, id) in ids.iter().enumerate() {
        bytes += ID + id.len();
        if bytes >= GROUP_BYTES || place + 1 == ids.len() {
            groups.push(&ids[start..=place]);
            (start, bytes) = (place + 1, 0);
        }
    }
    groups
}

/// A pair of fingerprints, and a group of each.
#[derive(Default)]
struct Places {
    pair: usize,
    left: usize,
    right: usize,
}

impl Places {
    /// Goes on to the next two groups of the pair, or to the next pair. Of a fingerprint with itself, each two groups
    /// come once.
    fn advance(&mut self, with_itself: bool, lefts: usize, rights: usize) {
        self.right += 1;
        if self.right >= rights {
            self.left += 1;
            self.right = if with_itself { self.left } else { 0 };
        }
        if self.left >= lefts {
            *self = Self {
                pair: self.pair + 1,
                ..Self::default()
            };
        }
    }
}

/// A message that is being filled.
#[derive(Default)]
struct Message {
    response: FindPairsResponse,
    /// Where the groups stand, by fingerprint and number.
    places: HashMap<(Fingerprint, usize), u32>,
    bytes: usize,
}

/// A fingerprint, the number of one of its groups, and the ids in it.
type Numbered<'a> = (Fingerprint, usize, &'a [String]);

impl Message {
    /// Adds a row, unless it stands for no pair.
    fn row(&mut self, left: Numbered<'_>, right: Numbered<'_>) {
        let is_one = (left.0, left.1) == (right.0, right.1);
        if is_one && left.2.len() < 2 {
            return;
        }
        let distance = left.0.distance(right.0);
        let (left, right) = (self.place(left), self.place(right));
        self.response.lefts.push(left);
        self.response.rights.push(right);
        self.response.distances.push(distance);
        self.bytes += ROW;
    }

    /// The place of a group, which is added if it is not there.
    fn place(&mut self, (fingerprint, number, ids): Numbered<'_>) -> u32 {
        let next = self.response.fingerprints.len() as u32;
        let place = *self.places.entry((fingerprint, number)).or_insert(next);
        if place == next {
            self.response.fingerprints.push(fingerprint.0);
            self.response.id_counts.push(ids.len() as u32);
            self.response.ids.extend_from_slice(ids);
            let ids = ids.iter().map(|id| ID + id.len());
            self.bytes += GROUP + ids.sum::<usize>();
        }
        place
    }
}

/// The groups of a message, and which of them make pairs.
pub fn pairs_into(
    message: FindPairsResponse,
) -> Result<(Vec<Group>, Vec<GroupPair>), MalformedColumns> {
    check(&message)?;
    let mut ids = message.ids.into_iter();
    let counted = message.fingerprints.iter().zip(&message.id_counts);
    let groups = counted.map(|(&fingerprint, &count)| Group {
        fingerprint: Fingerprint(fingerprint),
        ids: ids.by_ref().take(count as usize).collect(),
    });
    let groups = groups.collect();
    let places = message.lefts.into_iter().zip(message.rights);
    let pairs = places.zip(message.distances);
    let pairs = pairs.map(|((left, right), distance)| GroupPair {
        left: left as usize,
        right: right as usize,
        distance,
    });
    Ok((groups, pairs.collect()))
}

fn check(message: &FindPairsResponse) -> Result<(), MalformedColumns> {
    let groups = message.fingerprints.len();
    let rows = message.lefts.len();
    let ids = message.id_counts.iter().map(|&count| count as usize).sum();
    let places = message.lefts.iter().chain(&message.rights);
    let needed = places.max().map_or(0, |&place| place as usize + 1);
    MalformedColumns::check([
        ("id_counts", message.id_counts.len(), groups),
        ("ids", message.ids.len(), ids),
        ("rights", message.rights.len(), rows),
        ("distances", message.distances.len(), rows),
        ("fingerprints", groups, groups.max(needed)),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message as _;

    use super::*;

    type DocumentPair = ((u64, String), (u64, String), u32);

    fn pair(a: u64, b: u64) -> Pair {
        let (a, b) = (Fingerprint(a), Fingerprint(b));
        Pair { a, b }
    }

    /// The pairs of documents that messages stand for; none may come twice.
    fn listed(messages: impl Iterator<Item = FindPairsResponse>) -> BTreeSet<DocumentPair> {
        let mut listed = BTreeSet::new();
        for message in messages {
            assert!(message.encoded_len() < 3 * MESSAGE_BYTES);
            let (groups, rows) = pairs_into(message).unwrap();
            for row in rows {
                let (left, right) = (&groups[row.left], &groups[row.right]);
                for (place, a) in left.ids.iter().enumerate() {
                    let after = if row.left == row.right { place + 1 } else { 0 };
                    for b in &right.ids[after..] {
                        let documents = (
                            (left.fingerprint.0, a.clone()),
                            (right.fingerprint.0, b.clone()),
                            row.distance,
                        );
                        assert!(listed.insert(documents), "twice");
                    }
                }
            }
        }
        listed
    }

    fn slowly(
        pairs: &[Pair],
        documents: &BTreeMap<Fingerprint, Vec<String>>,
    ) -> BTreeSet<DocumentPair> {
        let mut listed = BTreeSet::new();
        for pair in pairs {
            for (place, a) in documents[&pair.a].iter().enumerate() {
                let after = if pair.a == pair.b { place + 1 } else { 0 };
                for b in &documents[&pair.b][after..] {
                    let (a, b) = ((pair.a.0, a.clone()), (pair.b.0, b.clone()));
                    listed.insert((a, b, pair.distance()));
                }
            }
        }
        listed
    }

    #[test]
    fn messages_stand_for_every_pair_of_documents_once() {
        let ids = |count: usize, bytes: usize| -> Vec<String> {
            let id = |number| format!("{number:04}{}", "x".repeat(bytes));
            (0..count).map(id).collect()
        };
        let documents = BTreeMap::from([
            (Fingerprint(1), ids(3, 0)),
            (Fingerprint(2), ids(1, 0)),
            // Several groups.
            (Fingerprint(4), ids(12, 200_000)),
            (Fingerprint(5), ids(7, 300_000)),
            (Fingerprint(8), Vec::new()),
        ]);
        let pairs = [
            pair(1, 1),
            pair(1, 2),
            pair(2, 2),
            pair(1, 8),
            pair(8, 8),
            pair(4, 4),
            pair(4, 5),
            pair(5, 5),
            pair(1, 4),
        ];
        let found = listed(pair_messages(&pairs, &documents));
        assert!(found == slowly(&pairs, &documents));
        assert_eq!(found.len(), 3 + 3 + 66 + 84 + 21 + 36);
        assert_eq!(pair_messages(&pairs[2..5], &documents).count(), 0);
    }

    #[test]
    fn ids_stand_once_in_a_message() {
        let of = |number: u64| (Fingerprint(number), vec![format!("id-{number}")]);
        let documents: BTreeMap<_, _> = (0..100).map(of).collect();
        let pairs: Vec<Pair> = (0..100)
            .flat_map(|a| (a + 1..100).map(move |b| pair(a, b)))
            .collect();
        let messages: Vec<_> = pair_messages(&pairs, &documents).collect();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].ids.len(), 100);
        assert_eq!(messages[0].lefts.len(), 4950);
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let documents = BTreeMap::from([(Fingerprint(1), vec!["a".to_owned(), "b".to_owned()])]);
        let good = pair_messages(&[pair(1, 1)], &documents).next().unwrap();
        assert!(pairs_into(good.clone()).is_ok());
        type Spoil = fn(&mut FindPairsResponse);
        let spoilt: [(&str, Spoil); 5] = [
            ("id_counts", |message| message.id_counts.push(0)),
            ("ids", |message| message.ids.truncate(1)),
            ("rights", |message| message.rights.clear()),
            ("distances", |message| message.distances.push(1)),
            ("fingerprints", |message| message.lefts[0] = 1),
        ];
        for (column, spoil) in spoilt {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert_eq!(pairs_into(bad).unwrap_err().column, column);
        }
    }
}
